from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from amqp_broker.testing import EmbeddedBroker
from compat.brokers import free_port
from compat.certificates import Issuer
from compat.waiting import wait_until
from pyspark_amqp.address import from_url
from pyspark_amqp.amqp_connection import CHANNEL_MAX, Connection
from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError
from pyspark_amqp.format_options import read_source
from pyspark_amqp.reconnecting import persist
from tests.pyspark_amqp.conftest import At


def test_deliveries_are_ordered_and_requeued_on_close(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, [b"%d" % number for number in range(300)])
    with Connection(from_url(broker.url)) as connection:
        assert connection.check_no_stream(queue).message_count == 300
        connection.consume(queue, 200)
        bodies = []
        while runs := connection.poll(0.5):
            bodies += [body for run in runs for body in run.bodies]
            tag = runs[0].tag
        assert bodies == [b"%d" % number for number in range(200)]
        connection.ack(tag)
    # RabbitMQ requeues after it has answered the close.
    wait_until(lambda: broker.count(queue) == 300 - tag)


def test_a_body_of_many_frames_is_whole(broker: At) -> None:
    queue = broker.queue()
    body = bytes(range(256)) * 8192
    broker.publish(queue, [body, b""])
    with Connection(from_url(broker.url)) as connection:
        connection.open_channel()
        connection.consume(queue, 2)
        found = connection.poll(5)
        while len(found) < 2:
            found += connection.poll(5)
        assert [body for run in found for body in run.bodies] == [body, b""]


def test_a_missing_queue_is_reported_with_its_option(broker: At) -> None:
    with Connection(from_url(broker.url)) as connection:
        connection.open_channel()
        with pytest.raises(OptionError, match="option 'queue': NOT_FOUND - no queue 'nope'"):
            connection.check_queue("nope")


def test_a_stream_is_distinguished_from_a_queue_without_a_delivery(broker: At) -> None:
    queue, stream = broker.queue(), broker.stream()
    broker.publish(queue, [b"a"])
    with Connection(from_url(broker.url)) as connection:
        connection.check_no_stream(queue)
        with pytest.raises(OptionError, match=r"option 'queueType'.*queueType=stream"):
            connection.check_no_stream(stream)
    method, _, _ = broker.channel.basic_get(queue, auto_ack=True)
    assert not method.redelivered


@pytest.mark.parametrize(
    ("change", "option"),
    [(("guest:guest", "guest:wrong"), "url"), (("guest:guest", "nobody:x"), "url")],
)
def test_a_refused_login_is_an_error(broker: At, change: tuple[str, str], option: str) -> None:
    with pytest.raises(OptionError, match=f"option '{option}': ACCESS_REFUSED"):
        Connection(from_url(broker.url.replace(*change)))


