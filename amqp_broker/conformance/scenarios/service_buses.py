"""Topologies of service buses such as MassTransit and NServiceBus.

Each type of message has a fanout exchange, bound to the exchange of each endpoint, which is bound to the endpoint's
queue. Faults go to `_error`, messages without a handler to `_skipped`, and retries through a queue with a TTL.
"""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Exchange

from amqp_broker.conformance.lab import Lab, scenario, slow_scenario
from amqp_broker.conformance.scenario_channel import Channel

QUORUM = {"x-queue-type": "quorum"}


def _bind_exchange(channel: Channel, destination: str, source: str, routing_key: str = "") -> None:
    channel.call(Exchange.Bind, destination=destination, source=source, routing_key=routing_key)


def _endpoint(lab: Lab, channel: Channel, name: str, *message_types: str, **arguments: Any) -> str:
    """Declare an endpoint with its queue, bound to the exchanges of message types; return the queue."""
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    queue, exchange = lab.name(name), lab.name(name)
    channel.exchange(exchange, "fanout", durable=True)
    channel.declare(queue, durable=True, arguments=given)
    channel.bind(queue, exchange)
    for message_type in message_types:
        channel.exchange(lab.name(message_type), "fanout", durable=True)
        _bind_exchange(channel, exchange, lab.name(message_type))
    return queue


@scenario
def a_message_type_reaches_all_endpoints_once(lab: Lab) -> None:
    channel = lab.channel()
    orders = _endpoint(lab, channel, "orders", "OrderPlaced", "OrderCancelled")
    billing = _endpoint(lab, channel, "billing", "OrderPlaced", x_queue_type="quorum")
    for body in (b"1", b"2"):
        channel.publish(
            body, exchange=lab.name("OrderPlaced"), delivery_mode=2, content_type="application/vnd.masstransit+json"
        )
    channel.publish(b"3", exchange=lab.name("OrderCancelled"), delivery_mode=2)
    channel.sync(orders, billing)
    channel.drain(orders)
    channel.drain(billing)


