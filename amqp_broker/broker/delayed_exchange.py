"""An exchange that keeps messages back for as long as they say, and then routes them as another type would.

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

from amqp_broker import fields
from amqp_broker.broker.exchange import Binding, Destination, Exchange
from amqp_broker.broker.window import Window
from amqp_broker.errors import PreconditionFailed
from amqp_broker.message import Message, SpecialMessage, routing_keys

if TYPE_CHECKING:
    from amqp_broker.broker.timers import Timer
    from amqp_broker.broker.vhost import VHost

DELAY_MS_MAX: Final = 4_294_967_295
# How many messages are routed before sockets are served again.
PORTION: Final = 500
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_TEXT_MAX: Final = 20


@dataclass(eq=False)
class DelayedExchange(Exchange):
    """Routes at once what has no delay; what has one, when it is due, with the bindings of then.

    For its publisher, a delayed message found no queue, as in RabbitMQ: it is confirmed at once, returned if it was
    mandatory, and given to the alternate exchange, if there is one, now (issue 36 of the plugin). Delayed messages live
    and die with the exchange.
    """

    type: ClassVar[str] = "x-delayed-message"

    # Routes what is not delayed. It stands in no vhost, and its bindings are kept here.
    _inner: Exchange = field(init=False)
    _vhost: VHost = field(init=False)
    # (when it is due in ms since the epoch, position in the order of arrival, message): a heap, the next one first.
    _delayed: list[tuple[int, int, Message]] = field(default_factory=list)
    _next_position: int = 0
    # Has the same messages, if the exchange is durable and anything here is.
    _window: Window | None = None
    # Set for when the first is due.
    _timer: Timer | None = None
    # Whether more is due than a portion, and goes on when the sockets were flushed.
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
            # Transient messages, too, outlive the process here, as they do in the plugin's table.
            self._window = Window(None, journal, self.range_id, keeps_all=True)
            self._next_position = self._window.next
            for position, stored in self._window.take_all():
                self._delayed.append((stored.deadline_ms or 0, position, stored.message))
            heapq.heapify(self._delayed)
            self._wake()

    def close(self) -> None:
        self._delayed.clear()
        if self._window is not None:
            self._window.drop()
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
            return self._inner.destinations(routing_keys, headers, message)
        self.keep_back(message, self._vhost.broker.now + delay_ms)
        return ()

    def keep_back(self, message: Message, due_ms: int) -> None:
        """Route a message when it is due (ms since the epoch), behind those that are due at the same time."""
        if self._window is not None:
            self._window.hand_on(self._next_position, message, due_ms)
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

    # What is delayed

    @property
    def messages_delayed(self) -> int:
        """How many messages are delayed."""
        return len(self._delayed)

    def delayed(self) -> Iterator[tuple[int, Message]]:
        """When each is due (ms since the epoch) and the messages, as they were published, in the order they are due."""
        for due_ms, _, message in sorted(self._delayed):
            yield due_ms, message

    def delayed_for(self, destination: Destination, scan_max: int) -> Iterator[tuple[int, Message]]:
        """Of the first `scan_max` of `delayed` those that would go to a destination bound here if they were due."""
        for due_ms, message in islice(self.delayed(), scan_max):
            properties = message.properties()
            keys, headers = routing_keys(message, properties), properties.headers or {}
            if destination in self._inner.destinations(keys, headers, None):
                yield due_ms, message

    def _wake(self) -> None:
        """Be called when the first is due, if not before."""
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
        for _ in range(PORTION):
            if not delayed or delayed[0][0] > now:
                self._wake()
                return
            _, position, message = heapq.heappop(delayed)
            if self._window is not None:
                self._window.remove(position, message)
            self._release(message)
        self._is_undrained = True
        self._vhost.broker.undrained.append(self)

    def drain_on(self) -> None:
        """Route the next portion of what is due."""
        self._is_undrained = False
        self._on_due(self._vhost.broker.now)

    def _release(self, message: Message) -> None:
        properties = message.properties()
        keys = routing_keys(message, properties)
        headers = properties.headers or {}
        # That it is negative tells that there was a delay, and that there is none any more.
        properties.headers = headers = {**headers, "x-delay": fields.Long(-delay_of(headers))}
        released = SpecialMessage.anew(message.with_properties(properties), properties)
        for queue in self._vhost.route(self, keys, headers, released)[0]:
            queue.accept(released)


def delay_of(headers: fields.Table) -> int:
    """The delay that a message asks for, in ms; 0 if it asks for none that is understood.

    Understood are integers (but not `b`, signed of 8 bits), floats, and integers as text. On other texts, RabbitMQ ends
    the connection with 541; a message that died may not do so, so here they are as good as none.
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
