"""Differences between the imitated versions of RabbitMQ that clients see, each with its source.

The RabbitMQ that the tests run is 3.10, which has none of them. So every test names its source: a module and version of
rabbitmq-server, a release note, or a page of the documentation. "Seen" means that the text was read there; a test
without a source says so. tests/broker/queues/test_quorum_versions.py has the differences between quorum queues.
"""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.access import Permission
from amqp_broker.settings.profiles import DEFAULT, PROFILES
from amqp_broker.settings.settings import Settings, SettingsError
from tests.peer import CAPABILITIES, Lab, Peer, deaths_in
from tests.present import present

REPLY_TO = "amq.rabbitmq.reply-to"
MINUTE_MS = 60_000
ALL = ["3.13", "4.0", "4.2", "4.3"]


def connect(compat: str) -> Peer:
    return Lab(compat=compat).connect()


def answer_to_tune(compat: str, frame_max: int) -> Peer:
    peer = Lab(compat=compat).peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(commands.Connection.Start, channel=0)
    peer.send(commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest"), channel=0)
    peer.expect(commands.Connection.Tune, channel=0)
    peer.send(commands.Connection.TuneOk(2047, frame_max, 0), commands.Connection.Open("/"), channel=0)
    return peer


def test_the_default_version_is_4_2() -> None:
    assert DEFAULT == "4.2"
    assert Settings().profile is PROFILES["4.2"]


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(compat="5.0").check()
    assert str(caught.value) == "compat is '5.0', which is not one of 3.13, 4.0, 4.2, 4.3"


# Connections


@pytest.mark.parametrize(
    ("compat", "version", "mechanisms"),
    [
        ("3.13", "3.13.7", "PLAIN AMQPLAIN"),
        ("4.2", "4.2.1", "PLAIN AMQPLAIN ANONYMOUS"),
        ("4.3", "4.3.6", "PLAIN AMQPLAIN ANONYMOUS"),
    ],
)
def test_the_broker_reports_its_version_and_mechanisms(compat: str, version: str, mechanisms: str) -> None:
    """rabbit_reader.erl 3.13.7 and 4.3.5 (start_connection, auth_mechanisms)."""
    peer = Lab(compat=compat).peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    start = peer.expect(commands.Connection.Start, channel=0)
    said = start.server_properties["version"]
    assert (said.decode() if isinstance(said, bytes) else said) == version
    assert start.mechanisms.split() == mechanisms.split()


@pytest.mark.parametrize(("compat", "is_offered"), [("3.13", False), ("4.2", True), ("4.3", True)])
def test_anonymous_logs_in_as_guest_since_4_0(compat: str, is_offered: bool) -> None:
    """rabbit_reader.erl 4.3.5; documentation page "Access Control", anonymous_login_user."""
    peer = Lab(compat=compat).peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(commands.Connection.Start, channel=0)
    peer.send(commands.Connection.StartOk({}, "ANONYMOUS", "whatever"), channel=0)
    if is_offered:
        peer.expect(commands.Connection.Tune, channel=0)
    else:
        peer.expect_nothing()


@pytest.mark.parametrize(("compat", "lowest"), [("3.13", 4096), ("4.0", 4096), ("4.2", 8192), ("4.3", 8192)])
def test_the_smallest_frame_max(compat: str, lowest: int) -> None:
    """FRAME_MIN_SIZE in rabbit_common/include/rabbit_framing.hrl; release notes of 4.1.0."""
    answer_to_tune(compat, lowest).expect(commands.Connection.OpenOk, channel=0)
    refused = answer_to_tune(compat, lowest - 1)
    refused.expect_nothing()
    assert refused.session.cause.endswith(
        f"negotiated frame_max = {lowest - 1} is lower than the minimum allowed value ({lowest})"
    )


@pytest.mark.parametrize(("compat", "largest"), [("3.13", 4096), ("4.0", 4096), ("4.2", 8192), ("4.3", 8192)])
def test_frames_before_a_login_have_that_size_at_most(compat: str, largest: int) -> None:
    """FRAME_MIN_SIZE, as above; 8 octets more are let through (FRAME_SIZE_FUDGE in rabbit_reader.erl)."""
    for size, is_dropped in ((largest, False), (largest + 1, True)):
        peer = Lab(compat=compat).peer()
        peer.send_bytes(b"AMQP\x00\x00\x09\x01")
        peer.expect(commands.Connection.Start, channel=0)
        peer.send_bytes(b"\1\0\0" + size.to_bytes(4, "big") + b"\0")
        peer.lab.advance(3000)
        assert peer.is_dropped is is_dropped


@pytest.mark.parametrize("compat", ["4.2", "4.3"])
def test_the_header_of_0_8_is_refused(compat: str) -> None:
    """rabbit_reader.erl 4.3.5 (handle_input, handshake): no clause accepts the header of 0-8."""
    peer = Lab(compat=compat).peer()
    peer.send_bytes(b"AMQP\x01\x01\x08\x00")
    assert b"".join(peer.session.outbox.take()) == b"AMQP\x00\x00\x09\x01"
    assert peer.is_dropped


# Messages


@pytest.mark.parametrize(("compat", "largest"), [("3.13", 134_217_728), ("4.2", 16_777_216), ("4.3", 16_777_216)])
def test_the_largest_message(compat: str, largest: int) -> None:
    """Release notes of 4.0.1 ("max_message_size"); documentation page "Configuration"."""
    assert Lab(compat=compat).broker.settings.message_bytes_max == largest
    assert Lab(compat=compat, message_bytes_max=7).broker.settings.message_bytes_max == 7


@pytest.mark.parametrize(("compat", "count"), [("3.13", 8), ("4.2", 1), ("4.3", 1)])
def test_deaths_in_headers_of_clients_do_not_count_since_4_0(compat: str, count: int) -> None:
    """mc_amqpl.erl 3.13.7; rabbitmq-server issue 15385 for 4.x."""
    peer = connect(compat)
    peer.declare("dead", durable=True)
    arguments = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments=arguments)
    deaths = [{"count": 7, "reason": "expired", "queue": "q", "exchange": "", "routing-keys": ["q"]}]
    peer.publish("q", headers={"x-death": deaths})
    dead = peer.get("dead")
    assert dead is not None
    [death] = deaths_in(dead[1].properties)
    assert death["count"] == count


