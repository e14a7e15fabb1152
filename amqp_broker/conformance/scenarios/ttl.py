"""TTL of messages, by queue and by expiration, and expiry of unused queues.

Every TTL here is short or for ever, and nothing is timed: what expires is awaited where it is dead-lettered to.
"""

from __future__ import annotations

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab, scenario, slow_scenario
from amqp_broker.conformance.scenario_channel import Channel

SOON = "20"
NEVER = "3600000"


def _with_dead_letters(lab: Lab, **arguments: object) -> tuple[Channel, str]:
    """Return a channel that consumes the dead letters of a queue, and that queue."""
    channel = lab.channel()
    dead = lab.queue("dead")
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    q = lab.queue(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, **given})
    channel.consume(dead, "dead", no_ack=True)
    return channel, q


def let_pass(lab: Lab, duration_ms: int) -> None:
    """Wait until a message with this TTL has expired, by the broker's own clock."""
    with lab.transcript.muted():
        channel = lab.channel()
        over = channel.declare(exclusive=True)
        timer = channel.declare(
            exclusive=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": over}
        )
        channel.consume(over, no_ack=True)
        channel.publish(b"", routing_key=timer, expiration=str(duration_ms))
        channel.deliveries(1)


def _until_gone(lab: Lab, queue: str) -> None:
    """Wait until a queue has expired: publishing does not keep it."""
    with lab.transcript.muted():
        channel = lab.channel()
        channel.ask_until_returned(queue)


@scenario
def a_message_expires_by_its_queue(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_message_ttl=20)
    lab.put(q, b"1", b"2")
    channel.deliveries(2)
    channel.declare(q, passive=True)


