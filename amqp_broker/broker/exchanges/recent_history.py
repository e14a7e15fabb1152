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
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost


LENGTH: Final = 20
# The work (`Broker.work`) of sending a message again.
AGAIN_WORK: Final = 4
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
        self._vhost.broker.do_in_portions(self._sending_again(binding.destination, list(self._history)))

    def _sending_again(self, destination: Destination, messages: list[Message]) -> Steps[None]:
        """Send the history to a new destination, in steps. Beyond a few hundred, newer messages may overtake it."""
        broker = self._vhost.broker
        # RabbitMQ sends the newest first to an exchange; if no queue takes a message, it refuses the binding with 541.
        for message in reversed(messages) if isinstance(destination, Exchange) else messages:
            queues = yield from self._queues_behind(destination, message)
            broker.work += AGAIN_WORK + len(queues)
            if self._vhost.trace is not None and queues:
                self._vhost.trace.routed(self.name, message, queues, is_due=False)
            for queue in queues:
                queue.offer(message)
            yield

    def _queues_behind(self, destination: Destination, message: Message) -> Steps[list[Queue]]:
        if destination.is_deleted:
            return []
        if not isinstance(destination, Exchange):
            return [destination]
        properties = message.properties()
        keys = routing_keys(message, properties)
        return (yield from self._vhost.routing(destination, keys, properties.headers or {}, message))
