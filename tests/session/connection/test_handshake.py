"""From protocol header to connection.open-ok: what is offered, who gets in, and what the others hear."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import base, commands, encode
from pamqp.commands import Connection
from pamqp.common import FieldTable, FieldValue

from tests.peer import CAPABILITIES, Lab, Peer, blamed

HEADER = b"AMQP\x00\x00\x09\x01"
LOGIN_REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the broker logfile."
)


def start(peer: Peer) -> Connection.Start:
    peer.send_bytes(HEADER)
    return peer.expect(Connection.Start, channel=0)


def log_in(
    peer: Peer, response: str = "\0guest\0guest", mechanism: str = "PLAIN", capabilities: dict[str, bool] = CAPABILITIES
) -> None:
    start(peer)
    properties: FieldTable = {"capabilities": dict(capabilities)}
    peer.send(Connection.StartOk(properties, mechanism, response), channel=0)


def amqplain(**values: str) -> str:
    """A field table without its length."""
    return encode.field_table(dict(values))[4:].decode("latin-1")


# The protocol header


@pytest.mark.parametrize("header", [HEADER, b"AMQP\x01\x01\x00\x09"], ids=["0-9-1", "0-9"])
def test_a_protocol_header_is_answered_with_start(lab: Lab, header: bytes) -> None:
    peer = lab.peer()
    peer.send_bytes(header)
    started = peer.expect(Connection.Start, channel=0)
    assert (started.version_major, started.version_minor) == (0, 9)
    assert started.mechanisms == "PLAIN AMQPLAIN ANONYMOUS"
    assert started.locales == "en_US"


@pytest.mark.parametrize(
    "header",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\xf0\x01\x00\x00\xec\x03\x03",  # TLS
        b"AMQP\x01\x01\x08\x00",  # 0-8
        b"AMQP\x00\x01\x00\x00",  # 1.0
        b"amqp\x00\x00\x09\x01",
    ],
)
def test_an_unknown_protocol_header_is_answered_with_the_supported_one(lab: Lab, header: bytes) -> None:
    peer = lab.peer()
    peer.send_bytes(header)
    assert b"".join(peer.session.outbox.take()) == HEADER
    assert peer.is_dropped


def test_a_protocol_header_may_come_in_pieces(lab: Lab) -> None:
    peer = lab.peer()
    for octet in HEADER:
        peer.expect_nothing()
        peer.send_bytes(bytes([octet]))
    peer.expect(Connection.Start, channel=0)


def test_the_broker_sends_nothing_before_the_protocol_header(lab: Lab) -> None:
    lab.peer().expect_nothing()


# Server properties


def test_the_broker_is_rabbitmq_4_to_its_clients(lab: Lab) -> None:
    properties = start(lab.peer()).server_properties
    assert properties["product"] == "RabbitMQ"
    assert str(properties["version"]).startswith("4.2.")
    assert list(properties) == sorted(properties)
    assert set(properties) == {
        "capabilities",
        "cluster_name",
        "copyright",
        "information",
        "platform",
        "product",
        "version",
    }


def test_the_broker_names_its_extensions(lab: Lab) -> None:
    assert start(lab.peer()).server_properties["capabilities"] == {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "consumer_priorities": True,
        "authentication_failure_close": True,
        "per_consumer_qos": True,
        "direct_reply_to": True,
    }


def test_the_client_properties_are_kept(lab: Lab, peer: Peer) -> None:
    assert peer.session.client_properties == {"capabilities": CAPABILITIES}


# Login


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", "\0guest\0guest"),
        ("AMQPLAIN", amqplain(LOGIN="guest", PASSWORD="guest")),
        ("AMQPLAIN", amqplain(extra="ignored", PASSWORD="guest", LOGIN="guest")),
        ("ANONYMOUS", ""),
        ("ANONYMOUS", "whatever"),
    ],
)
def test_every_mechanism_that_is_offered_logs_in(lab: Lab, mechanism: str, response: str) -> None:
    peer = lab.peer()
    log_in(peer, response, mechanism)
    peer.expect(Connection.Tune, channel=0)
    assert peer.session.user is not None
    assert peer.session.user.name == "guest"


def test_the_mechanisms_are_a_setting() -> None:
    lab = Lab(auth_mechanisms="AMQPLAIN")
    assert start(lab.peer()).mechanisms == "AMQPLAIN"
    peer = lab.peer()
    log_in(peer)
    lab.advance(3000)
    assert peer.is_dropped
    peer.expect_nothing()


def challenged() -> tuple[Lab, Peer]:
    """A client that has been asked for its password."""
    lab = Lab(auth_mechanisms="PLAIN RABBIT-CR-DEMO")
    peer = lab.peer()
    log_in(peer, "guest", "RABBIT-CR-DEMO")
    assert peer.expect(Connection.Secure, channel=0).challenge == "Please tell me your password"
    return lab, peer


def test_a_challenge_is_answered_with_the_password() -> None:
    _, peer = challenged()
    peer.send(Connection.SecureOk("My password is guest"), channel=0)
    peer.expect(Connection.Tune, channel=0)


def test_a_wrong_answer_to_a_challenge_is_refused() -> None:
    _, peer = challenged()
    peer.send(Connection.SecureOk("My password is wrong"), channel=0)
    assert peer.expect_connection_close(403) == LOGIN_REFUSED.format("RABBIT-CR-DEMO")


@pytest.mark.parametrize("method", [Connection.SecureOk("guest"), Connection.TuneOk(2047, 131072, 0)])
def test_another_method_than_secure_ok_ends_the_connection_after_three_seconds(method: base.Frame) -> None:
    lab, peer = challenged()
    peer.send(method, channel=0)
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


def test_there_is_no_secure_ok_without_a_challenge(lab: Lab) -> None:
    peer = lab.peer()
    start(peer)
    peer.send(Connection.SecureOk("My password is guest"), channel=0)
    lab.advance(3000)
    assert peer.is_dropped
    peer.expect_nothing()


WRONG_LOGINS = [
    ("PLAIN", "\0guest\0wrong"),
    ("PLAIN", "\0guest\0"),
    ("PLAIN", "\0nobody\0guest"),
    ("PLAIN", "\0\0"),
    ("AMQPLAIN", amqplain(LOGIN="guest", PASSWORD="wrong")),
]


@pytest.mark.parametrize(("mechanism", "response"), WRONG_LOGINS)
def test_a_client_with_the_capability_is_notified_of_a_refused_login(lab: Lab, mechanism: str, response: str) -> None:
    peer = lab.peer()
    log_in(peer, response, mechanism)
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (403, LOGIN_REFUSED.format(mechanism))
    assert (close.class_id, close.method_id) == (0, 0)
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_dropped


@pytest.mark.parametrize(("mechanism", "response"), WRONG_LOGINS)
def test_a_client_without_the_capability_is_dropped_after_three_seconds_of_silence(
    lab: Lab, mechanism: str, response: str
) -> None:
    peer = lab.peer()
    log_in(peer, response, mechanism, capabilities={})
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", "guest guest"),
        ("PLAIN", "guest\0guest\0guest"),
        ("PLAIN", "\0guest\0guest\0"),
        ("PLAIN", ""),
        ("AMQPLAIN", amqplain(LOGIN="guest")),
        ("AMQPLAIN", "no table"),
        ("AMQPLAIN", ""),
        ("EXTERNAL", "\0guest\0guest"),
        ("KERBEROS_9", "\0guest\0guest"),
        ("plain", "\0guest\0guest"),
        ("", ""),
    ],
)
def test_an_invalid_login_is_not_answered(lab: Lab, mechanism: str, response: str) -> None:
    peer = lab.peer()
    log_in(peer, response, mechanism)
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


@pytest.mark.parametrize("capabilities", ["all", True, [], None])
def test_capabilities_that_are_not_a_table_are_ignored(lab: Lab, capabilities: FieldValue) -> None:
    peer = lab.peer()
    start(peer)
    peer.send(Connection.StartOk({"capabilities": capabilities}, "PLAIN", "\0guest\0wrong"), channel=0)
    lab.advance(3000)
    assert peer.is_dropped
    peer.expect_nothing()


def test_nothing_is_read_after_a_refused_login(lab: Lab) -> None:
    peer = lab.peer()
    log_in(peer, "\0guest\0wrong", capabilities={})
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0guest"), channel=0)
    peer.expect_nothing()
    assert peer.session.user is None


def test_a_refused_client_is_dropped_after_3_seconds(lab: Lab) -> None:
    peer = lab.peer()
    log_in(peer, "\0guest\0wrong")
    assert peer.expect(Connection.Close, channel=0).reply_code == 403
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped


def test_a_user_whose_password_was_never_set_cannot_log_in(lab: Lab) -> None:
    lab.broker.users["guest"].password_hash = b""
    peer = lab.peer()
    log_in(peer)
    peer.expect_connection_close(403)


LOOPBACK = ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "unix socket"]
REMOTE = ["192.0.2.1", "::ffff:192.0.2.1", "fe80::1%eth0", "2001:db8::1", "0.0.0.0"]


@pytest.mark.parametrize("host", LOOPBACK)
def test_guest_logs_in_from_this_machine(lab: Lab, host: str) -> None:
    lab.peer(host).open()


@pytest.mark.parametrize(("host", "mechanism"), [*((host, "PLAIN") for host in REMOTE), (REMOTE[0], "ANONYMOUS")])
def test_guest_from_another_machine_is_refused_like_a_wrong_password(lab: Lab, host: str, mechanism: str) -> None:
    peer = lab.peer(host)
    log_in(peer, mechanism=mechanism)
    assert peer.expect_connection_close(403) == LOGIN_REFUSED.format(mechanism)


@pytest.mark.parametrize("settings", [{"remote_guest": True}, {"loopback_users": ""}, {"loopback_users": "anna"}])
def test_guest_from_another_machine_is_accepted_if_allowed(settings: dict[str, Any]) -> None:
    Lab(**settings).peer(REMOTE[0]).open()


def test_other_users_may_be_restricted_to_this_machine() -> None:
    lab = Lab(loopback_users="guest anna", default_user="anna", default_pass="secret")
    lab.peer("127.0.0.1").open(user="anna", password="secret")
    peer = lab.peer(REMOTE[0])
    log_in(peer, "\0anna\0secret")
    assert peer.expect_connection_close(403) == LOGIN_REFUSED.format("PLAIN")


def test_an_anonymous_login_uses_the_configured_user() -> None:
    lab = Lab(anonymous_login_user="anna", anonymous_login_pass="secret")
    peer = lab.peer()
    log_in(peer, "", "ANONYMOUS")
    assert peer.expect_connection_close(403) == LOGIN_REFUSED.format("ANONYMOUS")
    lab.broker.users.add("anna", "secret")
    peer = lab.peer()
    log_in(peer, "", "ANONYMOUS")
    peer.expect(Connection.Tune, channel=0)
    assert peer.session.user is lab.broker.users["anna"]


def test_the_anonymous_mechanism_can_be_disabled() -> None:
    peer = Lab(anonymous_login_user="none").peer()
    assert start(peer).mechanisms == "PLAIN AMQPLAIN"


def test_the_cluster_has_the_name_that_the_configuration_says() -> None:
    assert start(Lab(cluster_name="dev").peer()).server_properties["cluster_name"] == "dev"


def test_other_users_log_in_from_everywhere() -> None:
    Lab(default_user="maria", default_pass="secret").peer("192.0.2.1").open("maria", "secret")


# Methods out of turn


def tuning(lab: Lab) -> Peer:
    peer = lab.peer()
    log_in(peer)
    peer.expect(Connection.Tune, channel=0)
    return peer


@pytest.mark.parametrize(
    "method",
    [Connection.Open("/"), Connection.TuneOk(2047, 131072, 0), Connection.Close(200, "no", 0, 0), commands.Basic.Qos()],
)
def test_another_method_than_a_login_is_not_answered(lab: Lab, method: base.Frame) -> None:
    peer = lab.peer()
    start(peer)
    peer.send(method, channel=0)
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


def test_opening_a_vhost_before_tune_ok_is_not_answered(lab: Lab) -> None:
    peer = tuning(lab)
    peer.send(Connection.Open("/"), channel=0)
    peer.expect_nothing()
    assert peer.session.vhost is None


def test_a_channel_before_the_connection_is_open_is_refused(lab: Lab) -> None:
    peer = tuning(lab)
    peer.send(Connection.TuneOk(2047, 131072, 0), channel=0)
    peer.send(commands.Channel.Open(), channel=1)
    text = peer.expect_connection_close(505)
    assert text == "UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,1,48>>"


def test_a_client_may_close_instead_of_opening_a_vhost(lab: Lab) -> None:
    peer = tuning(lab)
    peer.send(Connection.TuneOk(2047, 131072, 0), channel=0)
    peer.send(Connection.Close(200, "bye", 0, 0), channel=0)
    peer.expect(Connection.CloseOk, channel=0)
    peer.send(Connection.Open("/"), channel=0)
    peer.expect_nothing()


@pytest.mark.parametrize(
    "method",
    [
        Connection.Open("/"),
        Connection.StartOk({}, "PLAIN", "\0guest\0guest"),
        Connection.SecureOk("\0guest\0guest"),
        Connection.TuneOk(2047, 131072, 0),
        Connection.CloseOk(),
        Connection.OpenOk(),
        Connection.Tune(),
        commands.Channel.Open(),
        commands.Queue.Declare(queue="q"),
        commands.Basic.Ack(1),
    ],
    ids=lambda method: method.name,
)
def test_a_method_that_an_open_connection_does_not_expect_is_refused(peer: Peer, method: base.Frame) -> None:
    peer.send(method, channel=0)
    close = peer.expect(Connection.Close, channel=0)
    assert close.reply_code == 504
    assert close.reply_text == "CHANNEL_ERROR - unexpected method in connection state running"
    assert blamed(close) == method.index


# Secrets and close


def test_the_secret_can_be_updated(peer: Peer) -> None:
    peer.call(Connection.UpdateSecret("new", "rotation"), channel=0)
    assert not peer.is_dropped


def test_nothing_is_read_after_a_close(peer: Peer, other: Peer) -> None:
    peer.send_bytes(b"")
    peer.send(Connection.Close(200, "bye", 0, 0), commands.Channel.Open(), channel=0)
    peer.expect(Connection.CloseOk, channel=0)
    peer.send(commands.Queue.Declare(queue="q"))
    peer.expect_nothing()
    assert not other.session.broker.vhosts["/"].queues
