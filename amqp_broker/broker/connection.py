"""Seam: who is connected. A session is one; limits, exclusive queues and management look at it through this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from amqp_broker import fields
    from amqp_broker.broker.access import User
    from amqp_broker.broker.channel import Channel
    from amqp_broker.broker.fault_rules import Rule
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost


class AwaitsCommit(Protocol):
    """Who has something to say when a batch of the journal is safe."""

    def on_committed(self, committed: int) -> bool:
        """The journal has committed this batch; returns whether to wait for a later one."""
        ...


@dataclass(frozen=True)
class Tls:
    """What is known of a connection's TLS, named and written as RabbitMQ's management and events have it.

    What tells of the peer's certificate is empty if it has shown none.
    """

    ssl_protocol: str
    ssl_key_exchange: str
    ssl_cipher: str
    ssl_hash: str
    peer_cert_subject: str = ""
    peer_cert_issuer: str = ""
    peer_cert_validity: str = ""
    # Who the peer is by its certificate (mechanism EXTERNAL); None if that does not say.
    login_name: str | None = None


class Connection:
    """A client's connection: its peer, and once it is open its user and vhost.

    `channels` maps channel number to channel; `exclusive_queues` live as long as the connection; `tls` is None where
    the peer speaks in the clear. Octets and reads that came in are counted by who acts on them, octets and writes that
    went out by who writes them to the socket.
    """

    protocol = "AMQP 0-9-1"

    def __init__(self, peer_host: str, peer_port: int, host: str, port: int, connected_at_ms: int) -> None:
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.host = host
        self.port = port
        self.name = f"{peer_host}:{peer_port} -> {host}:{port}"
        self.connected_at_ms = connected_at_ms
        self.user: User | None = None
        self.vhost: VHost | None = None
        self.client_properties: fields.Table = {}
        self.channels: Mapping[int, Channel] = {}
        self.exclusive_queues: set[Queue] = set()
        self.tls: Tls | None = None
        # What was negotiated: octets of a frame, number of channels, seconds between heartbeats (0: none), and the SASL
        # mechanism.
        self.frame_max = 0
        self.channel_max = 0
        self.heartbeat_s = 0
        self.mechanism = ""
        self.received_bytes = self.received_count = 0
        self.sent_bytes = self.sent_count = 0
        # When an alarm last blocked it (ms since the epoch); None if none ever has.
        self.last_blocked_ms: int | None = None
        self.last_blocked_by = ""

    @property
    def status(self) -> str:
        """RabbitMQ's `state`: "running", or "blocking" and "blocked" under an alarm, before and after it publishes.

        Others are the states of a connection that opens or closes.
        """
        raise NotImplementedError

    def follow_alarms(self) -> None:
        """The alarms of the broker have changed: who publishes waits while there is one."""
        raise NotImplementedError

    def before_advance(self, now: int) -> None:
        """The clock is about to be moved; `Broker.advancing_to_ms` is set while it is."""

    def on_committed(self, committed: int) -> bool:
        """The journal has committed this batch; returns whether the connection waits for a later one."""
        raise NotImplementedError

    def force_close(self, explanation: str, now: int) -> None:
        """Close it from the broker's side with 320 CONNECTION_FORCED."""
        raise NotImplementedError

    def suffer(self, rule: Rule, channel: int | None = None) -> None:
        """A fault hits the connection, or one of its channels (None: all of them); see `broker/faults.py`."""
        raise NotImplementedError

    def recover(self, rule: Rule) -> None:
        """A fault that lasts is over."""
        raise NotImplementedError
