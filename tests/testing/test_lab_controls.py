from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.observe.matching import Criteria
from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.embedded_vhost import EmbeddedVHost
from compat.waiting import wait_until


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


def test_the_clock_advances_by_whole_milliseconds(broker: EmbeddedBroker) -> None:
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        broker.clock.advance(1.5)  # type: ignore[arg-type]
    assert isinstance(broker.clock.now_ms(), int)


def test_the_clock_advances_by_a_text(broker: EmbeddedBroker) -> None:
    broker.clock.freeze()
    before = broker.clock.now_ms()
    broker.clock.advance("1h30m")
    assert broker.clock.now_ms() - before == 5_400_000
    with pytest.raises(ValueError, match="'soon' is not a duration like 500ms"):
        broker.clock.advance("soon")


def test_advancing_the_clock_expires_messages(
    broker: EmbeddedBroker, vhost: EmbeddedVHost, channel: BlockingChannel
) -> None:
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


def test_a_frozen_clock_moves_only_when_it_is_advanced(broker: EmbeddedBroker) -> None:
    broker.clock.freeze()
    now = broker.clock.now_ms()
    assert broker.clock.now_ms() == now
    broker.clock.advance(5)
    assert broker.clock.now_ms() == now + 5
    broker.clock.resume()


def test_the_clock_cannot_go_back(broker: EmbeddedBroker) -> None:
    with pytest.raises(ValueError):
        broker.clock.advance(-1)


def test_a_fault_rule_applies_to_its_vhost_a_number_of_times(
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


def test_a_fault_rule_is_removed(broker: EmbeddedBroker, vhost: EmbeddedVHost) -> None:
    broker.faults.remove(broker.faults.add("confirm_drop", vhost=vhost.name))
    assert broker.ask(lambda server: len(server.broker.faults)) == 0


def test_a_consumer_gets_exactly_one_message(vhost: EmbeddedVHost, channel: BlockingChannel) -> None:
    channel.queue_declare("orders")
    rule = vhost.faults.add("hold_delivery", queue="orders")
    got: list[bytes] = []
    channel.basic_consume("orders", lambda channel, method, properties, body: got.append(body), auto_ack=True)
    for body in (b"1", b"2"):
        channel.basic_publish("", "orders", body)
    channel.connection.process_data_events(0)
    wait_until(lambda: len(rule.held) == 2)
    assert (vhost.faults.release(rule), got) == (1, [])
    channel.connection.process_data_events(5)
    assert got == [b"1"]
    with pytest.raises(InvalidParameter, match="only 'hold_delivery' holds deliveries"):
        vhost.faults.release(vhost.faults.add("drop_ack"))


def test_an_invalid_fault_rule_is_refused(vhost: EmbeddedVHost) -> None:
    with pytest.raises(InvalidParameter):
        vhost.faults.add("explode")


def test_the_event_log_waits_for_messages(vhost: EmbeddedVHost, channel: BlockingChannel) -> None:
    log = vhost.event_log()
    channel.queue_declare("orders")
    channel.basic_publish("", "orders", b"m")
    [event] = log.wait(Criteria(routing_key="orders", event="publish"))
    assert (event.kind, event.routing_keys) == ("publish", ["orders"])
    with pytest.raises(AssertionError):
        log.wait(Criteria(routing_key="payments"), timeout_s=0.01)


# Advice, by a client as people have it


def habits(vhost: EmbeddedVHost) -> list[str]:
    return vhost.advice.habits


def test_a_well_behaved_client_gets_no_advice(vhost: EmbeddedVHost, channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=10)
    channel.exchange_declare("shop", "topic", durable=True)
    channel.queue_declare("orders", durable=True)
    channel.queue_bind("orders", "shop", "order.*")
    persistent = pika.BasicProperties(delivery_mode=2)
    for number in range(200):
        channel.basic_publish("shop", "order.new", b"%d" % number, persistent, mandatory=True)
    for _, (method, _, _) in zip(range(200), channel.consume("orders"), strict=False):
        channel.basic_ack(method.delivery_tag)
    channel.cancel()
    assert habits(vhost) == []


def test_each_habit_is_reported_once_with_its_place(vhost: EmbeddedVHost) -> None:
    for number in range(2):
        parameters = pika.URLParameters(vhost.url)
        parameters.client_properties = {"connection_name": "shop"}
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.queue_declare("orders", durable=True)
            channel.queue_declare("later")
            channel.basic_qos(prefetch_count=5, global_qos=True)
            channel.basic_publish("", "orders", b"m", pika.BasicProperties(delivery_mode=2))
            channel.basic_publish("amq.direct", "ordr", b"m")
            for _ in range(10):
                channel.basic_get("later")
            channel.basic_consume("orders", print, auto_ack=True)
            other = connection.channel()
            for tag in range(10):
                other.basic_consume("later", print, consumer_tag=f"{number}.{tag}")
            list(vhost.advice)
            for _ in range(20):
                short = connection.channel()
                short.basic_publish("", "orders", b"m")
                short.close()
    for _ in range(20):
        with pika.BlockingConnection(parameters) as connection:
            connection.channel().basic_publish("", "orders", b"m")
    assert sorted(habits(vhost)) == [
        *("auto-ack", "channel-per-message", "connection-per-message", "global-prefetch", "leaked-consumers"),
        *("no-confirms", "polling", "transient-queue", "unlimited-prefetch", "unroutable"),
    ]
    assert len(vhost.advice) == 10
    assert {advice.place.client for advice in vhost.advice} == {"shop"}
    vhost.advice.clear()
    assert len(vhost.advice) == 0


def test_abandoned_queues_are_reported(broker: EmbeddedBroker, vhost: EmbeddedVHost, channel: BlockingChannel) -> None:
    for _ in range(20):
        channel.queue_declare("", durable=True)
    assert habits(vhost) == []
    broker.clock.advance(timedelta(minutes=1))
    assert habits(vhost) == ["leaked-queues"]
    assert [advice.place.queue for advice in broker.advice] == ["amq.gen-*"]


def test_faults_that_have_hit_nothing_fail_a_verification(
    broker: EmbeddedBroker, vhost: EmbeddedVHost, channel: BlockingChannel
) -> None:
    vhost.faults.verify()
    rule = vhost.faults.add("confirm_nack", routing_key="payed")
    channel.confirm_delivery()
    channel.queue_declare("paid", durable=True)
    channel.basic_publish("", "paid", b"m")
    for faults in (vhost.faults, broker.faults):
        with pytest.raises(AssertionError, match="hit nothing: 1 publish had routing_key 'paid'"):
            faults.verify()
    with broker.vhost() as other:
        other.faults.verify()
    vhost.faults.remove(rule)
    vhost.faults.verify()
