"""AMQP over TLS beside plain AMQP, on real sockets."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pika
import pytest
from pamqp import commands

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.clients.client_connection import Connection
from amqp_broker.broker.clients.peer import Tls
from amqp_broker.server import handshakes, tls
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from amqp_broker.server.tls import VERSIONS, listener
from amqp_broker.settings.settings import Settings
from compat.brokers import free_port
from compat.certificates import Issued, Issuer
from compat.waiting import wait_until
from tests.client import PROTOCOL_HEADER, TIMEOUT_S, Client
from tests.running import RunningServer

NewLoop = Callable[[], asyncio.AbstractEventLoop]
MECHANISMS = "PLAIN AMQPLAIN EXTERNAL"
BODY = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    """Return an untrusted authority."""
    return Issuer(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="module")
def served(issuer: Issuer) -> Issued:
    return issuer.server()


def settings(served: Issued, **others: object) -> dict[str, Any]:
    files = {"tls_cert_file": str(served.certificate), "tls_key_file": str(served.key)}
    return {**files, "tls_ca_file": str(served.authority), "tls_verify_peer": True, **others}


@pytest.fixture
def running(new_loop: NewLoop, served: Issued) -> Iterator[RunningServer]:
    """Provide a server that requests certificates but accepts clients without one."""
    with RunningServer(new_loop, **settings(served, auth_mechanisms=MECHANISMS)) as running:
        yield running


def tls_port(running: RunningServer) -> int:
    return running.server.ports["amqps"]


class TlsClient(Client):
    """Return a TLS client."""

    def __init__(self, running: RunningServer, context: ssl.SSLContext) -> None:
        super().__init__(tls_port(running))
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


def pika_connection(
    running: RunningServer, context: ssl.SSLContext, credentials: object = None
) -> pika.BlockingConnection:
    options = pika.SSLOptions(context, "localhost")
    parameters = pika.ConnectionParameters("127.0.0.1", tls_port(running), ssl_options=options)
    if credentials is not None:
        parameters.credentials = credentials
    return pika.BlockingConnection(parameters)


def connections(server: Server) -> list[Connection]:
    return list(server.broker.connections)


def is_refused(running: RunningServer, context: ssl.SSLContext) -> bool:
    """Return True if the broker closes the connection; TLS 1.3 clients notice after their handshake."""
    try:
        client = TlsClient(running, context)
        client.send_bytes(PROTOCOL_HEADER)
        return not client.socket.recv(1000)
    except (ssl.SSLError, ConnectionError):
        return True


def count_handshakes(server: Server) -> int:
    # asyncio's own transport is freed only then.
    gc.collect()
    return len(tls.handshakes)


# Accepted clients


def test_plain_and_tls_are_served_side_by_side(running: RunningServer, issuer: Issuer) -> None:
    with Client(running.port).open() as plain, TlsClient(running, issuer.context()).open() as secure:
        plain.declare("q")
        secure.publish("q", b"from afar")
        secure.sync()
        plain.call(commands.Basic.Get(queue="q"))
        assert plain.expect_body() == b"from afar"
        facts = running.ask(lambda server: {connection.tls is None for connection in connections(server)})
        assert facts == {True, False}


@pytest.mark.parametrize("has_certificate", [False, True])
def test_pika_works_over_tls_with_and_without_a_certificate(
    running: RunningServer, issuer: Issuer, has_certificate: bool
) -> None:
    context = issuer.client("anna").context() if has_certificate else issuer.context()
    with pika_connection(running, context) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for _ in range(5):
            channel.basic_publish("", "q", BODY)
        bodies = [channel.basic_get("q", auto_ack=True)[2] for _ in range(5)]
        assert bodies == [BODY] * 5
        [facts] = running.ask(lambda server: [connection.tls for connection in connections(server)])
        assert facts is not None
        assert facts.peer_cert_subject == ("CN=anna,OU=tests,O=clients\\, brokers" if has_certificate else "")


def test_tls_properties_have_rabbitmqs_names(running: RunningServer, issuer: Issuer) -> None:
    context = issuer.client("anna").context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-SHA256")
    with TlsClient(running, context).open(), TlsClient(running, issuer.context()).open():
        facts = running.ask(lambda server: {c.tls.ssl_protocol: c.tls for c in connections(server) if c.tls})
    assert facts["tlsv1.3"] == Tls("tlsv1.3", "any", facts["tlsv1.3"].ssl_cipher, "aead")
    assert facts["tlsv1.3"].ssl_cipher in ("aes_256_gcm", "aes_128_gcm", "chacha20_poly1305")
    told = facts["tlsv1.2"]
    assert (told.ssl_key_exchange, told.ssl_cipher, told.ssl_hash) == ("ecdhe_ecdsa", "aes_128_cbc", "sha256")
    assert told.peer_cert_subject == "CN=anna,OU=tests,O=clients\\, brokers"
    assert told.peer_cert_issuer == "CN=test authority,OU=authorities,O=clients\\, brokers"
    assert told.peer_cert_validity.count("Z - ") == 1


def test_a_slow_reader_gets_a_large_body(running: RunningServer, issuer: Issuer) -> None:
    with TlsClient(running, issuer.context()).open() as consumer, Client(running.port).open() as publisher:
        consumer.declare("q")
        consumer.consume("q", no_ack=True)
        for _ in range(20):
            publisher.publish("q", BODY)
        publisher.sync()
        running.until(lambda server: any(session.is_backpressured for session in server.transports))
        assert [consumer.expect_delivery()[1] for _ in range(20)] == [BODY] * 20


def test_a_client_logs_in_with_its_certificate(running: RunningServer, issuer: Issuer) -> None:
    def add(server: Server) -> None:
        user = server.broker.users.add("CN=anna,OU=tests,O=clients\\, brokers", "unknown")
        server.broker.users.set_permission(user, "/", Permission())

    running.ask(add)
    context = issuer.client("anna").context()
    with pika_connection(running, context, pika.credentials.ExternalCredentials()):
        [name] = running.ask(lambda server: [c.user.name for c in connections(server) if c.user])
        assert name == "CN=anna,OU=tests,O=clients\\, brokers"
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        pika_connection(running, issuer.context(), pika.credentials.ExternalCredentials())


@pytest.mark.parametrize(
    ("login_from", "name"), [("common_name", "anna"), ("subject_alternative_name", "anna.example.com")]
)
def test_the_user_comes_from_the_configured_part_of_the_certificate(
    issuer: Issuer, served: Issued, login_from: str, name: str
) -> None:
    context = issuer.client("anna", "anna.example.com").context()
    with (
        RunningServer(**settings(served, tls_login_from=login_from)) as running,
        TlsClient(running, context).open(),
    ):
        assert running.ask(lambda server: [c.tls.login_name for c in connections(server) if c.tls]) == [name]


def test_a_stop_closes_tls_connections(running: RunningServer, issuer: Issuer) -> None:
    client = TlsClient(running, issuer.context()).open()
    waiting = threading.Thread(target=running.stop)
    waiting.start()
    assert client.expect(commands.Connection.Close, channel=0).reply_code == 320
    waiting.join()


def test_a_lost_client_is_removed(running: RunningServer, issuer: Issuer) -> None:
    for leave in (Client.close, Client.reset, lambda client: client.socket.unwrap()):
        client = TlsClient(running, issuer.context()).open()
        client.declare("q", exclusive=True)
        leave(client)
        running.until(lambda server: not server.transports and not server.broker.vhosts["/"].queues)


# Refused clients


def test_a_required_certificate_must_be_valid(
    new_loop: NewLoop, issuer: Issuer, stranger: Issuer, served: Issued
) -> None:
    foreign = stranger.client("anna")
    wrong = issuer.context()
    wrong.load_cert_chain(foreign.certificate, foreign.key)
    with RunningServer(new_loop, **settings(served, tls_require_peer_cert=True)) as running:
        assert is_refused(running, issuer.context())
        assert is_refused(running, wrong)
        assert is_refused(running, issuer.expired().context())
        assert not is_refused(running, issuer.client("anna").context())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shown", ["no certificate", "a stranger's", "an expired one"])
def test_the_alert_names_the_reason_of_a_refusal_as_that_of_rabbitmq_4_3(
    new_loop: NewLoop, issuer: Issuer, stranger: Issuer, served: Issued, shown: str, version: ssl.TLSVersion
) -> None:
    context = issuer.expired().context() if shown == "an expired one" else issuer.context()
    if shown == "a stranger's":
        foreign = stranger.client("anna")
        context.load_cert_chain(foreign.certificate, foreign.key)
    context.minimum_version = context.maximum_version = version
    alerts = {
        "no certificate": "alert (certificate required|handshake failure)",
        "a stranger's": "alert unknown ca",
        "an expired one": "alert certificate expired",
    }
    with RunningServer(new_loop, **settings(served, tls_require_peer_cert=True)) as running:
        with pytest.raises(ssl.SSLError, match=alerts[shown]):
            # With TLS 1.3 the client's handshake is complete before the broker sees the certificate.
            TlsClient(running, context).socket.recv(1)
        wait_until(lambda: running.ask(count_handshakes) == 0)


@pytest.mark.parametrize(
    ("sent", "logged"),
    [
        (PROTOCOL_HEADER, "wrong version number: the client may connect without TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "http request: the client connects without TLS"),
    ],
)
def test_a_client_without_tls_is_closed_at_once_and_the_log_says_so(
    running: RunningServer, caplog: pytest.LogCaptureFixture, sent: bytes, logged: str
) -> None:
    with caplog.at_level(logging.INFO, "amqp_broker"), Client(tls_port(running)) as plain:
        plain.send_bytes(sent)
        assert plain.socket.recv(1) == b""
    assert f"TLS handshake failed: {logged}" in caplog.messages


def test_a_refused_client_that_goes_on_is_closed(
    new_loop: NewLoop, issuer: Issuer, served: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The end of the handshake's time would close the socket as well.
    monkeypatch.setattr(handshakes, "DURATION_S_MAX", 600)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = issuer.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with (
        RunningServer(new_loop, **settings(served, tls_require_peer_cert=True)) as running,
        socket.create_connection(("127.0.0.1", tls_port(running))) as peer,
    ):
        peer.settimeout(TIMEOUT_S)
        for _ in range(2):
            with suppress(ssl.SSLWantReadError):
                connection.do_handshake()
            peer.sendall(outgoing.read())
            incoming.write(peer.recv(65536))
        # It reads no alert, and sends more.
        peer.sendall(b"\0" * 8)
        with suppress(ConnectionResetError):
            while peer.recv(65536):
                pass


def test_an_optional_certificate_must_be_valid(
    running: RunningServer, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "amqp_broker"):
        assert is_refused(running, issuer.expired().context())
        wait_until(lambda: "TLS handshake failed" in caplog.text)
    assert "TLS handshake failed: certificate verify failed: certificate has expired" in caplog.messages


def test_a_client_that_distrusts_the_broker_is_logged(
    running: RunningServer, stranger: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "amqp_broker"):
        with pytest.raises(ssl.SSLCertVerificationError):
            TlsClient(running, stranger.context())
        wait_until(lambda: "TLS handshake failed: tlsv1 alert unknown ca" in caplog.messages)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_versions_before_1_2_are_refused(running: RunningServer, issuer: Issuer, version: ssl.TLSVersion) -> None:
    context = issuer.context()
    context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert is_refused(running, context)


@pytest.mark.parametrize("versions", ["tlsv1.2", "tlsv1.1 tlsv1.3", "tlsv1.1"])
def test_only_the_configured_versions_are_accepted(
    new_loop: NewLoop, issuer: Issuer, served: Issued, versions: str
) -> None:
    with RunningServer(new_loop, **settings(served, tls_versions=versions)) as running:
        for name, version in VERSIONS.items():
            context = issuer.context()
            context.minimum_version = context.maximum_version = version
            assert is_refused(running, context) == (name not in versions)


def test_no_session_tickets_come_before_the_first_frame(running: RunningServer, issuer: Issuer) -> None:
    with TlsClient(running, issuer.context()).open() as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        assert client.socket.version() == "TLSv1.3"
        session = client.socket.session
        assert session is None or not session.has_ticket


# Isolation from other clients


@pytest.mark.parametrize(
    "said", [PROTOCOL_HEADER, b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x16\x03\x01\x40\x00" + bytes(99)]
)
def test_plaintext_on_the_tls_port_is_disconnected(running: RunningServer, issuer: Issuer, said: bytes) -> None:
    with TlsClient(running, issuer.context()).open() as other:
        client = Client(tls_port(running))
        client.send_bytes(said)
        if not said.startswith(b"\x16"):
            assert not client.expect_end().startswith(b"AMQP")
        client.close()
        other.declare("q")
        assert len(running.ask(lambda server: list(server.transports))) == 1


def test_tls_on_the_plain_port_fails(running: RunningServer, issuer: Issuer) -> None:
    with Client(running.port).open() as other:
        client = Client(running.port)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            issuer.context().wrap_socket(client.socket, server_hostname="localhost")
        other.declare("q")


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00"])
def test_a_stalled_handshake_is_aborted(new_loop: NewLoop, issuer: Issuer, served: Issued, said: bytes) -> None:
    with RunningServer(new_loop, **settings(served, handshake_timeout_ms=1500)) as running:
        stalled = [Client(tls_port(running)) for _ in range(20)]
        for client in stalled:
            client.send_bytes(said)
        # Other clients are not delayed.
        TlsClient(running, issuer.context()).open().close()
        for client in stalled:
            assert client.expect_end() in (b"", b"\x15\x03\x01\x00\x02\x02\x32")


def test_a_client_that_stalls_after_the_handshake_has_the_usual_timeout(running: RunningServer, issuer: Issuer) -> None:
    client = TlsClient(running, issuer.context())
    running.until(lambda server: len(server.transports) == 1)
    running.live_through(9_999)
    assert running.ask(lambda server: len(server.transports)) == 1
    running.live_through(1)
    assert client.expect_end() == b""


# Listeners


def test_tls_is_off_by_default() -> None:
    assert listener(Settings()) is None
    with RunningServer() as running:
        assert running.server.ports.keys() == {"amqp"}


def test_the_tls_port_is_5671_or_free_like_the_amqp_port(served: Issued) -> None:
    assert Settings().port_of(5671, Settings().tls_port) == 5671
    with RunningServer(**settings(served)) as running:
        assert tls_port(running) not in (0, running.port)


def test_the_listener_is_logged_in_rabbitmqs_words(served: Issued, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "amqp_broker"), RunningServer(**settings(served)) as running:
        assert [message for message in caplog.messages if message.startswith("started")] == [
            f"started TCP listener on 127.0.0.1:{running.port}",
            f"started TLS (SSL) listener on 127.0.0.1:{tls_port(running)}",
        ]


def test_a_used_port_is_named_and_the_others_are_closed(served: Issued) -> None:
    plain = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with (
            pytest.raises(CannotListen, match="in use") as caught,
            RunningServer(**settings(served, port=plain, tls_port=number)),
        ):
            pass
    assert caught.value.port == number
    socket.create_server(("127.0.0.1", plain)).close()