# Queues


@pytest.mark.parametrize("compat", ["3.13", "4.2"])
def test_a_queue_may_be_neither_durable_nor_exclusive_until_4_3(compat: str) -> None:
    connect(compat).declare("q")


def test_4_3_refuses_a_queue_that_is_neither_durable_nor_exclusive() -> None:
    """rabbit_amqqueue.erl 4.3.5 (transient_nonexcl_queues, denied_by_default); release notes of 4.3.0.

    The text is that of rabbit_deprecated_features.erl; a live 4.3.6 sends it for another feature that it refuses.
    """
    peer = connect("4.3")
    peer.declare("durable", durable=True)
    peer.declare("exclusive", exclusive=True)
    peer.send(commands.Queue.Declare(queue="q"))
    assert peer.expect_connection_close(541) == (
        "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.\n"
        "By default, this feature is not permitted anymore.\n"
        "The feature will be removed from a future major RabbitMQ version, regardless of the configuration; "
        "actual version to be determined.\nTo..."
    )


@pytest.mark.parametrize("compat", ["4.2", "4.3"])
def test_a_refusal_names_the_configuration(compat: str) -> None:
    """rabbit_deprecated_features.erl (generate_warnings), seen at a live 4.3.6 as Debian patches it."""
    peer = Lab(compat=compat, denied_features="transient_nonexcl_queues").connect()
    peer.send(commands.Queue.Declare(queue="q"))
    text = peer.expect_connection_close(541)
    if compat == "4.3":
        # Refused anyway.
        assert "By default" in text
    else:
        assert text == (
            "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.\n"
            "Its use is not permitted per the configuration (overriding the default, which is permitted):\n"
            '    "deprecated_features.permit.transient_nonexcl_queues = false"\n'
            "Its use will not be permit..."
        )


