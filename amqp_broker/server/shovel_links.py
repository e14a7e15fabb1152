"""The connections of shovels and replays: sockets to other brokers, and local sessions in memory."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from itertools import cycle
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from amqp_broker.amqp.connection_states import BLACK_HOLE
from amqp_broker.amqp.errors import AMQPError, Disconnect
from amqp_broker.amqp.message import Address, Message
from amqp_broker.broker.admin.access import InternalUser
from amqp_broker.broker.lab.connection_faults import BlackHoled
from amqp_broker.server.link_tls import UNUSABLE, UnusableFiles, read_tls_context
from amqp_broker.server.transport import stream_of
from amqp_broker.session.methods.basic_publish import put
from amqp_broker.session.session import Session
from amqp_broker.shovel.amqp_client import CHANNEL, Client, Lost
from amqp_broker.shovel.shovel import Shovel
from amqp_broker.shovel.shovel_definition import Uri

if TYPE_CHECKING:
    from amqp_broker.server.server import Server

logger = logging.getLogger("amqp_broker.shovel")

M = TypeVar("M", bound="Mover", contravariant=True)

CONNECT_TIMEOUT_S: Final = 30.0
WRITE_BUFFER_BYTES_HIGH: Final = 1024 * 1024
# Unread output above which the session of a local link pauses.
UNREAD_BYTES_HIGH: Final = 256 * 1024
# Bytes that a local link hands over in one call: a few milliseconds of work for the shovel and both sessions.
BATCH_BYTES: Final = 16 * 1024
# A local link has no port; the number makes the name of its connection, by which it is closed, its own.
_PORTS: Final = cycle(range(1, 65536))


class Mover(Protocol):
    """Moves messages over links: a shovel or a replay."""

    kind: str
    name: str
    vhost: str

    def flush(self) -> None:
        """Send the output of the clients."""

    def on_full(self, client: Client, is_full: bool) -> None:
        """Note that the socket of a client is full, or no longer is."""


class LinkOwner(Protocol[M]):
    """Opens links and learns that they are lost."""

    def lost(self, client: Client, mover: M, reason: str, /) -> None: ...


class Link(ABC, Generic[M]):
    """The connection between one client and its broker."""

    def __init__(self, owner: LinkOwner[M], client: Client, mover: M) -> None:
        self.owner = owner
        self.client = client
        self.mover = mover
        self._heartbeat: asyncio.TimerHandle | None = None

    @abstractmethod
    def connect(self, uri: Uri) -> None:
        """Begin to connect; the owner is informed of a failure."""

    @abstractmethod
    def flush(self) -> None:
        """Send the output of the client."""

    @abstractmethod
    def pause(self, is_paused: bool) -> None:
        """Stop or resume reading."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def put(self, address: Address, message: Message, queue: str | None) -> None:
        """Publish without a method frame. Raise Lost."""
        raise NotImplementedError

    def receive(self, data: bytes) -> None:
        """Pass received bytes to the client, and send the resulting output."""
        try:
            self.client.receive(data)
        except Lost as reason:
            self.flush()
            self.owner.lost(self.client, self.mover, str(reason))
        except Exception as error:
            # Neither invalid input nor a bug may end the broker: the shovel reports the error and starts again.
            logger.exception(
                "%s '%s' in vhost '%s': internal error", self.mover.kind, self.mover.name, self.mover.vhost
            )
            self.owner.lost(self.client, self.mover, f"internal error: {error}")
        else:
            self.mover.flush()