def test_a_password_that_changes_is_read_again(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("guest", "utf-8")
    with EmbeddedBroker() as broker:
        given = {"host": "127.0.0.1", "port": str(broker.port), "queue": "q", "passwordFile": str(secret)}
        address = read_source(given, is_streaming=True).address
        Connection(address).close()
        broker.ask(lambda server: server.broker.users.change_password(server.broker.users["guest"], "changed"))
        # The file is late, so the login is tried again.
        with pytest.raises(ConnectionLost, match=r"ACCESS_REFUSED.* \(reconnectTimeout of 0 s is over\)"):
            persist(replace(address, reconnect_timeout_s=0), lambda: Connection(address))
        secret.write_text("changed", "utf-8")
        Connection(address).close()


def test_a_wrong_password_in_a_file_is_an_error_that_names_the_option(amqp_broker: At, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("wrong", "utf-8")
    given = {"url": amqp_broker.url.replace("guest:guest", "guest"), "queue": "q", "passwordFile": str(secret)}
    address = read_source(given, is_streaming=True).address
    with pytest.raises(OptionError, match="option 'passwordFile': ACCESS_REFUSED"):
        persist(address, lambda: Connection(address))


def test_a_missing_vhost_is_an_error(broker: At) -> None:
    with pytest.raises(OptionError, match=r"option 'url': .*vhost nope not found"):
        Connection(from_url(f"{broker.url.rsplit('/', 1)[0]}/nope"))


def test_a_closed_port_is_an_error() -> None:
    with pytest.raises(ConnectionLost, match=r"^cannot connect to 127.*Connection refused"):
        Connection(from_url(f"amqp://127.0.0.1:{free_port()}"))


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (b"HTTP/1.1 400 Bad Request", OptionError, "option 'url': 127.* does not speak AMQP 0-9-1.*HTTP/1"),
        (b"AMQP\0\1\0\0", OptionError, "option 'url': 127.* does not speak AMQP 0-9-1.*AMQP"),
        # A broker that is just being stopped, or a proxy without one.
        (b"", ConnectionLost, "the connection to 127.* was lost: the broker closed the socket"),
    ],
)
def test_a_server_without_amqp_is_an_error(answer: bytes, error: type[Exception], text: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            peer.recv(8)
            peer.sendall(answer)
            peer.close()

        threading.Thread(target=serve).start()
        with pytest.raises(error, match=text):
            Connection(from_url(f"amqp://127.0.0.1:{server.getsockname()[1]}"))


def test_the_first_host_that_answers_is_used(amqp_broker: At) -> None:
    place = amqp_broker.url.removeprefix("amqp://guest:guest@")
    with Connection(from_url(f"amqp://guest:guest@127.0.0.1:{free_port()},nowhere.invalid,{place}")) as connection:
        connection.open_channel()
        assert str(connection.host) == place.partition("/")[0]
    with pytest.raises(
        ConnectionLost, match=r"cannot connect to 127.*refused; cannot connect to nowhere\.invalid:5672"
    ):
        Connection(from_url(f"amqp://127.0.0.1:{free_port()},nowhere.invalid"))


def test_the_numbers_of_channels_begin_anew(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    with Connection(from_url(amqp_broker.url)) as connection:
        for _ in range(2 * CHANNEL_MAX + 1):
            connection.open_channel()
            connection.close_channel()
        connection.open_channel()
        assert connection.frames.channel == 2
        assert connection.check_queue(queue).message_count == 0


@pytest.mark.parametrize(
    ("code", "text", "is_lost"),
    [
        (320, "CONNECTION_FORCED - broker forced connection closure", True),
        (541, "INTERNAL_ERROR - vhost '/' is down", True),
        (404, "NOT_FOUND - queue 'q' in vhost '/' process is stopped by supervisor", True),
        (404, "NOT_FOUND - home node 'b' of durable queue 'q' in vhost '/' is down or inaccessible", True),
        (404, "NOT_FOUND - no queue 'q' in vhost '/'", False),
        (406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out", False),
    ],
)
def test_a_refusal_that_may_pass_is_a_lost_connection(amqp_broker: At, code: int, text: str, is_lost: bool) -> None:
    with Connection(from_url(amqp_broker.url)) as connection:
        connection.open_channel()
        with pytest.raises(BrokerError, match=text) as refused:
            connection.heed(1, spec.Channel.Close(code, text, 0, 0))
        assert isinstance(refused.value, ConnectionLost) == is_lost


def test_a_deleted_queue_of_a_consumer_is_an_error(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    with Connection(from_url(amqp_broker.url)) as connection:
        connection.open_channel()
        connection.consume(queue, 1)
        amqp_broker.channel.queue_delete(queue)
        with pytest.raises(BrokerError, match="cancelled the consumer"):
            connection.poll(5)


def test_a_stopped_broker_is_a_lost_connection() -> None:
    with EmbeddedBroker() as broker:
        connection = Connection(from_url(broker.url))
        connection.open_channel()
        broker.stop()
        with pytest.raises(ConnectionLost):
            connection.poll(5)
        connection.drop()


def test_alarms_are_noticed(amqp_broker: At) -> None:
    connection = Connection(from_url(amqp_broker.url))
    connection.heed(0, spec.Connection.Blocked("memory"))
    assert connection.is_blocked
    connection.heed(0, spec.Connection.Unblocked())
    assert not connection.is_blocked
    connection.close()


def test_tls_checks_the_brokers_certificate(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    served = issuer.server()
    files: dict[str, Any] = {"tls_cert_file": str(served.certificate), "tls_key_file": str(served.key)}
    with EmbeddedBroker(tls_port=0, **files) as broker:
        port = broker.ask(lambda server: server.ports["amqps"])
        given = {"host": "localhost", "port": str(port), "tls": "true", "queue": "q"}
        trusting = read_source({**given, "tls.caFile": str(issuer.authority)}, is_streaming=True)
        with Connection(trusting.address) as connection:
            connection.open_channel()
        with pytest.raises(OptionError, match=r"option 'host'.*certificate"):
            Connection(read_source(given, is_streaming=True).address)
        blind = read_source({**given, "tls.verify": "false"}, is_streaming=True)
        Connection(blind.address).close()


def test_a_certificate_names_the_user(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    served = issuer.server()
    settings: dict[str, Any] = {"tls_cert_file": str(served.certificate), "tls_key_file": str(served.key)}
    settings |= {"tls_ca_file": str(issuer.authority), "tls_verify_peer": True}
    settings |= {"auth_mechanisms": "PLAIN EXTERNAL", "tls_login_from": "common_name"}
    with EmbeddedBroker(tls_port=0, **settings) as broker:
        given = {"host": "localhost", "port": str(broker.ask(lambda server: server.ports["amqps"])), "queue": "q"}
        given |= {"tls": "true", "tls.caFile": str(issuer.authority), "authMechanism": "external"}

        def login(name: str) -> Connection:
            client = issuer.client(name)
            files = {"tls.certFile": str(client.certificate), "tls.keyFile": str(client.key)}
            return Connection(read_source({**given, **files}, is_streaming=True).address)

        with login("guest"):
            names = broker.ask(lambda server: [one.user.name for one in server.broker.connections if one.user])
            assert names == ["guest"]
        with pytest.raises(OptionError, match=r"option 'tls.certFile': ACCESS_REFUSED"):
            login("nobody")