@scenario
def an_interface_of_a_message_reaches_its_subscribers(lab: Lab) -> None:
    channel = lab.channel()
    q = _endpoint(lab, channel, "q", "IEvent")
    channel.exchange(lab.name("Event"), "fanout", durable=True)
    _bind_exchange(channel, lab.name("IEvent"), lab.name("Event"))
    # A second way to the same queue brings no second message.
    _bind_exchange(channel, lab.name("q"), lab.name("Event"))
    channel.publish(b"1", exchange=lab.name("Event"), mandatory=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_fault_is_published_to_the_error_queue_before_its_message_is_acked(lab: Lab) -> None:
    channel = lab.channel()
    q = _endpoint(lab, channel, "q", "Order", x_queue_type="quorum")
    error = _endpoint(lab, channel, "q_error", x_queue_type="quorum")
    channel.publish(b"1", exchange=lab.name("Order"), headers={"MT-Activity-Id": "1"})
    channel.sync(q)
    channel.get(q)
    channel.publish(b"1", exchange=lab.name("q_error"), headers={"MT-Fault-Message": "no", "MT-Activity-Id": "1"})
    channel.ack(1)
    channel.sync(q, error)
    channel.get(error)
    channel.drain(q)


@scenario
def a_skipped_message_is_moved_with_its_headers(lab: Lab) -> None:
    channel = lab.channel()
    q, skipped = _endpoint(lab, channel, "q"), _endpoint(lab, channel, "q_skipped")
    channel.publish(b"1", exchange=lab.name("q"), message_id="m", correlation_id="c", headers={"a": 1})
    channel.sync(q)
    channel.get(q)
    channel.publish(
        b"1", exchange=lab.name("q_skipped"), message_id="m", correlation_id="c", headers={"a": 1, "MT-Reason": "s"}
    )
    channel.ack(1)
    channel.sync(skipped)
    channel.drain(skipped)


@slow_scenario
def a_delay_queue_returns_messages_to_their_endpoint(lab: Lab) -> None:
    channel = lab.channel()
    q = _endpoint(lab, channel, "q", x_queue_type="quorum")
    delay = lab.name("q_delay")
    arguments = {**QUORUM, "x-dead-letter-exchange": lab.name("q"), "x-message-ttl": 300}
    channel.declare(delay, durable=True, arguments=arguments)
    channel.consume(q)
    for attempt in (1, 2):
        channel.publish(b"%d" % attempt, routing_key=delay, headers={"MT-Redelivery-Count": attempt})
        channel.deliveries(1)
        channel.ack(attempt)


@slow_scenario
def a_chain_of_delay_levels_adds_its_times(lab: Lab) -> None:
    """NServiceBus: one topic exchange and queue a level, and a bit of the delay in each word of the key."""
    channel = lab.channel()
    q, delivery = lab.name("q"), lab.name("delivery")
    channel.declare(q, durable=True, arguments=QUORUM)
    channel.exchange(delivery, "topic", durable=True)
    following = delivery
    for level in range(3):
        exchange, queue = lab.name(f"level-{level}"), lab.name(f"level-{level}")
        channel.exchange(exchange, "topic", durable=True)
        arguments = {**QUORUM, "x-dead-letter-exchange": following, "x-message-ttl": 100 << level}
        channel.declare(queue, durable=True, arguments=arguments)
        words = ".".join("*" * (2 - level))
        channel.bind(queue, exchange, f"{words}.1.#".lstrip("."))
        _bind_exchange(channel, following, exchange, f"{words}.0.#".lstrip("."))
        following = exchange
    channel.bind(q, delivery, "#.q")
    channel.consume(q)
    channel.publish(b"5", exchange=following, routing_key="1.0.1.q", delivery_mode=2)
    channel.deliveries(1)
    channel.publish(b"0", exchange=following, routing_key="0.0.0.q", delivery_mode=2)
    channel.deliveries(1)


@scenario
def an_endpoint_gives_up_after_its_delivery_limit(lab: Lab) -> None:
    channel, consumer = lab.channel(), lab.channel()
    error = _endpoint(lab, channel, "q_error")
    arguments = {"x-delivery-limit": 2, "x-dead-letter-exchange": lab.name("q_error")}
    q = _endpoint(lab, channel, "q", "Order", **QUORUM, **arguments)
    consumer.consume(error)
    channel.consume(q)
    channel.publish(b"1", exchange=lab.name("Order"))
    for tag in (1, 2, 3):
        channel.deliveries(1)
        channel.reject(tag)
    consumer.deliveries(1)


@slow_scenario
def the_history_of_a_retry_loop_of_quorum_queues(lab: Lab) -> None:
    channel = lab.channel()
    q, retry = lab.name("q"), lab.name("retry")
    to_retry = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": retry}
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": q, "x-message-ttl": 100}
    channel.declare(q, durable=True, arguments={**QUORUM, **to_retry})
    channel.declare(retry, durable=True, arguments={**QUORUM, **back})
    channel.consume(q)
    channel.publish(b"1", routing_key=q)
    for tag in (1, 2, 3):
        channel.deliveries(1)
        if tag < 3:
            channel.reject(tag, requeue=False)
    channel.ack(3)


@slow_scenario
def the_history_of_a_retry_loop_that_must_not_lose(lab: Lab) -> None:
    channel = lab.channel()
    q, retry = lab.name("q"), lab.name("retry")
    careful = {**QUORUM, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
    to_retry = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": retry}
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": q, "x-message-ttl": 100}
    channel.declare(q, durable=True, arguments={**careful, **to_retry})
    channel.declare(retry, durable=True, arguments={**careful, **back})
    channel.consume(q)
    channel.publish(b"1", routing_key=q, priority=9)
    for tag in (1, 2, 3):
        channel.deliveries(1)
        if tag < 3:
            channel.nack(tag, requeue=False)
    channel.ack(3)


@slow_scenario
def a_cycle_of_expiring_quorum_queues_is_dropped(lab: Lab) -> None:
    channel = lab.channel()
    one, two = lab.name("one"), lab.name("two")
    for name, other in ((one, two), (two, one)):
        arguments = {**QUORUM, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": other, "x-message-ttl": 100}
        channel.declare(name, durable=True, arguments=arguments)
    watched, marker = lab.name("watched"), lab.name("marker")
    channel.declare(watched, durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": watched, "x-message-ttl": 1500}
    channel.declare(marker, durable=True, arguments=arguments)
    channel.publish(b"cycles", routing_key=one)
    channel.publish(b"later", routing_key=marker)
    channel.consume(watched)
    channel.expect(Basic.Deliver)
    channel.drain(one)
    channel.drain(two)


@scenario
def priorities_of_a_quorum_queue_in_their_order(lab: Lab) -> None:
    q, channel = lab.queue(durable=True, arguments=QUORUM), lab.channel()
    for priority in (0, 4, 5, 9, 31, 32, 255):
        lab.put(q, b"%d" % priority, priority=priority)
    lab.put(q, b"none")
    channel.drain(q)


@scenario
def priorities_of_a_quorum_queue_and_returned_messages(lab: Lab) -> None:
    q, channel = lab.queue(durable=True, arguments=QUORUM), lab.channel()
    for priority in (0, 9, 1, 9, 2):
        lab.put(q, b"%d" % priority, priority=priority)
    for _ in range(3):
        channel.get(q)
    channel.nack(3, multiple=True)
    lab.put(q, b"new", priority=9)
    channel.drain(q)


@scenario
def a_dead_letter_keeps_its_priority(lab: Lab) -> None:
    channel = lab.channel()
    dead = lab.queue("dead", durable=True, arguments=QUORUM)
    arguments = {**QUORUM, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    q = lab.queue(durable=True, arguments=arguments)
    lab.put(q, b"low", b"lower", priority=1)
    lab.put(q, b"high", priority=9)
    for tag in (1, 2, 3):
        channel.get(q)
        channel.nack(tag, requeue=False)
        channel.sync(q, dead)
    consumer = lab.channel()
    consumer.consume(dead)
    consumer.deliveries(3)
