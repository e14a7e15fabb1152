"""An exchange that delays messages by the time in a header, and then routes them as another type does.

Source: rabbitmq-delayed-message-exchange, its README and sources (rabbit_exchange_type_delayed_message.erl,
rabbit_delayed_message_utils.erl) for RabbitMQ 3.13 and later.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.message import Message, SpecialMessage, routing_keys
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.broker.vhost import VHost

DELAY_MS_MAX: Final = 4_294_967_295
# The number of messages that are routed before sockets are served again.
BATCH_MESSAGES: Final = 500
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_TEXT_MAX: Final = 20


@dataclass(eq=False)
class DelayedExchange(Exchange):
    """Routes messages without a delay at once, and others when they are due, with the bindings then.

    As in RabbitMQ, a delayed message counts as unroutable when it is published: it is confirmed at once, returned if
    mandatory, and passed to the alternate exchange without delay (issue 36 of the plugin). Delayed messages are deleted
    with the exchange.
    """

    type: ClassVar[str] = "x-delayed-message"

    # Routes messages that are not delayed. It belongs to no vhost; its bindings are kept in this exchange.
    _inner: Exchange = field(init=False)
    _vhost: VHost = field(init=False)
    # A heap of due time (ms since the epoch), position in the order of arrival, and message.
    _delayed: list[tuple[int, int, Message]] = field(default_factory=list)
    _next_position: int = 0
    # Has the same messages, if both the exchange and the broker are durable.
    _buffer: PagedBuffer | None = None
    # Set for the first due time.
    _timer: Timer | None = None
    # True while more than one batch is due; the rest follows after a flush of the sockets.
    _is_undrained: bool = False

    @property
    def routes_by_message(self) -> bool:
        return True

    def open(self, vhost: VHost) -> None:
        kind = self.arguments.get("x-delayed-type")
        if kind == self.type:
            raise PreconditionFailed("Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'")
        if not isinstance(kind, str):
            raise PreconditionFailed("Invalid argument, 'x-delayed-type' must be an existing exchange type")
        self._vhost = vhost
        self._inner = vhost.exchange_type(kind)(self.vhost, self.name, arguments=self.arguments)
        self._inner.open(vhost)
        journal = vhost.broker.journal
        if self.is_durable and journal.is_durable:
            if self.range_id is None:
                self.range_id = journal.new_ranges(1)
            # Transient messages survive a restart as well, as they do in the plugin's table.
            self._buffer = PagedBuffer(journal, self.range_id, keeps_all=True)
            self._next_position = self._buffer.next
            for position, stored in self._buffer.take_all():
                if stored.message.is_damaged:
                    journal.report_damage(f"{self}: the message at position {position} is damaged; it is not delivered")
                else:
                    self._delayed.append((stored.deadline_ms or 0, position, stored.message))
            heapq.heapify(self._delayed)
            self._wake()

    def close(self) -> None:
        self._delayed.clear()
        if self._buffer is not None:
            self._buffer.drop()
        if self._timer is not None:
            self._timer.cancel()
        self._inner.close()

    # Routing

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if message is None:
            return ()
        delay_ms = delay_of(headers)
        if not 0 < delay_ms <= DELAY_MS_MAX:
            inner = self._inner
            inner.match_work = 0
            found = inner.destinations(routing_keys, headers, message)
            self.match_work += inner.match_work
            return found
        self.keep_back(message, self._vhost.broker.now + delay_ms)
        return ()

    def keep_back(self, message: Message, due_ms: int) -> None:
        """Route a message when it is due (ms since the epoch), behind those that are due at the same time."""
        if self._buffer is not None:
            self._buffer.deliver_through(self._next_position, message, due_ms)
        heapq.heappush(self._delayed, (due_ms, self._next_position, message))
        self._next_position += 1
        self._wake()

    def check(self, binding: Binding) -> None:
        self._inner.check(binding)

    def bound(self, binding: Binding) -> None:
        self._inner.bound(binding)

    def _index(self, binding: Binding) -> None:
        self._inner._index(binding)

    def _unindex(self, binding: Binding) -> None:
        self._inner._unindex(binding)

    # Delayed messages

    @property
    def messages_delayed(self) -> int:
        """The number of delayed messages."""
        return len(self._delayed)

    def delayed(self) -> Iterator[tuple[int, Message]]:
        """Yield due time (ms since the epoch) and message, as published, for those of now in order."""
        return _in_order(self._delayed.copy())

    def delayed_for(self, destination: Destination, scan_max: int) -> Iterator[tuple[int, Message]]:
        """Yield those of the first `scan_max` of `delayed` that would go to a bound destination if they were due."""
        for due_ms, message in islice(self.delayed(), scan_max):
            properties = message.properties()
            keys, headers = routing_keys(message, properties), properties.headers or {}
            if destination in self._inner.destinations(keys, headers, None):
                yield due_ms, message

    def _wake(self) -> None:
        """Set the timer for the first due time, unless it is set for an earlier one."""
        if not self._delayed or self._is_undrained:
            return
        due_ms, timer = self._delayed[0][0], self._timer
        if timer is not None and timer.callback is not None:
            if timer.deadline_ms <= due_ms:
                return
            timer.cancel()
        self._timer = self._vhost.broker.timers.at(due_ms, self._on_due)

    def _on_due(self, now: int) -> None:
        delayed = self._delayed
        for _ in range(BATCH_MESSAGES):
            if not delayed or delayed[0][0] > now:
                self._wake()
                return
            _, position, message = heapq.heappop(delayed)
            if self._buffer is not None:
                self._buffer.remove(position, message)
            self._release(message)
        self._is_undrained = True
        self._vhost.broker.undrained.append(self._route_next_batch)

    def _route_next_batch(self) -> None:
        self._is_undrained = False
        self._on_due(self._vhost.broker.now)

    def _release(self, message: Message) -> None:
        properties = message.properties()
        keys = routing_keys(message, properties)
        headers = properties.headers or {}
        # A negative delay shows consumers the delay that there was, and means none to other delayed exchanges.
        properties.headers = headers = {**headers, "x-delay": fields.Long(-delay_of(headers))}
        released = SpecialMessage.rebuilt(message.with_properties(properties), properties)
        with self._vhost.broker.dead_letters_held():
            for queue in self._vhost.route(self, keys, headers, released)[0]:
                queue.accept(released)


def _in_order(delayed: list[tuple[int, int, Message]]) -> Iterator[tuple[int, Message]]:
    """Yield due times and messages of a heap, which is used up."""
    while delayed:
        due_ms, _, message = heapq.heappop(delayed)
        yield due_ms, message


def delay_of(headers: fields.Table) -> int:
    """Return the delay in a message's headers, in ms; 0 if there is none or it is invalid.

    Valid are integers (except type `b`, signed of 8 bits), floats, and integers as text. On other texts, RabbitMQ ends
    the connection with 541. Here they count as no delay, because a dead letter has no connection to end.
    """
    value: Any = headers.get("x-delay")
    if fields.is_integer(value) and not isinstance(value, fields.Byte):
        return int(value)
    if isinstance(value, float):
        return math.trunc(value) if math.isfinite(value) else 0
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str) and len(value) <= _TEXT_MAX and _INTEGER.fullmatch(value):
        return int(value)
    return 0
