"""Messages that expire in a quorum queue behind others.

Up to 4.2, only the message that is delivered next expires. From 4.3 on, so does the first of each priority, and the
first of those that came back.
"""

from __future__ import annotations

from pamqp.commands import Basic, Confirm

from amqp_broker.conformance.lab import Lab, slow_scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.scenarios.quorum_returns import await_return, quorum_queue
from amqp_broker.conformance.scenarios.ttl import let_pass

TTL_MS = 300
SOON = str(TTL_MS)


def _expiring(lab: Lab, **arguments: object) -> tuple[Channel, str, str]:
    """Return a channel, a quorum queue, and the queue of its dead letters."""
    dead = lab.queue("dead", durable=True)
    q = quorum_queue(lab, "q", x_dead_letter_exchange="", x_dead_letter_routing_key=dead, **arguments)
    return lab.channel(), q, dead


def _show(lab: Lab, queue: str, dead: str) -> None:
    """Show what has died when the time is over, and then what is left. Asking the queue would look at its head."""
    let_pass(lab, 2 * TTL_MS)
    channel = lab.channel()
    channel.drain(dead)
    channel.drain(queue)
    channel.sync(dead)
    channel.drain(dead)


@slow_scenario
def a_message_expires_behind_one_of_higher_priority(lab: Lab) -> None:
    _, q, dead = _expiring(lab)
    lab.put(q, b"high", priority=5)
    lab.put(q, b"low", priority=0, expiration=SOON)
    _show(lab, q, dead)


@slow_scenario
def messages_of_three_priorities_expire_behind_a_fourth(lab: Lab) -> None:
    _, q, dead = _expiring(lab)
    lab.put(q, b"stays", priority=9)
    lab.put(q, b"7", priority=7, expiration=SOON)
    lab.put(q, b"4", expiration=SOON)
    lab.put(q, b"4 too", expiration=SOON)
    lab.put(q, b"1", priority=1, expiration=SOON)
    lab.put(q, b"1 waits", priority=1)
    lab.put(q, b"1 behind", priority=1, expiration=SOON)
    _show(lab, q, dead)


@slow_scenario
def a_message_expires_behind_one_that_has_come_back(lab: Lab) -> None:
    channel, q, dead = _expiring(lab)
    lab.put(q, b"back")
    channel.get(q)
    lab.put(q, b"1", expiration=SOON)
    channel.nack(1)
    await_return(lab, q)
    _show(lab, q, dead)


@slow_scenario
def what_has_come_back_expires_behind_nothing_that_has_come_back(lab: Lab) -> None:
    channel, q, dead = _expiring(lab)
    lab.put(q, b"first")
    lab.put(q, b"second", expiration=SOON)
    channel.get(q)
    channel.get(q)
    channel.nack(1)
    channel.nack(2)
    await_return(lab, q)
    _show(lab, q, dead)


@slow_scenario
def a_message_expires_behind_a_full_consumer(lab: Lab) -> None:
    channel, q, dead = _expiring(lab)
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q)
    lab.put(q, b"held", priority=9)
    channel.deliveries(1)
    lab.put(q, b"high", priority=5)
    lab.put(q, b"low", priority=0, expiration=SOON)
    _show(lab, q, dead)


@slow_scenario
def an_unacked_message_does_not_keep_those_behind_it_from_expiring(lab: Lab) -> None:
    channel, q, dead = _expiring(lab)
    lab.put(q, b"unacked", priority=0)
    channel.get(q)
    lab.put(q, b"low", priority=0, expiration=SOON)
    lab.put(q, b"high", priority=9)
    _show(lab, q, dead)


@slow_scenario
def a_message_expires_behind_one_whose_retry_is_delayed(lab: Lab) -> None:
    channel, q, dead = _expiring(lab, x_delayed_retry_type="all", x_delayed_retry_min=100)
    lab.put(q, b"back", priority=0)
    channel.get(q)
    lab.put(q, b"low", priority=0, expiration=SOON)
    channel.reject(1)
    _show(lab, q, dead)


def _get_before_an_expired_one(lab: Lab, *, no_ack: bool, **arguments: object) -> None:
    q = lab.queue("q", durable=True, arguments={key.replace("_", "-"): value for key, value in arguments.items()})
    channel = lab.channel()
    channel.call(Confirm.Select)
    channel.publish(b"1", routing_key=q)
    channel.publish(b"2", routing_key=q, expiration="1")
    channel.confirms(1, 2)
    let_pass(lab, TTL_MS)
    channel.get(q, no_ack=no_ack)


@slow_scenario
def the_answer_to_a_get_counts_a_message_that_has_expired_behind_it(lab: Lab) -> None:
    _get_before_an_expired_one(lab, no_ack=False, x_queue_type="quorum")


@slow_scenario
def the_answer_to_a_get_without_ack_does_not_count_a_message_that_has_expired_behind_it(lab: Lab) -> None:
    _get_before_an_expired_one(lab, no_ack=True, x_queue_type="quorum")


@slow_scenario
def the_answer_to_a_get_from_a_classic_queue_does_not_count_a_message_that_has_expired_behind_it(lab: Lab) -> None:
    _get_before_an_expired_one(lab, no_ack=False, x_queue_type="classic")
