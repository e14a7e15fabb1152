"""An exchange that sends the latest messages again to each new binding.

Source: RabbitMQ, "Recent History Exchange"; rabbit_exchange_type_recent_history.erl; tried with 3.10.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.message import routing_keys
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange, FanoutExchange

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.vhost import VHost


LENGTH: Final = 20
# RabbitMQ accepts no unsigned integers here.
_INTEGERS: Final = (int, fields.Byte, fields.Short, fields.Long)


@dataclass(eq=False)
class RecentHistoryExchange(FanoutExchange):
    """A fanout exchange that keeps the latest messages, up to the number in `x-recent-history-length`.

    A message can opt out with a header. Messages are kept in memory only, until the exchange is deleted.
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
        # RabbitMQ also sends the newest first here; if no queue takes a message, it refuses the binding with 541.
        for message in reversed(list(self._history)):
            properties = message.properties()
            keys = routing_keys(message, properties)
            for queue in self._vhost.route(destination, keys, properties.headers or {}, message)[0]:
                queue.accept(message)
