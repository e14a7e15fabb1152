"""An exchange that repeats to whoever is bound to it the last messages it has seen.

Source: RabbitMQ, "Recent History Exchange"; rabbit_exchange_type_recent_history.erl; tried with 3.10.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker import fields
from amqp_broker.broker.exchange import Binding, Destination, Exchange, FanoutExchange
from amqp_broker.errors import PreconditionFailed
from amqp_broker.message import routing_keys

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.message import Message

LENGTH: Final = 20
# RabbitMQ knows no unsigned integers here.
_INTEGERS: Final = (int, fields.Byte, fields.Short, fields.Long)


@dataclass(eq=False)
class RecentHistoryExchange(FanoutExchange):
    """A fanout exchange that keeps as many messages as `x-recent-history-length` says, of those that do not forbid it.

    They are kept in memory alone, and until the exchange is deleted.
    """

    type: ClassVar[str] = "x-recent-history"

    _vhost: VHost = field(init=False)
    _history: deque[Message] = field(init=False)

    @property
    def routes_by_message(self) -> bool:
        return True

    def open(self, vhost: VHost) -> None:
        length: Any = self.arguments.get("x-recent-history-length", LENGTH)
        if type(length) not in _INTEGERS or length < 1:
            raise PreconditionFailed(
                f"Invalid argument {fields.erlang_term(length)}, 'x-recent-history-length' must be a positive integer"
            )
        self._vhost = vhost
        self._history = deque(maxlen=length)

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if message is not None and headers.get("x-recent-history-no-store") is not True:
            self._history.append(message)
        return super().destinations(routing_keys, headers, message)

    def bound(self, binding: Binding) -> None:
        destination = binding.destination
        if not isinstance(destination, Exchange):
            for message in list(self._history):
                destination.accept(message)
            return
        # RabbitMQ sends the newest first here; and where no queue takes one, it refuses to bind, with 541.
        for message in reversed(list(self._history)):
            properties = message.properties()
            keys = routing_keys(message, properties)
            for queue in self._vhost.route(destination, keys, properties.headers or {}, message)[0]:
                queue.accept(message)
