"""The first look at a broker."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from amqp_broker.conformance.probing import NoBroker, greeting_of, lacking
from amqp_broker.conformance.terms import Terms
from tests.conformance.broker_under_test import BrokerUnderTest
from tests.running import RunningServer


@contextlib.contextmanager
def server_that_says(data: bytes | None) -> Iterator[BrokerUnderTest]:
    """Run a server that answers one client with these octets, and closes; with None it says nothing."""
    over = threading.Event()

    def serve() -> None:
        client, _ = server.accept()
        with client:
            client.recv(8)
            if data is None:
                over.wait()
            else:
                client.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield BrokerUnderTest(server.getsockname()[1])
        finally:
            over.set()
            thread.join()


def refusal(broker: BrokerUnderTest, terms: Terms) -> NoBroker:
    with pytest.raises(NoBroker) as raised:
        greeting_of(broker, terms)
    return raised.value


def test_a_broker_introduces_itself(broker: BrokerUnderTest) -> None:
    greeting = greeting_of(broker, Terms())
    assert (greeting.product, greeting.channel_max, greeting.frame_max) == ("RabbitMQ", 2047, 131072)
    assert greeting.capabilities >= {"basic.nack", "publisher_confirms"}


def test_a_refused_login_is_a_refusal(broker: BrokerUnderTest) -> None:
    found = refusal(broker, Terms(password="wrong"))
    assert found.is_refusal
    assert str(found).startswith("the broker refuses the login of 'guest': ACCESS_REFUSED")


def test_a_missing_vhost_is_a_refusal(broker: BrokerUnderTest) -> None:
    found = refusal(broker, Terms(vhost="missing"))
    assert found.is_refusal
    assert str(found) == "the broker refuses the vhost 'missing': NOT_ALLOWED - vhost missing not found"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server does not speak AMQP: it has sent b'HTTP/1.1 400 Bad'"),
        (
            b"AMQP\x00\x01\x00\x00",
            r"the server does not speak AMQP 0-9-1: it answers with protocol header b'AMQP\x00\x01\x00\x00'",
        ),
        (b"", "the server does not speak AMQP 0-9-1: it closes the connection at once"),
        (
            b"\x01\x00\x00\x00\x00\x00\x04\xff\xff\xff\xff\xce",
            "the broker has sent a frame that cannot be read: 4294967295",
        ),
        (None, "the server does not answer; it may not speak AMQP 0-9-1"),
    ],
)
def test_another_server_is_no_broker(data: bytes | None, sentence: str) -> None:
    with server_that_says(data) as server:
        found = refusal(server, Terms(silence_s=0.2 if data is None else 20.0))
    assert (str(found), found.is_refusal) == (sentence, False)


def test_a_server_that_cannot_be_reached_is_no_broker() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        found = refusal(BrokerUnderTest(unused.getsockname()[1]), Terms())
    assert str(found).startswith("the broker cannot be reached: ")


def test_a_broker_with_all_features_lacks_nothing(broker: BrokerUnderTest) -> None:
    assert lacking(broker, Terms(), greeting_of(broker, Terms()), "4.3") == {}


def test_a_type_is_asked_for_only_if_the_version_knows_it() -> None:
    with RunningServer(compat="3.13") as server:
        older = BrokerUnderTest(server.port)
        greeting = greeting_of(older, Terms())
        assert lacking(older, Terms(), greeting, "3.10") == {}


def test_a_feature_that_is_not_announced_is_lacking(broker: BrokerUnderTest) -> None:
    greeting = replace(greeting_of(broker, Terms()), capabilities=frozenset({"publisher_confirms", "basic.nack"}))
    assert lacking(broker, Terms(), greeting, "4.3") == {
        "bindings between exchanges": "the broker does not announce exchange_exchange_bindings"
    }
