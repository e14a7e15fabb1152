"""Dead-lettering: reasons, destinations, history, and exceptions."""

from __future__ import annotations

import itertools

from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.wire import Field


def _to(key: str, exchange: str = "", **arguments: object) -> dict[str, object]:
    """Return the arguments of a queue that dead-letters to an exchange with a routing key."""
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    return {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key, **given}


def _reject(channel: Channel, queue: str, *, requeue: bool = False) -> None:
    """Get the next message of a queue and reject it, unrecorded."""
    with channel.connection.transcript.muted():
        channel.reject(channel.get(queue)["delivery_tag"], requeue=requeue)
    channel.sync(queue)


@scenario
def a_rejected_message_is_dead_lettered(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    lab.put(q, b"1", content_type="text/plain", delivery_mode=2, headers={"z": 1, "a": "x"}, message_id="m")
    lab.put(q, b"2")
    channel.get(q)
    channel.get(q)
    channel.reject(1, requeue=False)
    channel.nack(2, requeue=False)
    channel.sync(q, dead)
    channel.drain(dead)


@scenario
def several_messages_nacked_at_once_are_dead_lettered_in_order(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    lab.put(q, b"1", b"2", b"3")
    channel.consume(q)
    channel.deliveries(3)
    channel.nack(0, multiple=True, requeue=False)
    channel.sync(q, dead)
    channel.drain(dead)


@scenario
def a_dead_letter_keeps_its_routing_key(lab: Lab) -> None:
    channel, dead, x = lab.channel(), lab.queue("dead"), lab.name("x")
    channel.exchange(x, "fanout")
    channel.bind(dead, x)
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    lab.put(q, b"1")
    _reject(channel, q)
    channel.drain(dead)


@scenario
def a_dead_letter_goes_through_an_exchange_like_any_message(lab: Lab) -> None:
    channel, one, two, x = lab.channel(), lab.queue("one"), lab.queue("two"), lab.name("x")
    channel.exchange(x, "topic")
    channel.bind(one, x, "dead.#")
    channel.bind(two, x, "*.letter")
    q = lab.queue(arguments=_to("dead.letter", x))
    lab.put(q, b"1")
    _reject(channel, q)
    channel.drain(one)
    channel.drain(two)


@scenario
def a_dead_letter_has_the_exchange_it_was_published_to(lab: Lab) -> None:
    channel, dead, x = lab.channel(), lab.queue("dead"), lab.name("x")
    channel.exchange(x, "direct")
    q = lab.queue(arguments=_to(dead))
    channel.bind(q, x, "k")
    channel.publish(b"1", exchange=x, routing_key="k")
    channel.sync(q)
    _reject(channel, q)
    channel.drain(dead)


@scenario
def a_dead_letter_exchange_that_is_missing_loses_it(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue(arguments={"x-dead-letter-exchange": lab.name("missing")})
    lab.put(q, b"1")
    _reject(channel, q)
    channel.get(q)


@scenario
def a_dead_letter_exchange_may_be_declared_later(lab: Lab) -> None:
    channel, dead, x = lab.channel(), lab.queue("dead"), lab.name("x")
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    lab.put(q, b"1", b"2")
    _reject(channel, q)
    channel.exchange(x, "fanout")
    channel.bind(dead, x)
    _reject(channel, q)
    channel.call(Exchange.Delete, exchange=x)
    channel.drain(dead)


@scenario
def an_unroutable_dead_letter_is_dropped(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue(arguments={"x-dead-letter-exchange": "amq.fanout"})
    lab.put(q, b"1")
    _reject(channel, q)
    channel.get(q)


@scenario
def a_dead_letter_may_take_the_alternate_exchange(lab: Lab) -> None:
    channel, dead, x, alternate = lab.channel(), lab.queue("dead"), lab.name("x"), lab.name("alternate")
    channel.exchange(alternate, "fanout")
    channel.exchange(x, "direct", arguments={"alternate-exchange": alternate})
    channel.bind(dead, alternate)
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    lab.put(q, b"1")
    _reject(channel, q)
    channel.drain(dead)


@scenario
def a_dead_letter_exchange_may_be_internal(lab: Lab) -> None:
    channel, dead, x = lab.channel(), lab.queue("dead"), lab.name("x")
    channel.exchange(x, "fanout", internal=True)
    channel.bind(dead, x)
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    lab.put(q, b"1")
    _reject(channel, q)
    channel.drain(dead)


@scenario
def a_dead_letter_is_routed_by_its_headers(lab: Lab) -> None:
    channel, dead, x = lab.channel(), lab.queue("dead"), lab.name("x")
    channel.exchange(x, "headers")
    channel.bind(dead, x, "", {"a": 1, "x-match": "all"})
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    lab.put(q, b"matches", headers={"a": 1})
    lab.put(q, b"does not", headers={"a": 2})
    _reject(channel, q)
    _reject(channel, q)
    channel.drain(dead)


@scenario
def a_dead_letter_may_be_routed_by_the_history_in_its_headers(lab: Lab) -> None:
    channel, dead, x = lab.channel(), lab.queue("dead"), lab.name("x")
    channel.exchange(x, "headers")
    channel.bind(dead, x, "", {"x-first-death-reason": "rejected", "x-match": "all-with-x"})
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    lab.put(q, b"1")
    _reject(channel, q)
    channel.drain(dead)


# --- exceptions


@scenario
def purged_messages_are_not_dead_lettered(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    lab.put(q, b"1")
    channel.call(Queue.Purge, queue=q)
    channel.sync(q, dead)
    channel.drain(dead)


@scenario
def messages_of_a_deleted_queue_are_not_dead_lettered(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.call(Queue.Delete, queue=q)
    channel.reject(1, requeue=False)
    channel.sync(dead)
    channel.drain(dead)


@scenario
def acked_and_requeued_messages_are_not_dead_lettered(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.get(q)
    channel.ack(1)
    channel.nack(2)
    channel.sync(q, dead)
    channel.drain(dead)


# --- CC and BCC


@scenario
def a_dead_letter_keeps_its_copies(lab: Lab) -> None:
    channel, x = lab.channel(), lab.name("x")
    channel.exchange(x, "direct")
    deads = [lab.queue(name) for name in ("dead-key", "dead-cc", "dead-bcc")]
    q = lab.queue(arguments={"x-dead-letter-exchange": x})
    for dead, key in zip(deads, (q, "cc", "bcc"), strict=True):
        channel.bind(dead, x, key)
    lab.put(q, b"1", headers={"CC": ["cc"], "BCC": ["bcc"], "other": 1})
    _reject(channel, q)
    channel.sync(*deads)
    for dead in deads:
        channel.drain(dead)


@scenario
def a_dead_letter_routing_key_takes_the_copies_away(lab: Lab) -> None:
    channel, x = lab.channel(), lab.name("x")
    channel.exchange(x, "direct")
    deads = [lab.queue(name) for name in ("dead-key", "dead-cc", "dead-bcc")]
    for dead, key in zip(deads, ("dead", "cc", "bcc"), strict=True):
        channel.bind(dead, x, key)
    q = lab.queue(arguments=_to("dead", x))
    lab.put(q, b"1", headers={"CC": ["cc"], "BCC": ["bcc"]})
    _reject(channel, q)
    channel.sync(*deads)
    for dead in deads:
        channel.drain(dead)


@scenario
def a_dead_letter_routing_key_may_be_a_key_of_the_bcc(lab: Lab) -> None:
    channel, dead, other = lab.channel(), lab.queue("dead"), lab.queue("other")
    second = lab.queue("second", arguments=_to(dead))
    q = lab.queue(arguments=_to(second))
    lab.put(q, b"1", headers={"BCC": [second]})
    lab.put(q, b"2", headers={"CC": [second]})
    lab.put(q, b"3", headers={"BCC": [other]})
    lab.put(q, b"4", headers={"BCC": [q]})
    for _ in range(4):
        _reject(channel, q)
    for _ in range(6):
        _reject(channel, second)
    channel.sync(dead)
    channel.drain(dead)
    channel.drain(other)


@scenario
def a_copy_dies_in_the_queue_of_its_cc(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    one, two = lab.queue("one", arguments=_to(dead)), lab.queue("two", arguments=_to(dead))
    lab.put(one, b"1", headers={"CC": [two]})
    _reject(channel, two)
    channel.drain(dead)
    _reject(channel, one)
    channel.drain(dead)


# --- the history


@scenario
def dying_twice_in_a_queue_is_counted(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    back = lab.queue("back", arguments=_to(q))
    with lab.transcript.muted():
        channel.call(Queue.Delete, queue=dead)
    q2 = lab.queue("q2", arguments=_to(back))
    lab.put(q2, b"1")
    _reject(channel, q2)
    _reject(channel, back)
    channel.drain(q)


@scenario
def a_message_that_is_rejected_again_and_again_goes_round(lab: Lab) -> None:
    channel = lab.channel()
    work, retry = lab.name("work"), lab.name("retry")
    lab.queue("work", arguments=_to(retry))
    lab.queue("retry", arguments=_to(work))
    lab.put(work, b"1")
    for _ in range(2):
        _reject(channel, work)
        _reject(channel, retry)
    channel.get(work)


@scenario
def a_retry_queue_sends_messages_back_and_counts(lab: Lab) -> None:
    channel = lab.channel()
    work, retry = lab.name("work"), lab.name("retry")
    lab.queue("work", arguments=_to(retry))
    lab.queue("retry", arguments=_to(work, x_message_ttl=20))
    channel.consume(work)
    lab.put(work, b"1", expiration="600000")
    for tag in (1, 2, 3):
        channel.deliveries(1)
        channel.reject(tag, requeue=False)
    channel.deliveries(1)


@scenario
def a_message_that_would_come_back_by_expiring_is_dropped(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue(arguments=_to(lab.name("q"), x_message_ttl=20))
    other = lab.queue("other")
    channel.consume(other, no_ack=True)
    x = lab.name("x")
    channel.exchange(x, "fanout")
    with lab.transcript.muted():
        channel.call(Queue.Delete, queue=q)
    q = lab.queue(arguments={"x-dead-letter-exchange": x, "x-message-ttl": 20})
    channel.bind(q, x)
    channel.bind(other, x)
    lab.put(q, b"1")
    channel.deliveries(1)
    channel.get(q)


@scenario
def a_cycle_of_two_queues_by_expiring_is_dropped(lab: Lab) -> None:
    channel = lab.channel()
    one, two, x = lab.name("one"), lab.name("two"), lab.name("x")
    witness = lab.queue("witness")
    channel.exchange(x, "fanout")
    lab.queue("one", arguments=_to(two, x_message_ttl=20))
    lab.queue("two", arguments=_to(one, x, x_message_ttl=20))
    channel.bind(one, x)
    channel.bind(witness, x)
    channel.consume(witness, no_ack=True)
    lab.put(one, b"1")
    channel.deliveries(1)
    channel.get(one)
    channel.get(two)


@scenario
def a_cycle_by_length_is_dropped(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue(arguments=_to(lab.name("q"), x_max_length=1))
    lab.put(q, b"1", b"2")
    channel.sync(q)
    channel.drain(q)


@scenario
def a_message_may_be_rejected_into_its_own_queue(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue(arguments=_to(lab.name("q")))
    lab.put(q, b"1")
    _reject(channel, q)
    _reject(channel, q)
    channel.get(q)


@scenario
def deaths_in_a_chain_of_queues_are_listed_newest_first(lab: Lab) -> None:
    channel = lab.channel()
    names = ["one", "two", "three", "four"]
    for name, after in itertools.pairwise(names):
        lab.queue(name, arguments=_to(lab.name(after)))
    last = lab.queue("four")
    lab.put(lab.name("one"), b"1", expiration="600000")
    for name in names[:-1]:
        _reject(channel, lab.name(name))
    channel.drain(last)


@scenario
def one_queue_may_give_up_a_message_for_two_reasons(lab: Lab) -> None:
    channel = lab.channel()
    back = lab.name("back")
    q = lab.queue(arguments=_to(back))
    lab.queue("back", arguments=_to(q, x_message_ttl=20))
    channel.consume(q)
    lab.put(q, b"1", expiration="600000")
    channel.deliveries(1)
    channel.reject(1, requeue=False)
    channel.deliveries(1)
    channel.call(Basic.Cancel, consumer_tag="c")
    with lab.transcript.muted():
        channel.call(Queue.Delete, queue=back)
    lab.queue("back")
    channel.reject(2, requeue=False)
    channel.sync(q, back)
    channel.drain(back)


@scenario
def the_history_of_a_message_has_its_expiration(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments=_to(dead))
    lab.put(q, b"1", expiration="600000")
    _reject(channel, q)
    channel.drain(dead)


@scenario
def a_message_may_die_of_its_length_and_of_expiring(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    short = lab.queue("short", arguments=_to(dead, x_max_length=1))
    q = lab.queue(arguments=_to(short))
    channel.consume(dead, no_ack=True)
    lab.put(q, b"1", expiration="20")
    lab.put(q, b"2", expiration="20")
    channel.deliveries(1)
    channel.drain(short)


# --- refusals


@scenario
def a_dead_letter_exchange_of_another_type_of_argument_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    for value in (1, True, None, Field("x", b"amq.direct"), Field("A", [])):
        connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments={"x-dead-letter-exchange": value})


@scenario
def a_dead_letter_routing_key_must_be_a_string_and_have_an_exchange(lab: Lab) -> None:
    connection = lab.connect()
    for arguments in (
        {"x-dead-letter-routing-key": "k"},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 1},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": True},
    ):
        connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=arguments)


@scenario
def a_dead_letter_exchange_is_compared(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue(arguments={"x-dead-letter-exchange": "amq.direct"})
    for arguments in (
        {"x-dead-letter-exchange": "amq.direct"},
        {"x-dead-letter-exchange": "amq.fanout"},
        {"x-dead-letter-exchange": "amq.direct", "x-dead-letter-routing-key": "k"},
        {},
    ):
        connection.channel().call(Queue.Declare, queue=q, arguments=arguments)
