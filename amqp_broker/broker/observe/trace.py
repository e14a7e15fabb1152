"""The events of a vhost's messages as values: for the firehose `amq.rabbitmq.trace`, and for observers.

The firehose is RabbitMQ's: copies of published and delivered messages, `publish.<exchange>` and `deliver.<queue>` with
the body. The headers have the address and the properties of the message.

Observers hear of all events (record.py lists them), at the same moment and without a queue. The headers are like
those of the firehose. All have `message_number` and `time_us` (since the epoch); `publish` also has `mandatory`, and
`deliver` has `no_ack` and `consumer_tag` ("" for basic.get). With `is_stream` the message stays in its queue, whatever
the consumer does. `delayed_in` names the delayed exchanges that keep a message, if there are any, `duplicate_in` those
that drop it as a duplicate. `routed_queues` of a
publish are the queues that receive it; the firehose does not know these of the default exchange. A publish that a fault
kept from all queues has the action as `discarded_by`, these queues as `kept_from`, and the exchange that would have
delayed it as `kept_from_delay`. The others have no body:

    tx_publish     a message was published in a transaction; its publish follows at the commit
    rollback       a message of a transaction goes nowhere; `reason` is rollback, commit_failed, channel_closed or
                   connection_closed
    route          an exchange has sent a message that it kept; `reason` is due or history, `routed_queues`
    refuse         a full queue has not taken it; `reason`
    ack, nack      a message was settled, or requeued by basic.recover; `requeue`
    requeue        it is ready again; `reason` is channel_closed, connection_closed, timed_out, cancelled or due
    delay          it came back, and the queue delays its next delivery
    move           an administrator moved it to other queues; `routed_queues`
    confirm        its publisher got a confirm; `ack`, and `delivery_tag`, its number on the channel
    return         it was returned to its publisher; `reply_code` and `reply_text`
    expire         its TTL has expired
    drop           the queue dropped it, or its delayed exchange was deleted; `reason`
    dead_letter    it was dead-lettered with a new number; `from_message_number`, `reason`, `routed_queues`, and
                   `death_count`

Observers also receive what fault rules did: `fault` of a queue, of an exchange, or (without a message) of a connection,
with `action`, `rule_id`, `on` and `parameters`. If the fault came before the broker took the message, `is_taken` is
false, and there is no publish.
Source: RabbitMQ, "Firehose Tracer"; rabbit_trace.erl; tried with 3.10.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, NumberedMessage, Properties, routing_keys
from amqp_broker.amqp.stamped_message import special_copy
from amqp_broker.broker.observe.message_trace import (
    TRACE_EXCHANGE,
    MessageTrace,
    death_count,
    is_own,
    user_name,
)
from amqp_broker.broker.observe.recorder import Recorder
from amqp_broker.broker.queues.dead_letter_reasons import EXPIRED, REJECTED
from amqp_broker.broker.queues.leaving_reasons import DUE, EXCHANGE_DELETED, HISTORY
from amqp_broker.broker.queues.reply import REPLY_PREFIX

if TYPE_CHECKING:
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.lab.publish_faults import Discard
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.stream import StreamQueue
    from amqp_broker.broker.vhost import VHost

SHORTSTR_BYTES_MAX: Final = 255
# The events of RabbitMQ's firehose.
FIREHOSE_EVENTS: Final = frozenset({"publish", "deliver"})
# Headers that only observers get.
OBSERVED: Final = (
    "no_ack",
    "consumer_tag",
    "is_stream",
    "mandatory",
    "delayed_in",
    "duplicate_in",
    *("discarded_by", "kept_from", "kept_from_delay"),
)

# Called with the event ("ack"), the name of its queue or exchange, its headers, the message (None for a fault of a
# connection), and the body if the event has one. An observer must not change the broker.
Observer: TypeAlias = "Callable[[str, str, fields.Table, Message | None, bytes], None]"


# The messages that clients have not settled, by queue and number.
Unacked: TypeAlias = "dict[Queue, dict[int, list[Message]]]"


class Trace(MessageTrace):
    """Reports the events of a vhost's messages to the firehose, to observers, and to a recorder.

    `unacked` outlives it. `is_published` turns the firehose on. `is_full` is true if any receiver needs all events.
    """

    def __init__(
        self,
        vhost: VHost,
        observers: tuple[Observer, ...],
        unacked: Unacked,
        *,
        is_published: bool,
        recorder: Recorder | None,
    ) -> None:
        self.vhost = vhost
        self.observers = observers
        self.is_published = is_published
        self.recorder = recorder
        self._unacked = unacked
        self.is_full = bool(observers)
        # Events to publish. Publishing delivers, which causes more events: they wait here instead of recursing.
        self._pending: deque[tuple[str, fields.Table, bytes]] = deque()
        self._is_publishing = False
        # The exchanges that keep or drop a message whose publish or death is about to be reported, by its number and
        # what they do.
        self._noted: dict[int, dict[str, list[str]]] = {}

    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        if (not self.is_full and self.recorder is None) or (origin is not None and is_own(origin)):
            return message
        special = special_copy(message)
        special.number = self.vhost.broker.message_numbers.next()
        special.is_recorded = False
        return special

    def published(
        self,
        connection: Peer,
        channel: int,
        message: Message,
        queues: Iterable[Queue],
        mandatory: bool = False,
        discard: Discard | None = None,
    ) -> None:
        if self.recorder is not None:
            self.recorder.published(connection, channel, message, queues, mandatory)
        headers = self._publish_headers(connection, channel, message, queues, mandatory, discard)
        self._report("publish", message.exchange, headers, message, message.body)

    def published_in_transaction(
        self, connection: Peer, channel: int, message: Message, queues: Iterable[Queue], mandatory: bool
    ) -> None:
        headers = self._publish_headers(connection, channel, message, queues, mandatory, None)
        routed_queues = headers.pop("routed_queues")
        self._observe("tx_publish", message.exchange, headers, message, message.body)
        if self.is_published:
            # RabbitMQ's firehose does not wait for the commit.
            self._copy_publish(message, headers | {"routed_queues": routed_queues}, message.body)

    def committed(
        self,
        connection: Peer,
        channel: int,
        message: Message,
        queues: Iterable[Queue],
        mandatory: bool,
        discard: Discard | None,
    ) -> None:
        if self.recorder is not None:
            self.recorder.published(connection, channel, message, queues, mandatory)
        if self.is_full:
            headers = self._publish_headers(connection, channel, message, queues, mandatory, discard)
            self._observe("publish", message.exchange, headers, message, message.body)

    def rolled_back(self, connection: Peer, channel: int, message: Message, reason: str) -> None:
        if self.is_full:
            headers = self._identity(message) | self._client(connection, channel) | {"reason": reason}
            self._observe("rollback", message.exchange, headers, message)

    def _publish_headers(
        self,
        connection: Peer,
        channel: int,
        message: Message,
        queues: Iterable[Queue],
        mandatory: bool,
        discard: Discard | None,
    ) -> fields.Table:
        properties = message.properties()
        keys = routing_keys(message, properties)
        headers = self._headers(message, keys, properties)
        headers |= self._client(connection, channel)
        headers["routed_queues"] = sorted(queue.name for queue in queues)
        if self.is_full:
            headers["mandatory"] = mandatory
            if discard is not None:
                headers["discarded_by"] = discard.action
                headers["kept_from"] = sorted(queue.name for queue in discard.queues)
                if discard.delayed_in:
                    headers["kept_from_delay"] = discard.delayed_in
            self._add_noted(headers, message)
        return headers

    def returned(self, connection: Peer, channel: int, message: Message, code: int, text: str) -> None:
        if self.recorder is not None:
            self.recorder.returned(connection, channel, message, code, text)
        if self.is_full:
            headers = self._identity(message) | self._client(connection, channel)
            headers |= {"reply_code": code, "reply_text": text}
            self._report("return", message.exchange, headers, message)

    def confirmed(self, connection: Peer, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        if self.recorder is not None:
            self.recorder.confirmed(connection, channel, message, tag, is_ack)
        if self.is_full:
            headers = self._identity(message) | self._client(connection, channel)
            headers |= {"delivery_tag": fields.Long(tag), "ack": is_ack}
            self._report("confirm", message.exchange, headers, message)

    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: Peer, channel: int, no_ack: bool
    ) -> None:
        self._delivered(queue, message, redelivered, connection, channel, no_ack, "")

    def delivered_to(self, consumer: Consumer, message: Message, redelivered: bool) -> None:
        connection, channel = consumer.connection, consumer.number
        self._delivered(consumer.queue, message, redelivered, connection, channel, consumer.no_ack, consumer.tag)

    def _delivered(
        self,
        queue: Queue,
        message: Message,
        redelivered: bool,
        connection: Peer,
        channel: int,
        no_ack: bool,
        consumer_tag: str,
    ) -> None:
        if self.recorder is not None:
            self.recorder.delivered(queue, message, redelivered, connection, channel, no_ack)
        properties = message.properties()
        if is_own(message, properties):
            return
        headers = self._headers(message, routing_keys(message, properties), properties)
        headers["redelivered"] = int(redelivered)
        headers |= self._client(connection, channel)
        if self.is_full:
            headers["no_ack"] = no_ack
            headers["consumer_tag"] = consumer_tag
            if queue.type == "stream":
                headers["is_stream"] = True
            elif not no_ack and (number := _number(message)):
                self._unacked.setdefault(queue, {}).setdefault(number, []).append(message)
        self._report("deliver", queue.name, headers, message, message.body)

    def acked(self, queue: Queue, message: Message, connection: Peer, channel: int) -> None:
        if self.recorder is not None:
            self.recorder.acked(queue, message, connection, channel)
        self._settled_by_client("ack", queue, message, self._client(connection, channel) | {"consumer_tag": ""})

    def acked_by(self, consumer: Consumer, message: Message) -> None:
        queue, connection, channel = consumer.queue, consumer.connection, consumer.number
        if self.recorder is not None:
            self.recorder.acked(queue, message, connection, channel)
        client = self._client(connection, channel) | {"consumer_tag": consumer.tag}
        self._settled_by_client("ack", queue, message, client)

    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: Peer, channel: int) -> None:
        if self.recorder is not None:
            self.recorder.nacked(queue, message, requeue, connection, channel)
        client = self._client(connection, channel)
        self._settled_by_client("nack", queue, message, client | {"requeue": requeue})

    def given_up(self, queue: Queue, message: Message, reason: str, *, is_refused: bool = False) -> None:
        if self.recorder is not None:
            self.recorder.given_up(queue, message, reason, is_refused=is_refused)
        if is_refused:
            self._settled("refuse", queue, message, {"vhost": self.vhost.name, "reason": reason})
        elif reason == EXPIRED:
            self._settled("expire", queue, message, {"vhost": self.vhost.name})
        elif reason != REJECTED:
            self._settled("drop", queue, message, {"vhost": self.vhost.name, "reason": reason})

    def requeued(self, queue: Queue, message: Message, reason: str) -> None:
        # A deleted queue has reported all its messages as dropped, and nothing comes back to a stream.
        if not queue.is_deleted and queue.type != "stream":
            if reason != DUE:
                self._forget_unacked(queue, message)
            self._settled("requeue", queue, message, {"vhost": self.vhost.name, "reason": reason})

    def delayed(self, queue: Queue, message: Message) -> None:
        self._settled("delay", queue, message, {"vhost": self.vhost.name})

    def stored(self, queue: StreamQueue, offset: int, message: Message) -> None:
        if self.is_full and _number(message):
            queue.report_end_of(offset, message)

    def kept_back(self, exchange: str, message: Message) -> None:
        self._note("delayed_in", exchange, message)

    def dropped_duplicate(self, exchange: str, message: Message) -> None:
        self._note("duplicate_in", exchange, message)

    def _note(self, fact: str, exchange: str, message: Message) -> None:
        number = _number(message)
        if self.is_full and number:
            self._noted.setdefault(number, {}).setdefault(fact, []).append(exchange)

    def _add_noted(self, headers: fields.Table, message: Message) -> None:
        """Name the exchanges that keep a message or drop it as a duplicate, where there are any."""
        if self._noted:
            headers.update(self._noted.pop(_number(message), {}))

    def routed(self, exchange: str, message: Message, queues: list[Queue], *, is_due: bool) -> None:
        if self.is_full and not is_own(message):
            headers = self._identity(message) | {"vhost": self.vhost.name, "reason": DUE if is_due else HISTORY}
            headers["routed_queues"] = sorted(queue.name for queue in queues)
            self._add_noted(headers, message)
            self._observe("route", exchange, headers, message)

    def discarded(self, exchange: str, message: Message) -> None:
        if self.is_full and not is_own(message):
            headers = self._identity(message) | {"vhost": self.vhost.name, "reason": EXCHANGE_DELETED, "queue": None}
            self._observe("drop", exchange, headers, message)

    def moved(self, queue: Queue, message: Message, targets: list[Queue]) -> None:
        if self.is_full and not is_own(message):
            headers = self._identity(message) | {"vhost": self.vhost.name}
            headers["routed_queues"] = sorted(target.name for target in targets)
            self._add_noted(headers, message)
            self._observe("move", queue.name, headers, message)

    def dead_lettered(self, queue: Queue, message: Message, dead: Message, reason: str, targets: list[Queue]) -> None:
        if self.recorder is not None:
            self.recorder.dead_lettered(queue, message, dead, reason, targets)
        if not self.is_full or is_own(message):
            return
        headers = self._identity(dead) | {"vhost": self.vhost.name, "reason": reason}
        headers["routed_queues"] = sorted(target.name for target in targets)
        headers["from_message_number"] = fields.Long(_number(message))
        headers["death_count"] = fields.Long(death_count(dead))
        self._add_noted(headers, dead)
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

    def _settled_by_client(self, event: str, queue: Queue, message: Message, more: fields.Table) -> None:
        """Report that a client has settled a message; those of a deleted queue were dropped before."""
        if not queue.is_deleted:
            self._forget_unacked(queue, message)
            self._settled(event, queue, message, more | {"is_stream": True} if queue.type == "stream" else more)

    def _forget_unacked(self, queue: Queue, message: Message) -> None:
        of_queue = self._unacked.get(queue)
        number = _number(message)
        if of_queue is not None and number in of_queue:
            of_queue[number].pop()
            if not of_queue[number]:
                del of_queue[number]
                if not of_queue:
                    del self._unacked[queue]

    def take_unacked(self, queue: Queue) -> list[Message]:
        return list(chain.from_iterable(self._unacked.pop(queue, {}).values()))

    def _settled(self, event: str, queue: Queue, message: Message, more: fields.Table) -> None:
        if self.is_full and not is_own(message):
            self._report(event, queue.name, self._identity(message) | more, message)

    # Publishing

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

    def _client(self, connection: Peer, channel: int) -> fields.Table:
        name = self.vhost.name
        return {"vhost": name, "connection": connection.name, "channel": channel, "user": user_name(connection)}

    def _report(self, event: str, name: str, headers: fields.Table, message: Message, body: bytes = b"") -> None:
        self._observe(event, name, headers, message, body)
        if not self.is_published or event not in FIREHOSE_EVENTS:
            return
        if event == "publish":
            self._copy_publish(message, headers, body)
        else:
            self._copy(f"{event}.{name}", headers, body)

    def _observe(self, event: str, name: str, headers: fields.Table, message: Message, body: bytes = b"") -> None:
        """Report an event to the observers alone."""
        if self.is_full:
            full = headers.copy()
            full["message_number"] = fields.Long(_number(message))
            full["time_us"] = fields.Long(self.vhost.broker.now_us())
            for observer in self.observers:
                observer(event, name, full, message, body)

    def _copy_publish(self, message: Message, headers: fields.Table, body: bytes) -> None:
        if not message.exchange:
            # The firehose does not check whether the queues of the default exchange exist.
            keys = {key for key in headers["routing_keys"] if not key.startswith(REPLY_PREFIX)}
            headers["routed_queues"] = sorted(keys)
        self._copy(f"publish.{message.exchange}", headers, body)

    def _copy(self, key: str, headers: fields.Table, body: bytes) -> None:
        """Publish an event to the trace exchange."""
        for name in OBSERVED:
            headers.pop(name, None)
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
            queue.offer(copy)


def _number(message: Message) -> int:
    return message.number if isinstance(message, NumberedMessage) else 0
