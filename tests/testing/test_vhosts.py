from __future__ import annotations

import warnings
from collections.abc import Iterator

import pika
import pytest

from amqp_broker.broker.metadata import Metadata
from amqp_broker.testing import EmbeddedBroker, LeakWarning


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def connect(url: str, name: str = "") -> pika.BlockingConnection:
    parameters = pika.URLParameters(url)
    parameters.client_properties = {"connection_name": name} if name else None
    return pika.BlockingConnection(parameters)


def test_a_vhost_is_there_inside_of_its_block_only(broker: EmbeddedBroker) -> None:
    with broker.vhost("shop/eu") as vhost:
        assert (str(vhost), vhost.name) == ("shop/eu", "shop/eu")
        assert vhost.url.endswith("/shop%2Feu")
        connect(vhost.url).close()
    assert vhost.leaks == []
    assert "shop/eu" not in broker.ask(lambda server: list(server.broker.vhosts))


def test_two_vhosts_have_two_names(broker: EmbeddedBroker) -> None:
    with broker.vhost() as one, broker.vhost() as other:
        assert one.name != other.name


def test_a_connection_that_is_open_is_told_with_all_that_hangs_on_it(broker: EmbeddedBroker) -> None:
    with pytest.warns(LeakWarning, match="'my app'") as caught, broker.vhost() as vhost:  # noqa: PT031
        channel = connect(vhost.url, "my app").channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"m")
        channel.basic_get("q")
        tag = channel.basic_consume("q", print)
    assert caught[0].filename == __file__
    [leak] = vhost.leaks
    assert "connection 'my app' (127.0.0.1:" in leak
    assert f"is open, with 1 channels, consumer '{tag}' of 'q', 1 unacknowledged messages" in leak


def test_who_was_told_of_leaks_is_not_warned_of_them(broker: EmbeddedBroker) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with broker.vhost(warns=False) as vhost:
            connect(vhost.url)
    assert len(vhost.leaks) == 1


def test_what_comes_to_a_vhost_that_nobody_deletes_is_told(broker: EmbeddedBroker) -> None:
    with connect(broker.url) as before:
        before.channel().queue_declare("before")
        with broker.vhost(warns=False) as outer, broker.vhost(warns=False) as vhost:
            with connect(outer.url) as other:
                other.channel().queue_declare("of another test")
            held = connect(broker.url)
            held.channel().queue_declare("left")
        assert sorted(leak for leak in vhost.leaks if "connection" not in leak) == [
            "queue 'left' in vhost '/' is left behind"
        ]
        assert [leak for leak in vhost.leaks if leak.endswith("(vhost '/')")]
        held.close()
    broker.reset("/")


def test_a_vhost_that_the_test_has_deleted_or_protected_is_gone_all_the_same(broker: EmbeddedBroker) -> None:
    with broker.vhost() as vhost:
        broker.ask(lambda server: server.broker.delete_vhost(vhost.name))
    with broker.vhost() as vhost:
        protected = Metadata(is_protected_from_deletion=True)
        broker.ask(lambda server: server.broker.vhost(vhost.name).set_metadata(protected))
    assert vhost.name not in broker.ask(lambda server: list(server.broker.vhosts))


def test_the_vhost_is_deleted_after_a_test_that_failed(broker: EmbeddedBroker) -> None:
    with pytest.raises(ZeroDivisionError), broker.vhost() as vhost:
        raise ZeroDivisionError
    assert vhost.name not in broker.ask(lambda server: list(server.broker.vhosts))


def test_a_broker_that_was_stopped_meanwhile_is_no_error() -> None:
    with EmbeddedBroker() as broker:
        with broker.vhost() as vhost:
            broker.stop()
        assert vhost.what_happened() == ""
