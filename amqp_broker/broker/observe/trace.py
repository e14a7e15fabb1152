"""The trace of a vhost: copies of published and delivered messages in the exchange `amq.rabbitmq.trace`.

The plain trace is RabbitMQ's firehose: `publish.<exchange>` and `deliver.<queue>` with the body. The headers have the
address and the properties of the message.

The extended trace has more events. All have `message_number` and `time_us` (since the epoch) in their headers;
`publish.` also has `mandatory`, and `deliver.` has `no_ack`. Numbers start again with each broker; `numbered_since_us`,
the time of the first number, distinguishes the runs. `routed_queues` of a publish are the queues that receive it,
which the firehose does not know for the default exchange. The other events have no body:

    ack.<queue>, nack.<queue>    a message was settled, or requeued by basic.recover; `requeue`
    confirm.<exchange>           its publisher got a confirm; `ack`, and `delivery_tag`, its number on the channel
    return.<exchange>            it was returned to its publisher; `reply_code` and `reply_text`
    expire.<queue>               its TTL has expired
    drop.<queue>                 the queue dropped it; `reason` is maxlen, delivery_limit, purged or queue_deleted
    dead_letter.<queue>          it was dead-lettered with a new number; `from_message_number`, `reason`,
                                 `routed_queues`, and `death_count`, its deaths in this queue for this reason

A message has one number in all its queues, or 0 if it is older than the trace. Messages of the trace itself are not
traced, not even after they were dead-lettered, so that a trace cannot cause itself.

Observers of a vhost receive everything the extended trace publishes, as values, at the same moment and without a queue.
They do not affect RabbitMQ's firehose. They also receive what fault rules did, which is not published: `fault` of a
queue, of an exchange, or (without a message) of a connection, with `action`, `rule_id`, `on` and `parameters`.
Source: RabbitMQ, "Firehose Tracer"; rabbit_trace.erl; tried with 3.10.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage, routing_keys
from amqp_broker.broker.queues.dead_letter_reasons import EXPIRED, REJECTED

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import User
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue

TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"
REPLY_TO_PREFIX: Final = "amq.rabbitmq.reply-to."
SHORTSTR_BYTES_MAX: Final = 255
# The events of RabbitMQ's firehose.
FIREHOSE_EVENTS: Final = frozenset({"publish", "deliver"})

# Called with the event ("ack"), the name of its queue or exchange, its headers, the message (None for a fault of a
# connection), and the body if the event has one. An observer must not change the broker.
Observer: TypeAlias = "Callable[[str, str, fields.Table, Message | None, bytes], None]"


class TracedBroker(Protocol):
    """The broker of traced messages."""

    node: str
    numbered_since_us: int
    now_us: Callable[[], int]

    def next_message_number(self) -> int:
        """Return a number for a traced message."""
        ...


class TracedClient(Protocol):
    """The connection of a client that does something with a message."""

    @property
    def name(self) -> str: ...

    @property
    def user(self) -> User | None: ...


class TracedVHost(Protocol):
    """The vhost of traced messages."""

    name: str

    @property
    def broker(self) -> TracedBroker: ...

    @property
    def exchanges(self) -> Mapping[str, Exchange]: ...

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> tuple[list[Queue], bool]:
        """Return the queues for a message, and whether more than its routing keys decided."""
        ...


class Trace:
    """Reports the events of a vhost's messages to the trace exchange, to observers, or to both.

    `is_published` and `is_extended` decide about the exchange. `is_full` is true if any receiver needs all events.
    """

    def __init__(
        self, vhost: TracedVHost, observers: tuple[Observer, ...], *, is_published: bool, is_extended: bool
    ) -> None:
        self.vhost = vhost
        self.observers = observers
        self.is_published = is_published
        self.is_extended = is_extended
        self.is_full = is_extended or bool(observers)
        # Events to publish. Publishing delivers, which causes more events: they wait here instead of recursing.
        self._pending: deque[tuple[str, fields.Table, bytes]] = deque()
        self._is_publishing = False

    # Events, in the order of a message's life

    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        """Return the message with a number if events need one; `origin` is the message it was dead-lettered from."""
        if not self.is_full or (origin is not None and self._is_own(origin)):
            return message
        special = SpecialMessage.of(message)
        special.number = self.vhost.broker.next_message_number()
        return special

    def published(
        self, connection: TracedClient, channel: int, message: Message, queues: Iterable[Queue], mandatory: bool = False
    ) -> None:
        """Report a message that is about to go to its queues."""
        properties = message.properties()
        keys = routing_keys(message, properties)
        headers = self._headers(message, keys, properties)
        headers |= self._client(connection, channel)
        headers["routed_queues"] = sorted(queue.name for queue in queues)
        if self.is_full:
            headers["mandatory"] = mandatory
        self._report("publish", message.exchange, headers, message, message.body)

    def returned(self, connection: TracedClient, channel: int, message: Message, code: int, text: str) -> None:
        """Report a mandatory message without a queue."""
        if self.is_full:
            headers = self._identity(message) | self._client(connection, channel)
            headers |= {"reply_code": code, "reply_text": text}
            self._report("return", message.exchange, headers, message)

    def confirmed(self, connection: TracedClient, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        """Report the confirm of a message, an ack or a nack."""
        if self.is_full:
            headers = self._identity(message) | self._client(connection, channel)
            headers |= {"delivery_tag": fields.Long(tag), "ack": is_ack}
            self._report("confirm", message.exchange, headers, message)

    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: TracedClient, channel: int, no_ack: bool
    ) -> None:
        """Report a message that was sent to a consumer or in answer to basic.get."""
        properties = message.properties()
        if self._is_own(message, properties):
            return
        headers = self._headers(message, routing_keys(message, properties), properties)
        headers["redelivered"] = int(redelivered)
        headers |= self._client(connection, channel)
        if self.is_full:
            headers["no_ack"] = no_ack
        self._report("deliver", queue.name, headers, message, message.body)

    def acked(self, queue: Queue, message: Message, connection: TracedClient, channel: int) -> None:
        self._settled("ack", queue, message, self._client(connection, channel))

    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: TracedClient, channel: int) -> None:
        self._settled("nack", queue, message, self._client(connection, channel) | {"requeue": requeue})

    def given_up(self, queue: Queue, message: Message, reason: str) -> None:
        """Report a message that a queue has expired or dropped."""
        if reason == EXPIRED:
            self._settled("expire", queue, message, {"vhost": self.vhost.name})
        elif reason != REJECTED:
            self._settled("drop", queue, message, {"vhost": self.vhost.name, "reason": reason})

    def dead_lettered(self, queue: Queue, message: Message, dead: Message, reason: str, targets: list[Queue]) -> None:
        """Report `message`, which is about to go to its next queues as `dead`."""
        if not self.is_full or self._is_own(message):
            return
        headers = self._identity(dead) | {"vhost": self.vhost.name, "reason": reason}
        headers["routed_queues"] = sorted(target.name for target in targets)
        headers["from_message_number"] = fields.Long(_number(message))
        headers["death_count"] = _death_count(dead)
        self._report("dead_letter", queue.name, headers, dead)

    def faulted(self, connection: str, facts: fields.Table, message: Message | None, queue: str | None) -> None:
        """Report a fault that has hit a message, at a queue or at its exchange, or (None) a connection."""
        name = queue if queue is not None else connection if message is None else message.exchange
        identity = {"routing_keys": [], "exchange_name": ""} if message is None else self._identity(message)
        number = 0 if message is None else _number(message)
        place = {"vhost": self.vhost.name, "message_number": number, "time_us": self.vhost.broker.now_us()}
        facts = {**identity, **place, **facts}
        if queue is not None:
            facts["queue"] = queue
        for observer in self.observers:
            observer("fault", name, facts, message, b"")

    def _settled(self, event: str, queue: Queue, message: Message, more: fields.Table) -> None:
        if self.is_full and not self._is_own(message):
            self._report(event, queue.name, self._identity(message) | more, message)

    # Publishing

    def _is_own(self, message: Message, properties: Properties | None = None) -> bool:
        """Return True for a message of the trace, dead-lettered ones included."""
        if message.exchange == TRACE_EXCHANGE:
            return True
        if _number(message):
            return False
        headers = (properties or message.properties()).headers or {}
        return headers.get("x-first-death-exchange") == TRACE_EXCHANGE

    def _headers(self, message: Message, keys: list[str], properties: Properties) -> fields.Table:
        # In RabbitMQ's order: properties last to first. Timestamps above 32 bits are kept, which RabbitMQ truncates.
        table = dict(reversed(properties.as_dict().items()))
        return {
            "exchange_name": message.exchange,
            "routing_keys": keys,
            "properties": table,
            "node": self.vhost.broker.node,
        }

    def _identity(self, message: Message) -> fields.Table:
        """Return the headers that identify a message: its address and the node."""
        keys = [message.routing_key]
        return {"exchange_name": message.exchange, "routing_keys": keys, "node": self.vhost.broker.node}

    def _client(self, connection: TracedClient, channel: int) -> fields.Table:
        user = connection.user.name if connection.user is not None else ""
        return {"vhost": self.vhost.name, "connection": connection.name, "channel": channel, "user": user}

    def _report(self, event: str, name: str, headers: fields.Table, message: Message, body: bytes = b"") -> None:
        if self.is_full:
            full = headers.copy()
            full["message_number"] = fields.Long(_number(message))
            full["time_us"] = fields.Long(self.vhost.broker.now_us())
            for observer in self.observers:
                observer(event, name, full, message, body)
            if self.is_extended:
                headers = full
                headers["numbered_since_us"] = fields.Long(self.vhost.broker.numbered_since_us)
        if not self.is_extended:
            headers.pop("no_ack", None)
            headers.pop("mandatory", None)
            if event == "publish" and not message.exchange:
                # The firehose does not check whether the queues of the default exchange exist.
                keys = {key for key in headers["routing_keys"] if not key.startswith(REPLY_TO_PREFIX)}
                headers["routed_queues"] = sorted(keys)
        if self.is_published and (self.is_extended or event in FIREHOSE_EVENTS):
            self._copy(f"{event}.{name}", headers, body)

    def _copy(self, key: str, headers: fields.Table, body: bytes) -> None:
        """Publish an event to the trace exchange."""
        # A routing key is a short string: a long name is cut.
        key = key.encode("utf-8", "surrogateescape")[:SHORTSTR_BYTES_MAX].decode("utf-8", "surrogateescape")
        self._pending.append((key, headers, body))
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._pending:
                self._publish(*self._pending.popleft())
        finally:
            self._is_publishing = False

    def _publish(self, key: str, headers: fields.Table, body: bytes) -> None:
        exchange = self.vhost.exchanges[TRACE_EXCHANGE]
        copy = Message.build(Address(TRACE_EXCHANGE, key), Properties(headers=headers), body)
        for queue in self.vhost.route(exchange, (key,), headers, copy)[0]:
            queue.accept(copy)


def _number(message: Message) -> int:
    return message.number if isinstance(message, SpecialMessage) else 0


def _death_count(dead: Message) -> fields.Long:
    """Return the number of deaths with the latest queue and reason, the first entry of x-death."""
    deaths = (dead.properties().headers or {}).get("x-death")
    return fields.Long(deaths[0]["count"] if isinstance(deaths, list) else 1)