@scenario
def a_message_expires_by_its_own_expiration(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    lab.put(q, b"1", expiration=SOON, headers={"a": 1}, content_type="text/plain", priority=3)
    channel.deliveries(1)


@scenario
def the_shorter_of_expiration_and_queue_counts(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_message_ttl=3600000)
    lab.put(q, b"by itself", expiration=SOON)
    channel.deliveries(1)
    p = lab.queue(
        "p",
        arguments={
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": lab.name("dead"),
            "x-message-ttl": 20,
        },
    )
    lab.put(p, b"by its queue", expiration=NEVER)
    channel.deliveries(1)


@scenario
def an_expired_message_without_dead_letter_exchange_is_gone(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue(arguments={"x-message-ttl": 1})
    lab.put(q, b"1")
    let_pass(lab, 50)
    channel.get(q)
    channel.declare(q, passive=True)


@scenario
def an_expiration_of_0_expires_at_once(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    lab.put(q, b"1", expiration="0")
    channel.deliveries(1)
    channel.get(q)


@scenario
def a_queue_ttl_of_0_expires_at_once(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_message_ttl=0)
    lab.put(q, b"1", b"2")
    channel.deliveries(2)
    channel.get(q)


@scenario
def an_expiration_of_0_reaches_a_consumer_that_waits(lab: Lab) -> None:
    _channel, q = _with_dead_letters(lab)
    consumer = lab.channel()
    consumer.consume(q)
    lab.put(q, b"1", expiration="0")
    consumer.deliveries(1)


@scenario
def a_queue_ttl_of_0_reaches_a_consumer_that_waits(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_message_ttl=0)
    consumer = lab.channel()
    consumer.consume(q, no_ack=True)
    lab.put(q, b"1", b"2")
    consumer.deliveries(2)
    channel.sync(q)


@scenario
def an_expiration_of_0_does_not_wait_for_a_full_consumer(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    consumer = lab.channel()
    consumer.call(Basic.Qos, prefetch_count=1)
    consumer.consume(q)
    lab.put(q, b"1", b"2", expiration="0")
    consumer.deliveries(1)
    channel.deliveries(1)


@scenario
def only_the_head_of_a_queue_expires(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    puller = lab.channel()
    lab.put(q, b"stays")
    lab.put(q, b"expires", expiration=SOON)
    let_pass(lab, 100)
    puller.declare(q, passive=True)
    puller.get(q)
    puller.get(q)
    channel.deliveries(1)


@scenario
def what_comes_to_the_head_expires_behind_a_full_consumer(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    consumer = lab.channel()
    consumer.call(Basic.Qos, prefetch_count=1)
    lab.put(q, b"stays")
    lab.put(q, b"expires", expiration="50")
    consumer.consume(q)
    consumer.deliveries(1)
    channel.deliveries(1)


@scenario
def what_is_behind_a_longer_expiration_waits_for_it(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    lab.put(q, b"longer", expiration="100")
    lab.put(q, b"shorter", expiration=SOON)
    channel.deliveries(2)


@scenario
def an_unsettled_message_does_not_expire(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_message_ttl=50)
    consumer = lab.channel()
    consumer.consume(q)
    lab.put(q, b"1")
    consumer.deliveries(1)
    let_pass(lab, 100)
    consumer.ack(1)
    consumer.sync(q)
    channel.sync(q)


@scenario
def a_requeued_message_keeps_its_deadline(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_message_ttl=50)
    puller = lab.channel()
    consumer = lab.channel()
    consumer.consume(q)
    lab.put(q, b"1")
    consumer.deliveries(1)
    consumer.call(Basic.Cancel, consumer_tag="c")
    let_pass(lab, 100)
    consumer.nack(1)
    channel.deliveries(1)
    puller.get(q)


@scenario
def a_consumer_gets_nothing_that_has_expired(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    lab.put(q, b"1", b"2", expiration="1")
    channel.deliveries(2)
    lab.put(q, b"3")
    consumer = lab.channel()
    consumer.consume(q)
    consumer.deliveries(1)


@scenario
def an_expired_message_is_confirmed(lab: Lab) -> None:
    lab.put(lab.queue(arguments={"x-message-ttl": 0}), b"1")
    lab.put(lab.name("q"), b"2", expiration="0", delivery_mode=2)


@scenario
def an_expiration_may_have_a_sign_and_zeros(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    lab.put(q, b"1", expiration="+020")
    channel.deliveries(1)


@scenario
def purging_takes_messages_that_would_expire(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab)
    lab.put(q, b"1", expiration=NEVER)
    lab.put(q, b"2", expiration=NEVER)
    channel.call(Queue.Purge, queue=q)
    lab.put(q, b"3", expiration=SOON)
    channel.deliveries(1)


@scenario
def a_dead_letter_expires_anew_by_its_next_queue(lab: Lab) -> None:
    channel = lab.channel()
    last = lab.queue("last")
    two = lab.queue(
        "two",
        arguments={"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": last},
    )
    one = lab.queue("one", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": two})
    channel.consume(last, no_ack=True)
    lab.put(one, b"1", expiration=SOON)
    channel.deliveries(1)


# --- queues


@scenario
def an_unused_queue_expires(lab: Lab) -> None:
    q = lab.queue(arguments={"x-expires": 50})
    _until_gone(lab, q)
    lab.channel().call(Queue.Declare, queue=q, passive=True)


@scenario
def an_expired_queue_dead_letters_nothing(lab: Lab) -> None:
    channel, q = _with_dead_letters(lab, x_expires=1000)
    lab.put(q, b"1")
    _until_gone(lab, q)
    channel.sync(lab.name("dead"))


@scenario
def a_consumer_keeps_a_queue_from_expiring(lab: Lab) -> None:
    channel = lab.channel()
    # Long enough for the consumer to come in time on a busy machine.
    q = channel.declare(lab.name("q"), arguments={"x-expires": 1000})
    channel.consume(q)
    let_pass(lab, 1500)
    lab.put(q, b"1")
    channel.deliveries(1)
    channel.call(Basic.Cancel, consumer_tag="c")
    _until_gone(lab, q)
    channel.ack(1)
    channel.sync()


@scenario
def unsettled_messages_do_not_keep_a_queue_from_expiring(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), arguments={"x-expires": 1000})
    lab.put(q, b"1")
    channel.get(q)
    _until_gone(lab, q)
    channel.nack(1)
    channel.call(Queue.Declare, queue=q, passive=True)


@scenario
def an_expired_queue_takes_its_bindings_with_it(lab: Lab) -> None:
    channel = lab.channel()
    x = lab.name("x")
    channel.exchange(x, "fanout", auto_delete=True)
    q = channel.declare(lab.name("q"), arguments={"x-expires": 1000})
    channel.bind(q, x)
    _until_gone(lab, q)
    channel.exchange(x, "fanout", passive=True)


@scenario
def an_expired_queue_may_be_declared_otherwise(lab: Lab) -> None:
    q = lab.queue(arguments={"x-expires": 50})
    _until_gone(lab, q)
    lab.channel().declare(q, durable=True)


@slow_scenario
def a_quorum_queue_expires_although_it_is_declared_again(lab: Lab) -> None:
    channel, arguments = lab.channel(), {"x-queue-type": "quorum", "x-expires": 16_000}
    for name in ("declared", "pulled"):
        channel.declare(lab.name(name), durable=True, arguments=arguments)
    let_pass(lab, 9000)
    channel.declare(lab.name("declared"), durable=True, arguments=arguments)
    channel.declare(lab.name("declared"), passive=True)
    channel.get(lab.name("pulled"))
    # RabbitMQ looks for expired quorum queues every 5 s. A busy machine may need seconds for each step.
    let_pass(lab, 13_000)
    channel.declare(lab.name("pulled"), passive=True)
    channel.call(Queue.Declare, queue=lab.name("declared"), passive=True)
