"""Refusals on an open channel: the steps before, the reply code and the exact text."""

from __future__ import annotations

from typing import Any, NamedTuple

from pamqp import base, commands
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

LOCKED = (
    "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another "
    "connection or the exclusive property value does not match that of the original declaration."
)
QUORUM = {"x-queue-type": "quorum"}
REPLY_TO = "amq.rabbitmq.reply-to"


class Publish(NamedTuple):
    """A basic.publish with its content."""

    exchange: str = ""
    routing_key: str = "q"
    body: bytes = b""
    properties: dict[str, Any] = {}  # noqa: RUF012 (never changed)


class Row(NamedTuple):
    """`given` are methods that are answered first, `theirs` the same on another connection."""

    offender: base.Frame | Publish
    code: int
    text: str
    given: tuple[base.Frame | Publish, ...] = ()
    theirs: tuple[base.Frame, ...] = ()


def declared(**arguments: Any) -> Queue.Declare:
    return Queue.Declare(queue="q", arguments={f"x-{name.replace('_', '-')}": arguments[name] for name in arguments})


def quorum(**attributes: Any) -> Queue.Declare:
    return Queue.Declare(**{"queue": "q", "durable": True, "arguments": QUORUM, **attributes})


def argument(name: str, value: Any, wrong: str, **others: Any) -> Row:
    """A queue argument with a value that it cannot have."""
    table = {name: value, **others}
    return Row(Queue.Declare(queue="q", durable=True, arguments=table), 406, f"invalid arg '{name}' for {Q}: {wrong}")


def foreign(name: str, value: Any, queue_type: str = "classic") -> Row:
    """A queue argument that only other types of queues have."""
    table = {name: value, "x-queue-type": queue_type}
    text = f"invalid arg '{name}' for {Q} of queue type rabbit_{queue_type}_queue"
    return Row(Queue.Declare(queue="q", durable=True, arguments=table), 406, text)


Q, X = "queue 'q' in vhost '/'", "exchange 'x' in vhost '/'"
THE_QUEUE, THE_EXCHANGE = Queue.Declare(queue="q"), Exchange.Declare(exchange="x", exchange_type="fanout")
EXCLUSIVE = Queue.Declare(queue="q", exclusive=True)
DEFAULT = "operation not permitted on the default exchange"

