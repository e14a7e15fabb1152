"""The peer at the other end of a connection: its addresses, its user, and its TLS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.broker.admin.access import User


@dataclass(frozen=True)
class Tls:
    """The TLS of a connection, with the names and texts of RabbitMQ's management and events.

    The fields about the peer's certificate are empty if it has shown none.
    """

    ssl_protocol: str
    ssl_key_exchange: str
    ssl_cipher: str
    ssl_hash: str
    peer_cert_subject: str = ""
    peer_cert_issuer: str = ""
    peer_cert_validity: str = ""
    peer_cert_serial_number: str = ""
    # The user named by the certificate (mechanism EXTERNAL), if there is one.
    login_name: str | None = None


@mypyc_attr(allow_interpreted_subclasses=True)
class Peer:
    """A client of the broker. `user` is None before the login; `tls` is None on a plain connection."""

    protocol = "AMQP 0-9-1"

    def __init__(self, peer_host: str, peer_port: int, host: str, port: int, connected_at_ms: int) -> None:
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.host = host
        self.port = port
        self.name = f"{peer_host}:{peer_port} -> {host}:{port}"
        self.connected_at_ms = connected_at_ms
        self.user: User | None = None
        self.client_properties: fields.Table = {}
        self.tls: Tls | None = None

    @property
    def given_name(self) -> str:
        """The name that the client has given its connection; "" if it has given none."""
        name = self.client_properties.get("connection_name")
        return name if isinstance(name, str) else ""

    def has_capability(self, name: str) -> bool:
        """Return whether the client announced a capability (RabbitMQ's extensions of AMQP)."""
        capabilities = self.client_properties.get("capabilities")
        return isinstance(capabilities, dict) and capabilities.get(name) is True