def test_an_administrator_may_permit_what_4_3_refuses() -> None:
    """Seen at a live 4.3.6 with deprecated_features.permit.NAME = true."""
    lab = Lab(compat="4.3", permitted_features="transient_nonexcl_queues queue_master_locator global_qos")
    peer = lab.connect()
    peer.declare("q", arguments={"x-queue-master-locator": "min-masters"})
    for _ in range(4):
        peer.publish("q")
    peer.send(commands.Basic.Qos(prefetch_count=2, global_=True))
    peer.expect(commands.Basic.QosOk)
    peer.send(*(commands.Basic.Consume(queue="q", consumer_tag=tag) for tag in "ab"))
    assert lab.vhost.queues["q"].unacked_count == 2


@pytest.mark.parametrize(
    ("compat", "arguments", "problem"),
    [
        # rabbit_amqqueue.erl 3.13.7 to 4.2.9 (check_queue_mode)
        ("3.13", {"x-queue-mode": "odd"}, "\"unsupported queue mode 'odd'\""),
        ("4.2", {"x-queue-mode": "odd"}, "\"unsupported queue mode 'odd'\""),
        ("4.2", {"x-queue-mode": "lazy"}, ""),
        # rabbit_amqqueue.erl 4.3.5 has no validator left; a draft of the release notes says that any value is refused
        ("4.3", {"x-queue-mode": "odd"}, ""),
        # rabbit_amqqueue.erl (check_queue_version); release notes of 4.3.0
        ("3.13", {"x-queue-version": 1}, ""),
        ("4.2", {"x-queue-version": 1}, ""),
        ("4.3", {"x-queue-version": 1}, "\"unsupported queue version '1'\""),
        ("4.3", {"x-queue-version": 2}, ""),
        # rabbitmq-server pull request 17144 (4.3.2)
        ("4.2", {"x-consumer-timeout": 60_000}, ""),
        ("4.3", {"x-consumer-timeout": 60_000}, "of queue type rabbit_classic_queue"),
        # rabbit_quorum_queue.erl 4.3.5 (queue_arguments)
        ("4.2", {"x-delayed-retry-type": "all"}, ""),
        ("4.3", {"x-delayed-retry-type": "all"}, "of queue type rabbit_classic_queue"),
    ],
)
def test_arguments_of_classic_queues(compat: str, arguments: dict[str, Any], problem: str) -> None:
    peer = connect(compat)
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments=arguments))
    if problem:
        assert peer.expect_channel_close(406).endswith(problem)
    else:
        peer.expect(commands.Queue.DeclareOk)


def test_4_3_has_no_master_locator() -> None:
    """rabbit_queue_location.erl 4.3.5 (queue_master_locator, denied_by_default)."""
    connect("4.2").declare("q", durable=True, arguments={"x-queue-master-locator": "min-masters"})
    peer = connect("4.3")
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments={"x-queue-master-locator": "min-masters"}))
    assert "`queue_master_locator` is deprecated" in peer.expect_connection_close(541)


@pytest.mark.parametrize(
    ("compat", "permission", "is_allowed"),
    [
        ("3.13", Permission("", "", ""), True),
        ("4.2", Permission("", "", ""), True),
        ("4.3", Permission("", "", ""), False),
        ("4.3", Permission("q", "", ""), True),
        ("4.3", Permission("", "q", ""), True),
        ("4.3", Permission("", "", "q"), True),
    ],
)
def test_passive_declaration_requires_some_permission_in_4_3(
    compat: str, permission: Permission, is_allowed: bool
) -> None:
    """rabbit_channel.erl 4.3.5. It came with 4.2.6, whose release notes speak of configure only; we are 4.2.1."""
    lab = Lab(compat=compat)
    peer = lab.connect()
    peer.declare("q", durable=True)
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", permission)
    peer.send(commands.Queue.Declare(queue="q", passive=True))
    if is_allowed:
        peer.expect(commands.Queue.DeclareOk)
    else:
        peer.expect_channel_close(403)


# Consumers


@pytest.mark.parametrize(("compat", "delivered"), [("3.13", 1), ("4.2", 1), ("4.3", 2)])
def test_a_global_prefetch_applies_to_each_consumer_in_4_3(compat: str, delivered: int) -> None:
    """rabbit_channel.erl 4.3.5 (basic.qos). The Amazon MQ guide says that 4.3 answers with a channel error."""
    peer = connect(compat)
    peer.declare("q", durable=True)
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    for tag in ("one", "two"):
        peer.send(commands.Basic.Consume(queue="q", consumer_tag=tag))
    received = [peer.next()[0] for _ in range(2 + 3 * delivered)]
    assert sum(isinstance(value, commands.Basic.Deliver) for value in received) == delivered
    peer.expect_nothing()


