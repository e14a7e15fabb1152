"""The trace of a vhost: copies of what is published and delivered, for whoever bound a queue to `amq.rabbitmq.trace`.

The plain trace is RabbitMQ's firehose: `publish.<exchange>` and `deliver.<queue>`, with the body, and in the headers
where the message came from and what it had for properties.

The extended trace tells more, each with `message_number` and `time_us` (since the epoch) in its headers; these two are
then also in `publish.` and `deliver.`, with `mandatory` in the former and `no_ack` in the latter. Numbers begin anew
with each broker: who keeps the events of several tells these apart by `numbered_since_us`, when the first number was
given. `routed_queues` of a publish are those that get it, which the firehose does not know of the default exchange. The
other events have no body:

    ack.<queue>, nack.<queue>    a message was settled; `requeue` tells whether it goes back (so does basic.recover)
    confirm.<exchange>           its publisher was told; `ack`, and its number among the channel's publishes
    return.<exchange>            it went back to its publisher; `reply_code` and `reply_text`
    expire.<queue>               its time to live was over
    drop.<queue>                 the queue lost it; `reason` is maxlen, delivery_limit, purged or queue_deleted
    dead_letter.<queue>          it was published anew, under a new number; `from_message_number`, `reason`,
                                 `routed_queues`, and how often it has died so in this queue: `death_count`

A message has one number in all its queues, from its publish to its end; 0 if it is older than the trace. Messages of
the trace itself leave no trace, also after they were dead-lettered: nothing may write about its own writing.

Who taps a vhost is told all that the extended trace tells, as values and in the same moment, without a queue.
RabbitMQ's firehose is as it was meanwhile.
Source: RabbitMQ, "Firehose Tracer"; rabbit_trace.erl; tried with 3.10.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker import fields
from amqp_broker.broker.dead_letter import EXPIRED, REJECTED
from amqp_broker.message import Address, Message, Properties, SpecialMessage, routing_keys

if TYPE_CHECKING:
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost

TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"
REPLY_TO_PREFIX: Final = "amq.rabbitmq.reply-to."
SHORTSTR_BYTES_MAX: Final = 255
# What RabbitMQ's firehose tells of.
FIREHOSE_EVENTS: Final = frozenset({"publish", "deliver"})

# Called with the event ("ack"), the name of its queue or exchange, its headers, the message, and the body where the
# event has one. It must not change anything of the broker.
Tap: TypeAlias = "Callable[[str, str, fields.Table, Message, bytes], None]"


class Trace:
    """What is told of a vhost's messages while it is traced: to the exchange, to taps, or both.

    `is_published` and `is_extended` say what the exchange gets, `is_full` whether anybody wants all there is to tell.
    """

    def __init__(self, vhost: VHost, taps: tuple[Tap, ...], *, is_published: bool, is_extended: bool) -> None:
        self.vhost = vhost
        self.taps = taps
        self.is_published = is_published
        self.is_extended = is_extended
        self.is_full = is_extended or bool(taps)
        # What is to be told. Telling delivers, which gives more to tell: that waits its turn here, not on the stack.
        self._pending: deque[tuple[str, fields.Table, bytes]] = deque()
        self._is_telling = False

    # What happens to messages, in the order in which it happens to one

    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        """A message that is about to be routed, with a number where that matters; `origin` is what it was before."""
        if not self.is_full or (origin is not None and self._is_own(origin)):
            return message
        special = SpecialMessage.of(message)
        special.number = self.vhost.broker.next_message_number()
        return special

    def published(
        self, connection: Connection, channel: int, message: Message, queues: Iterable[Queue], mandatory: bool = False
    ) -> None:
        """A message is about to go to its queues."""
        properties = message.properties()
        keys = routing_keys(message, properties)
        headers = self._headers(message, keys, properties)
        headers |= self._who(connection, channel)
        if message.exchange or self.is_extended:
            routed = sorted(queue.name for queue in queues)
        else:
            # The default exchange asks nobody whether there is such a queue.
            routed = sorted({key for key in keys if not key.startswith(REPLY_TO_PREFIX)})
        headers["routed_queues"] = routed
        if self.is_full:
            headers["mandatory"] = mandatory
        self._tell("publish", message.exchange, headers, message, message.body)

    def returned(self, connection: Connection, channel: int, message: Message, code: int, text: str) -> None:
        """A mandatory message found no queue."""
        if self.is_full:
            headers = self._brief(message) | self._who(connection, channel)
            headers |= {"reply_code": code, "reply_text": text}
            self._tell("return", message.exchange, headers, message)

    def confirmed(self, connection: Connection, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        """Its publisher hears that the broker has, or has not, taken over a message."""
        if self.is_full:
            headers = self._brief(message) | self._who(connection, channel)
            headers |= {"delivery_tag": fields.Long(tag), "ack": is_ack}
            self._tell("confirm", message.exchange, headers, message)

    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: Connection, channel: int, no_ack: bool
    ) -> None:
        """A message was sent to a consumer, or to who asked for one."""
        properties = message.properties()
        if self._is_own(message, properties):
            return
        headers = self._headers(message, routing_keys(message, properties), properties)
        headers["redelivered"] = int(redelivered)
        headers |= self._who(connection, channel)
        if self.is_full:
            headers["no_ack"] = no_ack
        self._tell("deliver", queue.name, headers, message, message.body)

    def acked(self, queue: Queue, message: Message, connection: Connection, channel: int) -> None:
        self._settled("ack", queue, message, self._who(connection, channel))

    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: Connection, channel: int) -> None:
        self._settled("nack", queue, message, self._who(connection, channel) | {"requeue": requeue})

    def given_up(self, queue: Queue, message: Message, reason: str) -> None:
        """A queue lost a message other than by its being settled."""
        if reason == EXPIRED:
            self._settled("expire", queue, message, {"vhost": self.vhost.name})
        elif reason != REJECTED:
            self._settled("drop", queue, message, {"vhost": self.vhost.name, "reason": reason})

    def dead_lettered(self, queue: Queue, message: Message, dead: Message, reason: str, targets: list[Queue]) -> None:
        """`message` is about to go to its next queues as `dead`."""
        if not self.is_full or self._is_own(message):
            return
        headers = self._brief(dead) | {"vhost": self.vhost.name, "reason": reason}
        headers["routed_queues"] = sorted(target.name for target in targets)
        headers["from_message_number"] = fields.Long(_number(message))
        headers["death_count"] = _death_count(dead)
        self._tell("dead_letter", queue.name, headers, dead)

    def _settled(self, event: str, queue: Queue, message: Message, more: fields.Table) -> None:
        if self.is_full and not self._is_own(message):
            self._tell(event, queue.name, self._brief(message) | more, message)

    # How it is told

    def _is_own(self, message: Message, properties: Properties | None = None) -> bool:
        """Whether this is a message of the trace, or was one before it died."""
        if message.exchange == TRACE_EXCHANGE:
            return True
        if _number(message):
            return False
        headers = (properties or message.properties()).headers or {}
        return headers.get("x-first-death-exchange") == TRACE_EXCHANGE

    def _headers(self, message: Message, keys: list[str], properties: Properties) -> fields.Table:
        # In RabbitMQ's order: properties last to first.
        # A timestamp that 32 bits don't hold is whole here; RabbitMQ cuts it.
        table = dict(reversed(properties.as_dict().items()))
        return {
            "exchange_name": message.exchange,
            "routing_keys": keys,
            "properties": table,
            "node": self.vhost.broker.node,
        }

    def _brief(self, message: Message) -> fields.Table:
        """What names a message: where it was published to."""
        keys = [message.routing_key]
        return {"exchange_name": message.exchange, "routing_keys": keys, "node": self.vhost.broker.node}

    def _who(self, connection: Connection, channel: int) -> fields.Table:
        user = connection.user.name if connection.user is not None else ""
        return {"vhost": self.vhost.name, "connection": connection.name, "channel": channel, "user": user}

    def _tell(self, event: str, name: str, headers: fields.Table, message: Message, body: bytes = b"") -> None:
        if self.is_full:
            full = headers.copy()
            full["message_number"] = fields.Long(_number(message))
            full["time_us"] = fields.Long(self.vhost.broker.now_us())
            for tap in self.taps:
                tap(event, name, full, message, body)
            if self.is_extended:
                headers = full
                headers["numbered_since_us"] = fields.Long(self.vhost.broker.numbered_since_us)
            else:
                headers.pop("no_ack", None)
                headers.pop("mandatory", None)
        if self.is_published and (self.is_extended or event in FIREHOSE_EVENTS):
            self._copy(f"{event}.{name}", headers, body)

    def _copy(self, key: str, headers: fields.Table, body: bytes) -> None:
        """Publish what is told."""
        # The name may fill a short string alone; then the end of it is lost.
        key = key.encode("utf-8", "surrogateescape")[:SHORTSTR_BYTES_MAX].decode("utf-8", "surrogateescape")
        self._pending.append((key, headers, body))
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._pending:
                self._publish(*self._pending.popleft())
        finally:
            self._is_telling = False

    def _publish(self, key: str, headers: fields.Table, body: bytes) -> None:
        exchange = self.vhost.exchanges[TRACE_EXCHANGE]
        copy = Message.build(Address(TRACE_EXCHANGE, key), Properties(headers=headers), body)
        for queue in self.vhost.route(exchange, (key,), headers, copy)[0]:
            queue.accept(copy)


def _number(message: Message) -> int:
    return message.number if isinstance(message, SpecialMessage) else 0


def _death_count(dead: Message) -> fields.Long:
    """How often a message has died as it did just now (dead_letter.with_death puts that first)."""
    deaths = (dead.properties().headers or {}).get("x-death")
    return fields.Long(deaths[0]["count"] if isinstance(deaths, list) else 1)
