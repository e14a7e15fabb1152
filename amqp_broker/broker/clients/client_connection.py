"""The connection of a client, as the broker sees it. A session is one."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from mypy_extensions import mypyc_attr

from amqp_broker.broker.clients.peer import Peer

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost


class AwaitsCommit(Protocol):
    """Waits for a commit of the journal."""

    def on_committed(self, committed: int) -> bool:
        """Act on the commit of this batch; return whether to wait for a later one."""
        ...


class ConsumerTimeout:
    """A delivery that a client holds for too long at `at_ms` (ms since the epoch).

    Its consumer is cancelled (from RabbitMQ 4.3 on), or its channel is closed if `consumer_tag` is None.
    """

    def __init__(self, at_ms: int, channel: int, consumer_tag: str | None, queue: Queue) -> None:
        self.at_ms = at_ms
        self.channel = channel
        self.consumer_tag = consumer_tag
        self.queue = queue


C_co = TypeVar("C_co", bound="ClientChannel", covariant=True)


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientConnection(Peer, Generic[C_co]):
    """The connection of a client, with channels of type `C_co`.

    `vhost` is None until the connection is open. `channels` maps channel numbers to channels. `exclusive_queues` are
    deleted with the connection. The session counts received bytes and reads, the socket's transport those sent.
    """

    def __init__(self, peer_host: str, peer_port: int, host: str, port: int, connected_at_ms: int) -> None:
        super().__init__(peer_host, peer_port, host, port, connected_at_ms)
        self.vhost: VHost | None = None
        self.channels: dict[int, C_co] = {}
        self.exclusive_queues: set[Queue] = set()
        # The negotiated limits: bytes of a frame, number of channels, seconds between heartbeats (0: no heartbeats);
        # and the SASL mechanism.
        self.frame_max = 0
        self.channel_max = 0
        self.heartbeat_s = 0
        self.mechanism = ""
        self.received_bytes = self.received_count = 0
        self.sent_bytes = self.sent_count = 0
        # Why the connection ends, as the log says it; "" while it is open, and if the client closes it in order.
        self.cause = ""
        # The text of the client's error for which the broker closes it; "" without one.
        self.error = ""
        # History of the octets received and sent.
        self.history: History | None = None
        # When an alarm last blocked the connection (ms since the epoch), if one ever has.
        self.last_blocked_ms: int | None = None
        self.last_blocked_by = ""

    @property
    @abstractmethod
    def status(self) -> str:
        """RabbitMQ's `state`: "running", or under an alarm "blocking", and "blocked" once the client publishes.

        A connection that is being opened or closed has other states.
        """

    @abstractmethod
    def follow_alarms(self) -> None:
        """Act on a change of the broker's alarms: publishing clients wait while there are any."""

    def before_advance(self, now: int) -> None:  # most connections have nothing to do
        """Prepare for an advance of the clock, during which `Broker.advancing_to_ms` is set."""

    def next_timeouts(self) -> Steps[list[ConsumerTimeout]]:
        """Return the consumer timeouts that come first in each channel, if its client settles nothing before."""
        return []
        yield

    @abstractmethod
    def force_close(self, explanation: str, now: int) -> None:
        """Close the connection with 320 CONNECTION_FORCED."""

    @abstractmethod
    def can_show(self, rule: Rule) -> bool:
        """Return whether a fault would have an effect on the connection now."""

    @abstractmethod
    def apply_fault(self, rule: Rule, channel: int | None = None) -> None:
        """Apply a fault to the connection, or to one of its channels (None: to all)."""

    @abstractmethod
    def end_fault(self, rule: Rule) -> None:
        """End a fault that lasts."""


# A connection with channels of any type.
Connection: TypeAlias = "ClientConnection[ClientChannel]"