@pytest.mark.parametrize(("compat", "is_closed"), [("3.13", True), ("4.2", True), ("4.3", False)])
def test_classic_queues_have_no_consumer_timeout_in_4_3(compat: str, is_closed: bool) -> None:
    """rabbit_channel.erl and rabbit_classic_queue.erl 4.3.5; release notes of 4.3.0."""
    lab = Lab(compat=compat)
    peer = lab.connect()
    peer.declare("q", durable=True)
    peer.publish("q")
    peer.consume("q")
    peer.expect_delivery()
    lab.advance(32 * MINUTE_MS)
    if is_closed:
        peer.expect_channel_close(406)
    else:
        peer.expect_nothing()


@pytest.mark.parametrize(
    ("compat", "knows_cancel", "kind"),
    [
        ("4.2", True, commands.Channel.Close),
        ("4.3", True, commands.Basic.Cancel),
        ("4.3", False, commands.Channel.Close),
    ],
)
def test_a_slow_consumer_of_a_quorum_queue_is_cancelled_in_4_3(compat: str, knows_cancel: bool, kind: Any) -> None:
    """rabbit_fifo.erl and rabbit_channel.erl 4.3.5; documentation page "Consumers". It does not count as a failure."""
    lab = Lab(compat=compat)
    peer = lab.connect(capabilities={**CAPABILITIES, "consumer_cancel_notify": knows_cancel})
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q")
    peer.consume("q")
    peer.expect_delivery()
    lab.advance(32 * MINUTE_MS)
    assert isinstance(peer.next()[0], kind)
    if kind is commands.Basic.Cancel:
        pulled = peer.get("q")
        assert pulled is not None
        assert pulled[1].properties.headers == {"x-acquired-count": 1}


# Direct replies


def requested(compat: str) -> tuple[Peer, Peer, str]:
    """A client that waits for direct replies, another one, and the name to reply to."""
    lab = Lab(compat=compat)
    client, server = lab.connect(), lab.connect()
    server.declare("requests", durable=True)
    client.consume(REPLY_TO, "c", no_ack=True)
    client.publish("requests", reply_to=REPLY_TO)
    request = server.get("requests")
    assert request is not None
    return client, server, present(request[1].properties.reply_to)


@pytest.mark.parametrize(("compat", "tags"), [("3.13", [1, 1]), ("4.0", [1, 1]), ("4.2", [1, 2]), ("4.3", [1, 2])])
def test_direct_replies_have_their_own_tags_since_4_2(compat: str, tags: list[int]) -> None:
    """deliver_reply of rabbit_channel.erl 3.13.7 and 4.0.5 sends the next tag and does not use it up."""
    client, server, name = requested(compat)
    for body in (b"1", b"2"):
        server.publish(name, body)
    assert [deliver.delivery_tag for deliver, _ in client.deliveries()] == tags


@pytest.mark.parametrize(("compat", "is_returned"), [("3.13", True), ("4.0", True), ("4.2", False), ("4.3", False)])
def test_a_late_direct_reply_is_not_returned_since_4_2(compat: str, is_returned: bool) -> None:
    """rabbit_volatile_queue.erl 4.2 (deliver settles whether anybody is there or not)."""
    client, server, name = requested(compat)
    client.disconnect()
    server.publish(name, mandatory=True)
    if is_returned:
        assert server.expect(commands.Basic.Return).reply_code == 312
    else:
        server.expect_nothing()


@pytest.mark.parametrize(("compat", "code"), [("3.13", 404), ("4.2", 404), ("4.3", 403)])
def test_a_name_for_direct_replies_cannot_be_bound(compat: str, code: int) -> None:
    """rabbit_channel.erl 4.3.6 (reject_volatile_queue_as_binding_target); since 4.2.6, and we are 4.2.1."""
    _, server, name = requested(compat)
    server.send(commands.Queue.Bind(queue=REPLY_TO, exchange="amq.fanout"))
    assert f"queue '{REPLY_TO}' in vhost '/'" in server.expect_channel_close(404)
    server.open_channel(1)
    server.send(commands.Queue.Bind(queue=name, exchange="amq.fanout"))
    text = server.expect_channel_close(code)
    assert text.endswith("cannot bind or unbind to a volatile (direct reply-to) queue") is (code == 403)