EXCHANGES = [
    # 3.10 closes the connection with 503 instead.
    Row(Exchange.Declare(exchange="x", exchange_type="x-odd"), 406, "unknown exchange type 'x-odd'"),
    Row(Exchange.Declare(exchange="amq.x"), 403, "exchange name 'amq.x' contains reserved prefix 'amq.*'"),
    Row(Exchange.Declare(exchange=""), 403, DEFAULT),
    Row(Exchange.Delete(exchange=""), 403, DEFAULT),
    Row(Exchange.Bind(destination="", source="amq.fanout"), 403, DEFAULT),
    Row(Exchange.Bind(destination="amq.fanout", source=""), 403, DEFAULT),
    Row(Exchange.Unbind(destination="amq.fanout", source=""), 403, DEFAULT),
    Row(Queue.Bind(queue="q", exchange=""), 403, DEFAULT, given=(THE_QUEUE,)),
    Row(Queue.Unbind(queue="q", exchange=""), 403, DEFAULT, given=(THE_QUEUE,)),
    Row(
        Exchange.Delete(exchange="amq.direct"), 403, "deletion of system exchange 'amq.direct' in vhost '/' not allowed"
    ),
    Row(
        Exchange.Declare(exchange="x", exchange_type="topic", durable=True),
        406,
        f"inequivalent arg 'type' for {X}: received 'topic' but current is 'fanout'",
        given=(THE_EXCHANGE,),
    ),
    Row(
        Exchange.Declare(exchange="x", exchange_type="fanout", durable=True, auto_delete=True),
        406,
        f"inequivalent arg 'durable' for {X}: received 'true' but current is 'false'",
        given=(THE_EXCHANGE,),
    ),
    Row(
        Exchange.Declare(exchange="x", exchange_type="fanout", auto_delete=True, internal=True),
        406,
        f"inequivalent arg 'auto_delete' for {X}: received 'true' but current is 'false'",
        given=(THE_EXCHANGE,),
    ),
    Row(
        Exchange.Declare(exchange="x", exchange_type="fanout", internal=True, arguments={"alternate-exchange": "a"}),
        406,
        f"inequivalent arg 'internal' for {X}: received 'true' but current is 'false'",
        given=(THE_EXCHANGE,),
    ),
    Row(
        Exchange.Declare(exchange="x", exchange_type="fanout", arguments={"alternate-exchange": "a"}),
        406,
        f"inequivalent arg 'alternate-exchange' for {X}: received the value 'a' of type 'longstr' but current is none",
        given=(THE_EXCHANGE,),
    ),
    Row(Exchange.Declare(exchange="x", passive=True), 404, "no exchange 'x' in vhost '/'"),
    Row(
        Exchange.Delete(exchange="x", if_unused=True),
        406,
        f"{X} in use",
        given=(THE_EXCHANGE, THE_QUEUE, Queue.Bind(queue="q", exchange="x")),
    ),
    Row(
        Exchange.Declare(exchange="x", arguments={"alternate-exchange": True}),
        406,
        f"invalid type 'bool' for arg 'alternate-exchange' in {X}",
    ),
    Row(
        Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "odd"}),
        406,
        'Invalid x-match field value <<"odd">>; expected all, any, all-with-x, or any-with-x',
        given=(THE_QUEUE,),
    ),
    Row(
        Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": True}),
        406,
        "Invalid x-match field type bool (value true); expected longstr",
        given=(THE_QUEUE,),
    ),
    Row(Exchange.Bind(destination="amq.fanout", source="x"), 404, "no exchange 'x' in vhost '/'"),
    Row(Exchange.Bind(destination="x", source="amq.fanout"), 404, "no exchange 'x' in vhost '/'"),
]
QUEUES = [
    Row(Queue.Declare(queue="amq.q"), 403, "queue name 'amq.q' contains reserved prefix 'amq.*'"),
    Row(Queue.Declare(queue="q", passive=True), 404, "no queue 'q' in vhost '/'"),
    Row(Queue.Declare(queue=f"{REPLY_TO}.x", passive=True), 404, f"no queue '{REPLY_TO}.x' in vhost '/'"),
    Row(
        Queue.Declare(queue="q", durable=True, auto_delete=True),
        406,
        f"inequivalent arg 'durable' for {Q}: received 'true' but current is 'false'",
        given=(THE_QUEUE,),
    ),
    Row(
        Queue.Declare(queue="q", auto_delete=True),
        406,
        f"inequivalent arg 'auto_delete' for {Q}: received 'true' but current is 'false'",
        given=(THE_QUEUE,),
    ),
    Row(EXCLUSIVE, 405, LOCKED, given=(THE_QUEUE,)),
    Row(THE_QUEUE, 405, LOCKED, given=(EXCLUSIVE,)),
    Row(
        declared(message_ttl=70000),
        406,
        f"inequivalent arg 'x-message-ttl' for {Q}: received the value '70000' of type 'signedint' but current is none",
        given=(THE_QUEUE,),
    ),
    Row(
        THE_QUEUE,
        406,
        f"inequivalent arg 'x-message-ttl' for {Q}: received none but current is the value '70000' of type 'signedint'",
        given=(declared(message_ttl=70000),),
    ),
    Row(
        declared(message_ttl=1),
        406,
        f"inequivalent arg 'x-message-ttl' for {Q}: received '1' but current is '2'",
        given=(declared(message_ttl=2),),
    ),
    Row(
        quorum(),
        406,
        f"inequivalent arg 'x-queue-type' for {Q}: received 'quorum' but current is 'classic'",
        given=(Queue.Declare(queue="q", durable=True),),
    ),
    Row(
        quorum(arguments={**QUORUM, "x-expires": 70000, "x-overflow": "drop-head"}),
        406,
        f"inequivalent arg 'x-expires' for {Q}: received the value '70000' of type 'signedint' but current is none",
        given=(quorum(),),
    ),
    *(
        Row(offender, 405, LOCKED, theirs=(EXCLUSIVE,))
        for offender in (
            THE_QUEUE,
            Queue.Declare(queue="q", passive=True),
            Queue.Bind(queue="q", exchange="amq.fanout"),
            Queue.Purge(queue="q"),
            Queue.Delete(queue="q"),
            Basic.Get(queue="q"),
            Basic.Consume(queue="q"),
        )
    ),
    Row(Queue.Delete(queue="q", if_unused=True), 406, f"{Q} in use", given=(THE_QUEUE, Basic.Consume(queue="q"))),
    Row(Queue.Delete(queue="q", if_empty=True), 406, f"{Q} not empty", given=(THE_QUEUE, Publish())),
    Row(quorum(queue=""), 406, "Cannot declare a server-named queue for type rabbit_quorum_queue"),
    Row(quorum(durable=False), 406, f"invalid property 'non-durable' for {Q}"),
    Row(quorum(auto_delete=True), 406, f"invalid property 'auto-delete' for {Q}"),
    Row(quorum(exclusive=True), 406, f"invalid property 'exclusive-owner' for {Q}"),
    Row(Queue.Purge(queue=""), 404, "no previously declared queue"),
    Row(Queue.Purge(queue="q"), 404, "no queue 'q' in vhost '/'"),
    Row(Queue.Bind(queue="q", exchange="x"), 404, "no exchange 'x' in vhost '/'"),
    Row(Queue.Bind(queue="q", exchange="amq.fanout"), 404, "no queue 'q' in vhost '/'"),
    Row(
        Queue.Delete(queue="q", if_unused=True),
        540,
        f"cannot delete {Q}. queue.delete operations with if-unused flag set are not supported by quorum queues",
        given=(quorum(),),
    ),
    Row(
        Queue.Delete(queue="q", if_empty=True),
        540,
        f"cannot delete {Q}. queue.delete operations with if-empty flag set are not supported by quorum queues",
        given=(quorum(),),
    ),
]
ARGUMENTS = [
    argument("x-expires", 0, "{value_zero,0}"),
    argument("x-expires", -1, "{value_negative,-1}"),
    argument("x-expires", 315_360_000_001, "{value_too_large,315360000001}"),
    argument("x-message-ttl", "1", '"expected integer, got longstr"'),
    argument("x-message-ttl", 315_360_000_001, "{value_too_large,315360000001}"),
    argument("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    argument("x-dead-letter-strategy", "odd", "invalid_dlx_strategy", **QUORUM),
    argument("x-max-length", -1, "{value_negative,-1}"),
    argument("x-max-length-bytes", 1.5, '"expected integer, got float"'),
    argument("x-max-in-memory-length", -1, "{value_negative,-1}", **QUORUM),
    argument("x-max-in-memory-bytes", "a", '"expected integer, got longstr"', **QUORUM),
    argument("x-overflow", "odd", "invalid_overflow"),
    argument("x-max-priority", 256, "{max_value_exceeded,256}"),
    argument("x-single-active-consumer", "true", "{unacceptable_type,longstr}"),
    argument("x-queue-type", "odd", "\"unsupported queue type 'odd'\""),
    argument("x-queue-mode", "odd", "\"unsupported queue mode 'odd'\""),
    argument("x-queue-version", 3, "\"unsupported queue version '3'\""),
    argument("x-quorum-initial-group-size", 0, "{value_zero,0}", **QUORUM),
    argument("x-queue-leader-locator", "odd", "invalid_queue_locator_arg", **QUORUM),
    Row(declared(dead_letter_exchange=True), 406, f"invalid type 'bool' for arg 'x-dead-letter-exchange' in {Q}"),
    # The type first, then the values of what it knows, then what it does not know, as given.
    argument("x-queue-type", "odd", "\"unsupported queue type 'odd'\"", **{"x-expires": 0, "x-max-age": "1D"}),
    argument("x-expires", 0, "{value_zero,0}", **{"x-delivery-limit": "a", "x-max-age": "1D"}),
    *(
        foreign(name, value)
        for name, value in (
            ("x-max-in-memory-length", "odd"),
            ("x-max-in-memory-bytes", 1),
            ("x-delivery-limit", "odd"),
            ("x-dead-letter-strategy", "odd"),
            ("x-quorum-initial-group-size", 1),
            ("x-max-age", "1D"),
            ("x-stream-max-segment-size-bytes", 1000),
            ("x-initial-cluster-size", 1),
        )
    ),
    *(
        foreign(name, value, "quorum")
        for name, value in (
            ("x-max-priority", -1),
            ("x-queue-mode", "odd"),
            ("x-queue-version", 5),
            ("x-queue-master-locator", "min-masters"),
            ("x-max-age", "1D"),
            ("x-stream-max-segment-size-bytes", 1000),
            ("x-initial-cluster-size", 1),
        )
    ),
]
PUBLISHING = [
    Row(Publish("x"), 404, "no exchange 'x' in vhost '/'"),
    Row(
        Publish("x"),
        403,
        f"cannot publish to internal {X}",
        given=(Exchange.Declare(exchange="x", exchange_type="fanout", internal=True),),
    ),
    Row(Publish(properties={"reply_to": REPLY_TO}), 406, "fast reply consumer does not exist"),
    Row(Publish(properties={"expiration": "abc"}), 406, "invalid expiration 'abc': no_integer"),
    Row(Publish(properties={"expiration": "1x"}), 406, "invalid expiration '1x': {leftover_string,\"x\"}"),
    Row(Publish(properties={"expiration": "-1"}), 406, "invalid expiration '-1': {value_negative,-1}"),
    Row(
        Publish(properties={"expiration": "315360000001"}),
        406,
        "invalid expiration '315360000001': {value_too_large,315360000001}",
    ),
    Row(
        Publish(properties={"headers": {"CC": "a"}}),
        406,
        'invalid message: {unacceptable_type_in_header,"CC",longstr}',
    ),
    Row(
        Publish(properties={"headers": {"BCC": True}}),
        406,
        'invalid message: {unacceptable_type_in_header,"BCC",bool}',
    ),
    Row(
        Publish(properties={"user_id": "anna"}),
        406,
        "user_id property set to 'anna' but authenticated user was 'guest'",
    ),
    Row(Confirm.Select(), 406, "cannot switch from tx to confirm mode", given=(Tx.Select(),)),
    Row(Tx.Select(), 406, "cannot switch from confirm to tx mode", given=(Confirm.Select(),)),
    Row(Tx.Commit(), 406, "channel is not transactional"),
    Row(Tx.Rollback(), 406, "channel is not transactional"),
    Row(
        Tx.Commit(),
        406,
        "partial tx completion",
        given=(declared(max_length=0, overflow="reject-publish"), Tx.Select(), Publish()),
    ),
]
CONSUMING = [
    Row(Basic.Consume(queue="q"), 404, "no queue 'q' in vhost '/'"),
    Row(Basic.Consume(queue=""), 404, "no previously declared queue"),
    Row(
        Basic.Consume(queue="q", consumer_tag="two"),
        403,
        f"{Q} in exclusive use",
        given=(THE_QUEUE, Basic.Consume(queue="q", consumer_tag="one", exclusive=True)),
    ),
    Row(
        Basic.Consume(queue="q", consumer_tag="two", exclusive=True),
        403,
        f"{Q} in exclusive use",
        given=(THE_QUEUE, Basic.Consume(queue="q", consumer_tag="one")),
    ),
    Row(
        Basic.Consume(queue="q", exclusive=True),
        403,
        f"{Q} in exclusive use",
        given=(declared(single_active_consumer=True),),
    ),
    Row(
        Basic.Consume(queue="q", consumer_tag="one"),
        530,
        "attempt to reuse consumer tag 'one'",
        given=(THE_QUEUE, Basic.Consume(queue="q", consumer_tag="one")),
    ),
    Row(
        Basic.Consume(queue="q", arguments={"x-priority": "high"}),
        406,
        f"invalid arg 'x-priority' for {Q}: \"expected integer, got longstr\"",
        given=(THE_QUEUE,),
    ),
    Row(
        Basic.Consume(queue="q", arguments={"x-stream-offset": "first"}),
        406,
        f"invalid arg 'x-stream-offset' for {Q} of queue type rabbit_classic_queue",
        given=(THE_QUEUE,),
    ),
    Row(Basic.Consume(queue=REPLY_TO), 406, "reply consumer cannot acknowledge"),
    Row(
        Basic.Consume(queue=REPLY_TO, no_ack=True, consumer_tag="two"),
        406,
        "reply consumer already set",
        given=(Basic.Consume(queue=REPLY_TO, no_ack=True, consumer_tag="one"),),
    ),
    Row(
        Basic.Consume(queue="q"),
        540,
        f"{Q} does not support global qos",
        given=(quorum(), Basic.Qos(prefetch_count=1, global_=True)),
    ),
    Row(Basic.Qos(prefetch_size=1), 540, "prefetch_size!=0 (1)"),
    Row(Basic.Get(queue="q"), 404, "no queue 'q' in vhost '/'"),
    Row(
        Basic.Get(queue="q"),
        405,
        f"cannot obtain access to locked {Q}. basic.get operations are not supported by quorum queues with single "
        "active consumer",
        given=(quorum(arguments={**QUORUM, "x-single-active-consumer": True}),),
    ),
    Row(Basic.Ack(42), 406, "unknown delivery tag 42"),
    Row(Basic.Ack(42, multiple=True), 406, "unknown delivery tag 42"),
    Row(Basic.Ack(0), 406, "unknown delivery tag 0"),
    Row(Basic.Nack(42), 406, "unknown delivery tag 42"),
    Row(Basic.Reject(42), 406, "unknown delivery tag 42"),
    Row(Basic.Recover(requeue=False), 540, "requeue=false"),
    Row(commands.Channel.Flow(active=False), 540, "active=false"),
]
ROWS = EXCHANGES + QUEUES + ARGUMENTS + PUBLISHING + CONSUMING
