from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from amqp_broker.broker.matching import Criteria
from amqp_broker.errors import InvalidParameter
from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.vhosts import EmbeddedVHost


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def vhost(broker: EmbeddedBroker) -> Iterator[EmbeddedVHost]:
    with broker.vhost() as vhost:
        yield vhost


@pytest.fixture
def channel(vhost: EmbeddedVHost) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        yield connection.channel()


def test_half_an_hour_passes_at_once(broker: EmbeddedBroker, vhost: EmbeddedVHost, channel: BlockingChannel) -> None:
    arguments = {"x-message-ttl": 1_800_000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
    channel.queue_declare("later", arguments=arguments)
    channel.queue_declare("work")
    channel.confirm_delivery()
    channel.basic_publish("", "later", b"m")
    before = broker.clock.now_ms()
    broker.clock.advance(timedelta(minutes=29))
    assert vhost.depth("work") == 0
    broker.clock.advance(60_000)
    assert vhost.depth("work") == 1
    assert broker.clock.now_ms() - before >= 1_800_000


def test_time_stands_still_and_goes_on(broker: EmbeddedBroker) -> None:
    broker.clock.freeze()
    now = broker.clock.now_ms()
    assert broker.clock.now_ms() == now
    broker.clock.advance(5)
    assert broker.clock.now_ms() == now + 5
    broker.clock.resume()


def test_time_does_not_go_back(broker: EmbeddedBroker) -> None:
    with pytest.raises(ValueError):
        broker.clock.advance(-1)


def test_a_publish_is_nacked_as_often_as_a_rule_says_and_only_in_its_vhost(
    broker: EmbeddedBroker, vhost: EmbeddedVHost, channel: BlockingChannel
) -> None:
    channel.queue_declare("orders")
    channel.confirm_delivery()
    rule = vhost.faults.add("confirm_nack", routing_key="orders", times=1)
    assert rule.vhost == vhost.name
    with pytest.raises(NackError):
        channel.basic_publish("", "orders", b"1")
    channel.basic_publish("", "orders", b"2")
    assert (rule.hits, [message.body for message in vhost.messages("orders")]) == (1, [b"2"])
    vhost.faults.clear()
    assert broker.ask(lambda server: len(server.broker.faults)) == 0


def test_a_rule_is_removed(broker: EmbeddedBroker, vhost: EmbeddedVHost) -> None:
    broker.faults.remove(broker.faults.add("confirm_drop", vhost=vhost.name))
    assert broker.ask(lambda server: len(server.broker.faults)) == 0


def test_a_rule_that_makes_no_sense_is_refused(vhost: EmbeddedVHost) -> None:
    with pytest.raises(InvalidParameter):
        vhost.faults.add("explode")


def test_what_happens_to_messages_is_waited_for(vhost: EmbeddedVHost, channel: BlockingChannel) -> None:
    record = vhost.record()
    channel.queue_declare("orders")
    channel.basic_publish("", "orders", b"m")
    [event] = record.wait(Criteria(routing_key="orders", event="publish"))
    assert (event.kind, event.routing_keys) == ("publish", ["orders"])
    with pytest.raises(AssertionError):
        record.wait(Criteria(routing_key="payments"), timeout_s=0.01)