@pytest.mark.parametrize(("compat", "crashes"), [("3.13", False), ("4.2", False), ("4.3", True)])
def test_the_channel_of_4_3_crashes_on_two_mistakes(compat: str, crashes: bool) -> None:
    """Recorded at 3.10.8, 4.0.5 and 4.3.6."""
    peer = connect(compat)
    peer.send(commands.Queue.Declare(queue=f"{REPLY_TO}.nonsense", passive=True))
    if crashes:
        assert peer.expect_connection_close(541) == "INTERNAL_ERROR"
    else:
        peer.expect_channel_close(404)
    peer = connect(compat)
    peer.send(commands.Basic.CancelOk("one"))
    peer.expect_connection_close(541 if crashes else 503)


@pytest.mark.parametrize(("compat", "kind"), [("3.13", "quorum"), ("4.2", "quorum"), ("4.3", '<<"quorum">>')])
def test_basic_get_is_refused_beside_a_single_active_consumer(compat: str, kind: str) -> None:
    """Recorded at 3.10.8, 4.0.5 and 4.3.6."""
    peer = connect(compat)
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-single-active-consumer": True})
    peer.send(commands.Basic.Get(queue="q"))
    assert f"not supported by {kind} queues" in peer.expect_channel_close(405)


@pytest.mark.parametrize(("compat", "age"), [("3.13", "1D"), ("4.2", "1D"), ("4.3", "86400000")])
def test_4_3_compares_the_age_of_a_stream_in_ms(compat: str, age: str) -> None:
    """rabbit_amqqueue.erl 4.3.6 (normalize_max_age)."""
    peer = connect(compat)
    stream: dict[str, Any] = {"x-queue-type": "stream"}
    peer.declare("s", durable=True, arguments={**stream, "x-max-age": "1D"})
    if compat == "4.3":
        peer.declare("s", durable=True, arguments={**stream, "x-max-age": "24h"})
    peer.send(commands.Queue.Declare(queue="s", durable=True, arguments=stream))
    assert f"current is the value '{age}' of type 'longstr'" in peer.expect_channel_close(406)


@pytest.mark.parametrize(
    ("compat", "source", "target", "redelivered", "count"),
    [
        ("3.13", "quorum", "quorum", False, None),
        ("4.2", "quorum", "quorum", True, 1),
        ("4.2", "quorum", "classic", False, None),
        ("4.2", "classic", "quorum", False, None),
        ("4.3", "quorum", "quorum", True, 1),
        ("4.3", "quorum", "classic", True, None),
        ("4.3", "classic", "quorum", True, 1),
        ("4.3", "classic", "classic", True, None),
    ],
)
def test_a_dead_letter_brings_its_failures_along(
    compat: str, source: str, target: str, redelivered: bool, count: int | None
) -> None:
    """rabbit_fifo.erl 4.0.5 and 4.3.6, rabbit_variable_queue.erl 4.3.6; seen at a live 4.3.6."""
    peer = connect(compat)
    peer.declare("dead", durable=True, arguments={"x-queue-type": target})
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments={"x-queue-type": source, **letters})
    peer.publish("q")
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Reject(1, False))
    dead = peer.get("dead")
    assert dead is not None
    assert dead[0].redelivered is redelivered
    assert present(dead[1].properties.headers).get("x-delivery-count") == count


@pytest.mark.parametrize(("compat", "shown"), [("3.13", "+060000"), ("4.2", "60000"), ("4.3", "60000")])
def test_expirations_are_plain_since_4_0(compat: str, shown: str) -> None:
    """mc_amqpl.erl 4.0.5 (protocol_state)."""
    peer = connect(compat)
    peer.declare("q", durable=True)
    peer.publish("q", expiration="+060000")
    got = peer.get("q")
    assert got is not None
    assert got[1].properties.expiration == shown
