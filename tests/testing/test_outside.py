from __future__ import annotations

import urllib.parse
from collections.abc import Iterator

import pika
import pytest

from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.outside import OutsideBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(default_user="anna", default_pass="p/w") as broker:
        yield broker


@pytest.fixture
def outside(broker: EmbeddedBroker) -> OutsideBroker:
    return OutsideBroker(broker.url, broker.management_url)


def test_a_vhost_is_made_and_deleted_over_http(broker: EmbeddedBroker, outside: OutsideBroker) -> None:
    with outside.vhost("a/b") as vhost:
        assert vhost.url == broker.amqp_url("a/b")
        vhost.import_definitions({"queues": [{"name": "q", "durable": True, "arguments": {}}]})
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            connection.channel().queue_declare("q", passive=True)
        assert str(vhost) in broker.ask(lambda server: list(server.broker.vhosts))
    assert vhost.name not in broker.ask(lambda server: list(server.broker.vhosts))


def test_it_is_what_the_embedded_one_is(broker: EmbeddedBroker, outside: OutsideBroker) -> None:
    assert (outside.port, outside.version, outside.management_url) == (
        broker.port,
        broker.version,
        broker.management_url,
    )


def test_what_the_broker_refuses_is_told(outside: OutsideBroker) -> None:
    with outside.vhost() as vhost, pytest.raises(RuntimeError, match=r"400 .*pattern should be a binary"):
        vhost.import_definitions({"policies": [{"name": "p"}]})


def test_an_api_that_is_not_there_is_told_with_what_to_do(broker: EmbeddedBroker) -> None:
    address = f"http://127.0.0.1:{broker.port}"
    silent = OutsideBroker(broker.url, address.replace(str(broker.port), "1"))
    with pytest.raises(RuntimeError, match="--amqp-broker-management-url says where it is"), silent.vhost():
        pass


def test_where_nothing_is_said_the_api_is_on_rabbitmqs_port() -> None:
    outside = OutsideBroker("amqp://rabbit.example")
    assert outside.port == 5672
    assert urllib.parse.urlsplit(outside.management_url).netloc == "guest:guest@rabbit.example:15672"


@pytest.mark.parametrize("url", ["http://localhost", "localhost:5672", "amqp://"])
def test_what_is_no_url_of_a_broker_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no URL of a broker"):
        OutsideBroker(url)
