from __future__ import annotations

import re
from collections.abc import Iterator

import pika
import pika.exceptions
import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.server.server import Server
from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.embedded_vhost import EmbeddedVHost


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def vhost(broker: EmbeddedBroker) -> Iterator[EmbeddedVHost]:
    with broker.vhost() as vhost:
        yield vhost


def publish(vhost: EmbeddedVHost, count: int) -> None:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        for _ in range(count):
            channel.basic_publish("", "q", b"x")


def test_a_nemesis_is_at_work_in_the_block(broker: EmbeddedBroker, vhost: EmbeddedVHost) -> None:
    broker.clock.freeze()
    with vhost.nemesis(seed=7, pace_ms=100, actions=["confirm_nack"]) as nemesis:
        broker.clock.advance(160)
        with pytest.raises(pika.exceptions.NackError):
            publish(vhost, 1)
    assert (nemesis.seed, nemesis.strokes[0]["fault"]["hits"]) == (7, 1)
    assert (nemesis.history["published"], nemesis.history["nacked"]) == (1, 1)
    assert re.match(
        r"nemesis with seed 7:\n +0\.\d\d s  confirm_nack on publish times=\d: 1 hit\n1 mess", nemesis.text()
    )
    assert repr(nemesis).startswith("<EmbeddedNemesis seed=7 of vhost ")
    assert broker.ask(lambda server: list(server.broker.faults)) == []


def test_an_error_in_the_block_gets_the_seed_and_the_strokes(broker: EmbeddedBroker, vhost: EmbeddedVHost) -> None:
    with pytest.raises(ZeroDivisionError) as caught, vhost.nemesis(seed=3):
        raise ZeroDivisionError
    assert caught.value.__notes__[0].startswith("nemesis with seed 3:\n0 messages published")


def test_a_breach_fails_the_block(broker: EmbeddedBroker, vhost: EmbeddedVHost) -> None:
    def lose(server: Server) -> None:
        log = server.broker.event_logs.of(server.broker.vhosts[vhost.name])
        assert log is not None
        log.events.remove(next(event for event in log.events if event.kind == "drop"))

    vhost.event_log()
    publish(vhost, 1)
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        connection.channel().queue_purge("q")
    with pytest.raises(AssertionError, match="Wrong: queue 'q' has 0 ready"), vhost.nemesis(seed=1, pace_ms=60_000):
        broker.ask(lose)


def test_an_unknown_action_is_refused(vhost: EmbeddedVHost) -> None:
    with pytest.raises(InvalidParameter, match="a nemesis has no action 'refuse'"), vhost.nemesis(actions=["refuse"]):
        pass


def test_an_error_after_the_end_of_the_broker_stays_as_it_is() -> None:
    def stop(broker: EmbeddedBroker) -> None:
        broker.stop()
        raise KeyError("mine")

    with EmbeddedBroker() as own, own.vhost() as short:
        with pytest.raises(KeyError) as caught, short.nemesis():
            stop(own)
        assert not hasattr(caught.value, "__notes__")
        own.start()


@pytest.mark.parametrize("change", ["clear", "reset"])
def test_a_vhost_that_the_test_resets_has_its_history_all_the_same(vhost: EmbeddedVHost, change: str) -> None:
    with vhost.nemesis(seed=1, pace_ms=60_000) as nemesis:
        publish(vhost, 1)
        {"clear": vhost.faults.clear, "reset": vhost.reset}[change]()
    assert nemesis.history["breach_count"] == 0


def test_an_event_log_that_the_test_stops_fails_the_block_with_a_sentence(
    broker: EmbeddedBroker, vhost: EmbeddedVHost
) -> None:
    def stop(server: Server) -> None:
        server.broker.event_logs.stop(server.broker.vhosts[vhost.name])

    with pytest.raises(AssertionError, match="The event log is gone: the history was not checked"), vhost.nemesis():
        broker.ask(stop)
