"""Delayed retries of quorum queues (RabbitMQ 4.3); earlier versions ignore the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab, scenario, slow_scenario
from amqp_broker.conformance.scenario_channel import Channel

# Long enough that a delayed message is never ready before the scenario has looked.
LONG_MS = 600_000


def _queue(lab: Lab, kind: str, min_ms: int, name: str = "q", **arguments: Any) -> str:
    given = {
        "x-queue-type": "quorum",
        "x-delayed-retry-type": kind,
        "x-delayed-retry-min": min_ms,
        **{key.replace("_", "-"): value for key, value in arguments.items()},
    }
    return lab.queue(name, durable=True, arguments=given)


@slow_scenario
def a_rejected_message_comes_back_after_a_delay(lab: Lab) -> None:
    lab.silence_s = 8.0  # other versions, without the delay, send nothing more
    channel = lab.channel()
    q = _queue(lab, "all", 2000, x_delayed_retry_max=2500)
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.drain(q)
    channel.consume(q)
    channel.expect(Basic.Deliver)
    channel.send(Basic.Reject, delivery_tag=3, requeue=True)
    channel.expect(Basic.Deliver)


@slow_scenario
def a_message_that_was_given_back_comes_after_the_same_delay_each_time(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, "returned", 300)
    lab.put(q, b"1")
    channel.consume(q)
    for tag in (1, 2, 3):
        channel.expect(Basic.Deliver)
        channel.send(Basic.Nack, delivery_tag=tag, requeue=True)
    channel.expect(Basic.Deliver)


@slow_scenario
def messages_come_back_in_the_order_of_their_delays(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, "all", 500, x_delayed_retry_max=5000)
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.consume(q)
    channel.expect(Basic.Deliver)
    # A second failure doubles the delay; the first return of the other message is sooner.
    channel.send(Basic.Reject, delivery_tag=3, requeue=True)
    channel.send(Basic.Reject, delivery_tag=2, requeue=True)
    channel.expect(Basic.Deliver)
    channel.expect(Basic.Deliver)


@scenario
def only_failures_are_delayed_by_the_type_failed(lab: Lab) -> None:
    q = _queue(lab, "failed", LONG_MS)
    lab.put(q, b"nacked", b"recovered", b"rejected", b"lost")
    channel = lab.channel()
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.send(Basic.Ack, delivery_tag=2)
    channel.get(q)
    channel.call(Basic.Recover, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.send(Basic.Ack, delivery_tag=4)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=5, requeue=True)
    channel.get(q)
    channel.call(commands.Channel.Close, reply_code=200)
    again = lab.channel()
    again.sync(q)
    again.drain(q)


@scenario
def only_what_has_not_failed_is_delayed_by_the_type_returned(lab: Lab) -> None:
    q = _queue(lab, "returned", LONG_MS)
    lab.put(q, b"nacked", b"rejected", b"lost")
    channel = lab.channel()
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=2, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.get(q)
    channel.call(commands.Channel.Close, reply_code=200)
    again = lab.channel()
    again.sync(q)
    again.drain(q)


@scenario
def a_retry_without_a_minimum_is_not_delayed(lab: Lab) -> None:
    q = lab.queue(durable=True, arguments={"x-queue-type": "quorum", "x-delayed-retry-type": "all"})
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.get(q)


@scenario
def a_delayed_message_counts_for_the_maximum_length(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS, x_max_length=2)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    lab.put(q, b"3", b"4")
    channel.drain(q)


@scenario
def a_queue_full_of_delayed_messages_drops_new_ones(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS, x_max_length=1)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    lab.put(q, b"2", b"3")
    channel.drain(q)


@scenario
def a_purge_counts_delayed_messages(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.call(Queue.Purge, queue=q)
    channel.get(q)


@scenario
def a_deleted_queue_does_not_count_delayed_messages(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.call(Queue.Delete, queue=q)


@slow_scenario
def a_delayed_message_expires_when_its_delay_is_over(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", 600, x_message_ttl=300, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.consume(dead)
    channel.expect(Basic.Deliver)


@scenario
def a_message_beyond_the_delivery_limit_is_not_delayed(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", LONG_MS, x_delivery_limit=0, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    channel.consume(dead)
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.expect(Basic.Deliver)


@scenario
def the_arguments_of_delayed_retries_are_compared(lab: Lab) -> None:
    q = _queue(lab, "all", 500)
    connection = lab.connect()
    for changed in ({}, {"x-delayed-retry-type": "failed"}, {"x-delayed-retry-min": 501}, {"x-delayed-retry-max": 500}):
        arguments = {
            "x-queue-type": "quorum",
            "x-delayed-retry-type": "all",
            "x-delayed-retry-min": 500,
            **changed,
        }
        connection.channel().call(Queue.Declare, queue=q, durable=True, arguments=arguments)
    connection.channel().call(Queue.Declare, queue=q, durable=True, arguments={"x-queue-type": "quorum"})


@scenario
def messages_return_to_a_queue_without_a_delivery_limit(lab: Lab) -> None:
    q = lab.queue(durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": -1})
    channel = lab.channel()
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=1, requeue=True)
    channel.send(Basic.Reject, delivery_tag=2, requeue=True)
    channel.sync(q)
    channel.drain(q)


def _dies_at_its_second_failure(lab: Lab, fail: Callable[..., object], *, requeue: bool, **arguments: Any) -> None:
    """Have a message delayed once; it leaves its queue when a consumer lets it fail again."""
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", 300, x_dead_letter_exchange="", x_dead_letter_routing_key=dead, **arguments)
    channel = lab.channel()
    channel.consume(dead, "dead")
    channel.consume(q)
    lab.put(q, b"1")
    channel.expect(Basic.Deliver)
    fail(channel, 1)
    channel.expect(Basic.Deliver)
    fail(channel, 2, requeue=requeue)
    channel.expect(Basic.Deliver)


@slow_scenario
def a_delayed_message_that_is_refused_later_has_one_death(lab: Lab) -> None:
    _dies_at_its_second_failure(lab, Channel.reject, requeue=False)


@slow_scenario
def a_message_that_was_given_back_and_then_refused_has_one_death(lab: Lab) -> None:
    _dies_at_its_second_failure(lab, Channel.nack, requeue=False)


@slow_scenario
def a_delayed_message_dies_of_the_delivery_limit(lab: Lab) -> None:
    _dies_at_its_second_failure(lab, Channel.reject, requeue=True, x_delivery_limit=1)


@slow_scenario
def deaths_add_up_in_a_circle_with_delays(lab: Lab) -> None:
    q, waiting = lab.name("q"), lab.name("waiting")
    lab.queue(
        "waiting",
        durable=True,
        arguments={"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": q},
    )
    _queue(lab, "all", 300, x_dead_letter_exchange="", x_dead_letter_routing_key=waiting)
    channel = lab.channel()
    channel.consume(q)
    lab.put(q, b"1")
    for tag in (1, 3):
        channel.expect(Basic.Deliver)
        channel.reject(tag)
        channel.expect(Basic.Deliver)
        channel.reject(tag + 1, requeue=False)
    channel.expect(Basic.Deliver)


@slow_scenario
def a_dead_letter_from_a_quorum_queue_is_delayed_as_often_as_it_failed_there(lab: Lab) -> None:
    target = _queue(lab, "all", 300, "target", x_delayed_retry_max=5000)
    q = lab.queue(
        durable=True,
        arguments={"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": target},
    )
    channel = lab.channel()
    channel.consume(target, "target")
    channel.consume(q)
    lab.put(q, b"1")
    channel.expect(Basic.Deliver)
    channel.reject(1)
    channel.expect(Basic.Deliver)
    channel.reject(2, requeue=False)
    channel.expect(Basic.Deliver)
    channel.reject(3)
    channel.expect(Basic.Deliver)


@slow_scenario
def an_expired_delayed_message_keeps_its_count(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True, arguments={"x-queue-type": "quorum"})
    q = _queue(lab, "all", 300, x_message_ttl=700, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.reject(1)
    channel.consume(dead)
    channel.expect(Basic.Deliver)


@scenario
def a_length_limit_drops_what_is_ready_before_what_is_delayed(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", LONG_MS, x_max_length=2, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    channel.consume(dead)
    lab.put(q, b"delayed", b"ready")
    channel.get(q)
    channel.reject(1)
    channel.sync(q)
    lab.put(q, b"new")
    channel.expect(Basic.Deliver)
    channel.drain(q)


@scenario
def delayed_messages_die_with_a_purge_unmarked(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", LONG_MS, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.reject(1)
    channel.sync(q)
    channel.call(Queue.Purge, queue=q)
    channel.sync(dead)
    channel.drain(dead)


class _Clock:
    """A queue whose messages expire: their arrival elsewhere shows that a time is over."""

    def __init__(self, lab: Lab) -> None:
        over = lab.queue("over", durable=True)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": over}
        self._timer = lab.queue("timer", durable=True, arguments=arguments)
        self._transcript = lab.transcript
        with self._transcript.muted():
            self._channel = lab.channel()
            self._channel.consume(over, no_ack=True)

    def wait(self, delay_ms: int) -> None:
        with self._transcript.muted():
            self._channel.publish(routing_key=self._timer, expiration=str(delay_ms))
            self._channel.expect(Basic.Deliver)


@slow_scenario
def delayed_messages_return_before_all_priorities(lab: Lab) -> None:
    q, clock = _queue(lab, "all", 1000), _Clock(lab)
    channel = lab.channel()
    for priority in (1, 5, 9):
        lab.put(q, b"delayed, of priority %d" % priority, priority=priority)
    for tag in (1, 2, 3):
        channel.get(q)
        channel.reject(tag)
        channel.sync(q)
        clock.wait(30)
    for priority in (2, 5, 8):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    clock.wait(3000)
    channel.sync(q)
    channel.drain(q)


@slow_scenario
def delayed_messages_return_in_the_order_of_their_delays_whatever_that_of_their_arrival(lab: Lab) -> None:
    q, clock = _queue(lab, "all", 300), _Clock(lab)
    channel = lab.channel()
    lab.put(q, b"1", b"2", b"3")
    for _ in range(3):
        channel.get(q)
    for tag in (3, 1, 2):
        channel.reject(tag)
        channel.sync(q)
        clock.wait(30)
    clock.wait(900)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_delayed_message_does_not_hold_up_lower_priorities(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS)
    channel = lab.channel()
    lab.put(q, b"high", priority=9)
    channel.get(q)
    channel.reject(1)
    channel.sync(q)
    lab.put(q, b"low", priority=1)
    lab.put(q, b"higher", priority=10)
    channel.drain(q)


@scenario
def a_length_limit_with_a_delayed_priority_drops_the_lowest_ready(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", LONG_MS, x_max_length=2, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    channel.consume(dead)
    lab.put(q, b"delayed", priority=1)
    channel.get(q)
    channel.reject(1)
    channel.sync(q)
    lab.put(q, b"high", priority=9)
    lab.put(q, b"middle", priority=5)
    channel.expect(Basic.Deliver)
    channel.drain(q)
