from __future__ import annotations

import urllib.parse
from collections.abc import Iterator

import pika
import pytest

from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.external_broker import ExternalBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(default_user="anna", default_pass="p/w") as broker:
        yield broker


@pytest.fixture
def external(broker: EmbeddedBroker) -> ExternalBroker:
    return ExternalBroker(broker.url, broker.management_url)


def test_a_vhost_is_created_and_deleted_over_http(broker: EmbeddedBroker, external: ExternalBroker) -> None:
    with external.vhost("a/b") as vhost:
        assert vhost.url == broker.amqp_url("a/b")
        vhost.import_definitions({"queues": [{"name": "q", "durable": True, "arguments": {}}]})
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            connection.channel().queue_declare("q", passive=True)
        assert str(vhost) in broker.ask(lambda server: list(server.broker.vhosts))
    assert vhost.name not in broker.ask(lambda server: list(server.broker.vhosts))


def test_an_external_broker_has_the_urls_of_an_embedded_one(broker: EmbeddedBroker, external: ExternalBroker) -> None:
    assert (external.port, external.version, external.management_url) == (
        broker.port,
        broker.version,
        broker.management_url,
    )


def test_a_test_that_uses_the_embedded_broker_is_skipped(broker: EmbeddedBroker, external: ExternalBroker) -> None:
    with external.vhost() as vhost, broker.vhost() as embedded_vhost:
        for outside, embedded in ((external, broker), (vhost, embedded_vhost)):
            own = {name for name in dir(outside) if not name.startswith("_")}
            missing = {name for name in dir(embedded) if not name.startswith("_")} - own
            assert missing == outside._only_embedded
        with pytest.raises(pytest.skip.Exception, match=r"amqp_vhost\.depth needs the embedded broker"):
            vhost.depth("q")
        with pytest.raises(pytest.skip.Exception, match=r"amqp_broker\.clock needs the embedded broker"):
            external.clock.freeze()
        with pytest.raises(AttributeError, match="'ExternalVHost' object has no attribute 'dept'"):
            vhost.dept("q")


def test_a_refused_request_raises_the_reason(external: ExternalBroker) -> None:
    with external.vhost() as vhost, pytest.raises(RuntimeError, match=r"400 .*pattern should be a binary"):
        vhost.import_definitions({"policies": [{"name": "p"}]})


def test_an_unreachable_api_raises_the_option_to_set(broker: EmbeddedBroker) -> None:
    address = f"http://127.0.0.1:{broker.port}"
    silent = ExternalBroker(broker.url, address.replace(str(broker.port), "1"))
    with pytest.raises(RuntimeError, match="set --amqp-broker-management-url to its address"), silent.vhost():
        pass


def test_the_api_is_on_the_port_of_rabbitmq_by_default() -> None:
    external = ExternalBroker("amqp://rabbit.example")
    assert external.port == 5672
    assert urllib.parse.urlsplit(external.management_url).netloc == "guest:guest@rabbit.example:15672"


@pytest.mark.parametrize("url", ["http://localhost", "localhost:5672", "amqp://"])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not the URL of a broker"):
        ExternalBroker(url)
