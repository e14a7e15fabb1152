"""A capture over HTTP lasts until the client leaves."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.management.api.capture import BATCH, BATCH_BYTES, batches
from amqp_broker.management.documents.capture_file import Skipped, read
from tests.client import Client
from tests.management.asking import Desk
from tests.running import RunningServer

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
PATH = "/_broker/capture/%2F"


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with RunningServer(management=True, management_port=0) as running:
        yield running


def asked(server: RunningServer, path: str = PATH) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server.ports["management"], timeout=20)
    connection.request("GET", path, headers=GUEST)
    return connection, connection.getresponse()


def is_traced(server: RunningServer) -> bool:
    return server.ask(lambda one: one.broker.vhosts["/"].trace is not None)


def test_publishes_are_streamed_as_lines_until_the_connection_ends(server: RunningServer) -> None:
    connection, answer = asked(server)
    header = answer.readline()
    assert (answer.status, answer.getheader("Content-Type")) == (200, "application/x-ndjson")
    with Client(server.port).open() as client:
        client.declare("q")
        client.publish("q", b"one")
        client.publish("q", b"\xff")
        client.sync()
        lines = [answer.readline(), answer.readline()]
        read_again = [one.message.body for one in read([header, *lines]) if not isinstance(one, Skipped)]
        assert read_again == [b"one", b"\xff"]
        assert is_traced(server)
        answer.close()
        connection.close()
        server.until(lambda one: one.broker.vhosts["/"].trace is None)


def test_a_capture_ends_when_its_vhost_is_deleted(server: RunningServer) -> None:
    server.ask(lambda one: one.broker.add_vhost("v"))
    connection, answer = asked(server, "/_broker/capture/v")
    assert answer.readline()
    server.ask(lambda one: one.broker.delete_vhost("v"))
    assert answer.read() == b""
    connection.close()


def test_only_matching_messages_are_sent(server: RunningServer) -> None:
    connection, answer = asked(server, PATH + "?exchange=amq.default&routing_key=b*")
    answer.readline()
    with Client(server.port).open() as client:
        for key in ("a", "b"):
            client.publish(key, key.encode())
        client.sync()
    assert b'"body": "b"' in answer.readline()
    connection.close()


@pytest.mark.parametrize(
    ("path", "query", "status", "reason"),
    [
        ("/_broker/capture/nope", {}, 404, "no vhost 'nope'"),
        (PATH, {"exchange": "nope"}, 404, "no exchange 'nope' in vhost '/'"),
        (PATH, {"color": "red"}, 400, "unknown parameters: color"),
    ],
)
def test_an_invalid_capture_is_refused(path: str, query: dict[str, str], status: int, reason: str) -> None:
    assert Desk().get(path, **query) == (status, reason)


def captured(size: int) -> CapturedMessage:
    return CapturedMessage(0, Message.build(Address("", "q"), Properties(), bytes(size)))


def test_messages_are_written_in_batches_of_a_bounded_size() -> None:
    small, large = captured(10), captured(BATCH_BYTES)
    assert list(batches([])) == []
    assert list(batches([small, large, small, small, large])) == [[small], [large], [small, small], [large]]
    assert [len(batch) for batch in batches([small] * (2 * BATCH + 1))] == [BATCH, BATCH, 1]
