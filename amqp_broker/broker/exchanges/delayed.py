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
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.broker.vhost import VHost

DELAY_MS_MAX: Final = 4_294_967_295
# The work (`Broker.work`) of routing a message that is due.
RELEASE_WORK: Final = 16
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
    # True while messages that are due are routed, others are served in between.
    _is_releasing: bool = False

    @property
    def expects_queues(self) -> bool:
        return self._inner.expects_queues or super().expects_queues

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
        # It has no definition of its own in the journal, so it keeps nothing there.
        self._inner = vhost.exchange_type(kind)(self.vhost, self.name, is_durable=False, arguments=self.arguments)
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
        if self._vhost.trace is not None and self._delayed:
            self._vhost.broker.do_in_portions(self._reporting_discarded(self.delayed()))
        self._delayed.clear()
        if self._buffer is not None:
            self._buffer.drop()
        if self._timer is not None:
            self._timer.cancel()
        self._inner.close()

    def _reporting_discarded(self, delayed: Iterator[tuple[int, Message]]) -> Steps[None]:
        for _, message in delayed:
            if self._vhost.trace is not None:
                self._vhost.trace.discarded(self.name, message)
            self._vhost.broker.work += RELEASE_WORK
            yield

    # Routing

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if message is None:
            return ()
        inner = self.undelayed(headers)
        if inner is None:
            self.keep_back(message, self._vhost.broker.now + delay_of(headers))
            if self._vhost.trace is not None:
                self._vhost.trace.kept_back(self.name, message)
            return ()
        inner.match_work = 0
        found = inner.destinations(routing_keys, headers, message)
        self.match_work += inner.match_work
        return found

    def delays(self, headers: fields.Table) -> bool:
        return self.undelayed(headers) is None

    def undelayed(self, headers: fields.Table) -> Exchange | None:
        """Return the exchange that routes a message with these headers now; None for one that is delayed."""
        return None if 0 < delay_of(headers) <= DELAY_MS_MAX else self._inner

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

    @property
    def next_due_ms(self) -> int | None:
        """When the first delayed message is due (ms since the epoch); None without one."""
        return self._delayed[0][0] if self._delayed else None

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
        if not self._delayed or self._is_releasing:
            return
        due_ms, timer = self._delayed[0][0], self._timer
        if timer is not None and timer.callback is not None:
            if timer.deadline_ms <= due_ms:
                return
            timer.cancel()
        self._timer = self._vhost.broker.timers.at(due_ms, self._on_due)

    def _on_due(self, now: int) -> None:
        self._is_releasing = True
        self._vhost.broker.do_in_portions(self._releasing_due())

    def _releasing_due(self) -> Steps[None]:
        """Route the messages that are due, one in each step."""
        broker, delayed = self._vhost.broker, self._delayed
        while delayed and delayed[0][0] <= broker.now:
            yield from self._releasing(delayed[0][2])
            yield
        self._is_releasing = False
        self._wake()

    def _releasing(self, message: Message) -> Steps[None]:
        """Route the first message, in steps if it has many keys. It is kept until its queues have it."""
        properties = message.properties()
        keys = routing_keys(message, properties)
        headers = properties.headers or {}
        # A negative delay shows consumers the delay that there was, and means none to other delayed exchanges.
        properties.headers = headers = {**headers, "x-delay": fields.Long(-delay_of(headers))}
        released = SpecialMessage.rebuilt(message.with_properties(properties), properties)
        broker = self._vhost.broker
        queues = yield from self._vhost.routing(self, keys, headers, released)
        broker.work += RELEASE_WORK + len(queues)
        if not queues and self._delayed and self.expects_queues:
            broker.advice.on_unroutable_when_due(self._vhost, self, message.routing_key)
        if self._delayed:
            # It is still the first, unless the exchange was deleted meanwhile.
            self._forget_first()
            if self._vhost.trace is not None:
                self._vhost.trace.routed(self.name, released, list(queues), is_due=True)
            with broker.dead_letters_held():
                for queue in queues:
                    queue.offer(released)

    def _forget_first(self) -> None:
        _, position, message = heapq.heappop(self._delayed)
        if self._buffer is not None:
            self._buffer.remove(position, message)


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