class RemoteLink(Link[M], asyncio.Protocol):
    """A socket to another broker."""

    def __init__(self, owner: LinkOwner[M], client: Client, mover: M) -> None:
        super().__init__(owner, client, mover)
        self._transport: asyncio.Transport | None = None
        self._is_closed = False
        self._is_paused = False
        self._task: asyncio.Task[None]

    def connect(self, uri: Uri) -> None:
        self._task = asyncio.get_running_loop().create_task(self._connect(uri))

    async def _connect(self, uri: Uri) -> None:
        loop = asyncio.get_running_loop()
        try:
            context = await read_tls_context(uri) if uri.scheme == "amqps" else None
            name = uri.query.get("server_name_indication", uri.host.strip("[]")) if context else None
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await loop.create_connection(
                    lambda: self, uri.host.strip("[]"), uri.port, ssl=context, server_hostname=name
                )
        except UnusableFiles as error:
            logger.warning("%s '%s' in vhost '%s': %s", self.mover.kind, self.mover.name, self.mover.vhost, error)
            self.owner.lost(self.client, self.mover, f"cannot connect to {uri}: {UNUSABLE}")
        except (OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            self.owner.lost(self.client, self.mover, f"cannot connect to {uri}: {reason}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = stream = stream_of(transport)
        if self._is_closed:
            stream.abort()
            return
        stream.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH)
        self.flush()
        if self.client.heartbeat_s:
            self._schedule_heartbeat()

    def _schedule_heartbeat(self) -> None:
        self._heartbeat = asyncio.get_running_loop().call_later(self.client.heartbeat_s / 2, self._on_heartbeat)

    def _on_heartbeat(self) -> None:
        try:
            self.client.tick(is_listening=not self._is_paused)
        except Lost as reason:
            self.owner.lost(self.client, self.mover, str(reason))
        else:
            self.flush()
            self._schedule_heartbeat()

    def data_received(self, data: bytes) -> None:
        self.receive(data)

    def flush(self) -> None:
        if self._transport is not None and self.client.outbox:
            pieces, self.client.outbox = self.client.outbox, []
            self._transport.write(b"".join(pieces))

    def pause(self, is_paused: bool) -> None:
        if self._transport is not None and not self._transport.is_closing() and is_paused is not self._is_paused:
            self._is_paused = is_paused
            if is_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.mover.on_full(self.client, True)

    def resume_writing(self) -> None:
        self.mover.on_full(self.client, False)
        self.mover.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_closed:
            self.owner.lost(self.client, self.mover, str(exc or "the other end closed the connection"))

    def close(self) -> None:
        self._is_closed = True
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._transport is None:
            self._task.cancel()
        else:
            self._transport.close()


class LocalLink(Link[Shovel]):
    """A local session that exchanges bytes with the client in memory, and the transport of that session."""

    def __init__(
        self, owner: LinkOwner[Shovel], client: Client, mover: Shovel, server: Server, user: InternalUser | None
    ) -> None:
        """Without a `user`, the client logs in."""
        super().__init__(owner, client, mover)
        self._server = server
        port = server.ports.get("amqp", 0)
        name = "127.0.0.1", next(_PORTS), "127.0.0.1", port
        self.session = Session(server.broker, server.cycle.dirty, *name, server.clock.now())
        self.session.internal_user = user
        self.is_blocked = False
        self._is_closed = False
        self._is_paused = False
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_pumping = False
        self._has_put = False

    def connect(self, uri: Uri) -> None:
        # Client and session share this process: a heartbeat could detect nothing.
        self.client.heartbeat_s = 0
        self._server.transports[self.session] = self
        asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        if self._has_put:
            self._has_put = False
            self._server.flush()
        if self.is_blocked or not self.client.outbox or self._is_closed:
            return
        pieces, self.client.outbox = self.client.outbox, []
        self.session.receive(b"".join(pieces), self._server.clock.now())
        self._server.flush()

    def put(self, address: Address, message: Message, queue: str | None) -> None:
        channel = self.session.channels.get(CHANNEL)
        if channel is None:
            raise Lost("the broker closed the channel")
        if self.session.state is BLACK_HOLE:
            return
        self._has_put = True
        try:
            put(channel, address, queue, message.content_for(CHANNEL, self.session.frame_max))
        except AMQPError as error:
            raise Lost(f"{error.code} {error.reply_text}") from None
        except Disconnect as reason:
            raise Lost(str(reason)) from None
        except BlackHoled:
            pass  # the connection swallows this message and all later ones

    def pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._pump_soon()

    def close(self) -> None:
        """End the session; called by the shovel or by the session itself."""
        if self._is_closed:
            return
        self._is_closed = True
        self._server.cycle.forget(self.session)
        self.session.connection_lost(self._server.clock.now())
        self.session.outbox.take()
        self.owner.lost(self.client, self.mover, "the broker closed the connection")

    # The transport of the session (SessionTransport)

    def write(self, pieces: list[bytes]) -> None:
        self._unread += pieces
        self._unread_bytes += sum(map(len, pieces))
        if self._unread_bytes > UNREAD_BYTES_HIGH:
            self.session.pause()
        self._pump_soon()

    def _pump_soon(self) -> None:
        # Deferred, because the server calls `write` while it flushes the sessions.
        if not self._is_pumping and self._unread and not self._is_paused:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pumping = False
        if self._is_paused:
            return
        pieces, size = [], 0
        while self._unread and size < BATCH_BYTES:
            piece = self._unread.popleft()
            size += len(piece)
            pieces.append(piece)
        self._unread_bytes -= size
        self.receive(b"".join(pieces))
        self._pump_soon()
        if not self._unread and self.session.is_backpressured and not self._is_closed:
            self.session.resume(self._server.clock.now())
            self._server.flush()

    def set_blocked(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked
        if not is_blocked:
            asyncio.get_running_loop().call_soon(self.flush)

    def abort(self) -> None:
        self.close()
