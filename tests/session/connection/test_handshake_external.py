"""EXTERNAL: the TLS certificate names the user, as with rabbitmq_auth_mechanism_ssl.

RabbitMQ 3.10.8 was asked where it offers the mechanism, and what each of these refusals looks like.
"""

from __future__ import annotations

import logging

import pytest
from pamqp.commands import Connection

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.clients.peer import Tls
from tests.peer import CAPABILITIES, Lab, Peer

HEADER = b"AMQP\x00\x00\x09\x01"
REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism EXTERNAL. For details see the broker logfile."
)
NO_CERTIFICATE = Tls("tlsv1.3", "any", "aes_256_gcm", "aead")
MECHANISMS = "PLAIN AMQPLAIN EXTERNAL"


def certificate_of(login_name: str | None) -> Tls:
    return Tls("tlsv1.3", "any", "aes_256_gcm", "aead", "O=client,CN=anna", "CN=ca", "a - b", "5", login_name)


@pytest.fixture
def lab() -> Lab:
    lab = Lab(auth_mechanisms=MECHANISMS)
    anna = lab.broker.users.add("O=client,CN=anna", "secret")
    lab.broker.users.set_permission(anna, "/", Permission())
    return lab


def log_in(lab: Lab, tls: Tls | None, response: str = "", host: str = "127.0.0.1") -> Peer:
    peer = lab.peer(host)
    peer.session.tls = tls
    peer.send_bytes(HEADER)
    peer.expect(Connection.Start, channel=0)
    peer.send(Connection.StartOk({"capabilities": dict(CAPABILITIES)}, "EXTERNAL", response), channel=0)
    return peer


@pytest.mark.parametrize(
    ("tls", "offered"),
    [
        (None, "PLAIN AMQPLAIN"),
        (NO_CERTIFICATE, MECHANISMS),
        (certificate_of("anna"), MECHANISMS),
    ],
    ids=["plain", "no certificate", "a certificate"],
)
def test_external_is_offered_over_tls_with_or_without_a_certificate(lab: Lab, tls: Tls | None, offered: str) -> None:
    peer = lab.peer()
    peer.session.tls = tls
    peer.send_bytes(HEADER)
    assert peer.expect(Connection.Start, channel=0).mechanisms == offered


def test_external_is_not_offered_unless_it_is_configured() -> None:
    peer = Lab().peer()
    peer.session.tls = certificate_of("anna")
    peer.send_bytes(HEADER)
    assert peer.expect(Connection.Start, channel=0).mechanisms == "PLAIN AMQPLAIN ANONYMOUS"


@pytest.mark.parametrize("response", ["", "guest", "\0guest\0guest"])
def test_the_certificate_determines_the_user(lab: Lab, response: str) -> None:
    peer = log_in(lab, certificate_of("O=client,CN=anna"), response)
    peer.expect(Connection.Tune, channel=0)
    assert peer.session.user is lab.broker.users["O=client,CN=anna"]


@pytest.mark.parametrize(
    ("tls", "reason"),
    [
        (NO_CERTIFICATE, "connection peer presented no TLS (x.509) certificate"),
        (certificate_of(None), "no name found"),
        (certificate_of("CN=nobody"), "user 'CN=nobody' - invalid credentials"),
        (certificate_of(""), "user '' - invalid credentials"),
    ],
    ids=["no certificate", "no name", "no user", "empty name"],
)
def test_invalid_certificates_are_refused_and_the_reason_is_logged(
    lab: Lab, caplog: pytest.LogCaptureFixture, tls: Tls, reason: str
) -> None:
    with caplog.at_level(logging.INFO):
        peer = log_in(lab, tls)
    assert peer.expect_connection_close(403) == REFUSED
    assert any(
        message.startswith("Error on AMQP connection") and message.endswith(f"EXTERNAL login refused: {reason}")
        for message in caplog.messages
    )


def test_guest_may_log_in_by_certificate_from_this_machine_only(lab: Lab) -> None:
    log_in(lab, certificate_of("guest")).expect(Connection.Tune, channel=0)
    assert log_in(lab, certificate_of("guest"), host="192.0.2.1").expect_connection_close(403) == REFUSED


def test_external_without_tls_is_an_unknown_mechanism(lab: Lab) -> None:
    peer = log_in(lab, None)
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()
