"""The shovels of a server: which there are, and the connections of their two ends.

An end that is this broker is a session like any client's, with octets handed over in memory instead of by a socket.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from amqp_broker.broker.access import InternalUser, User
from amqp_broker.broker.parameters import Component
from amqp_broker.errors import InvalidParameter
from amqp_broker.session.session import Session
from amqp_broker.shovel.client import Client, Lost
from amqp_broker.shovel.definition import Uri, parse
from amqp_broker.shovel.shovel import RUNNING, Shovel

if TYPE_CHECKING:
    from amqp_broker.broker.timers import Timer
    from amqp_broker.server.server import Server

logger = logging.getLogger("amqp_broker.shovel")

M = TypeVar("M", bound="Mover", contravariant=True)

# The component whose parameters are shovels.
SHOVEL: Final = "shovel"
CONNECT_TIMEOUT_S: Final = 30.0
WRITE_BUFFER_BYTES_HIGH: Final = 1024 * 1024
# A session in memory whose client has this much to read gets no more until it has.
UNREAD_BYTES_HIGH: Final = 256 * 1024
# What it reads at once, a few milliseconds of work: both ends and all that they say are one call.
PORTION_BYTES: Final = 16 * 1024


class Shovels(Component):
    """Runs what parameters of component `shovel` say."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.user = InternalUser("rmq-shovel")
        self._is_paused = False
        self._shovels: dict[tuple[str, str], Shovel] = {}
        self._timers: dict[Shovel, Timer] = {}
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Start those that were there before a restart."""
        self._loop = asyncio.get_running_loop()
        for vhost in self.server.broker.vhosts.values():
            for parameter in vhost.parameters.of(SHOVEL):
                try:
                    self.on_set(vhost.name, parameter.name, parameter.value)
                except InvalidParameter as error:
                    logger.warning("shovel '%s' in vhost '%s': %s", parameter.name, vhost.name, error)

    def __iter__(self) -> Iterator[Shovel]:
        return iter(self._shovels.values())

    def pause(self) -> None:
        """The node takes no clients for a while, so none of these moves anything."""
        self._is_paused = True
        for shovel in self:
            shovel.stop()
            self._set_timer(shovel)

    def resume(self) -> None:
        self._is_paused = False
        for shovel in self:
            self._loop.call_soon(self._begin, shovel)

    # What parameters say

    def check(self, name: str, value: Any, user: User | None) -> None:
        definition = parse(value)
        for uri in (*definition.source.uris, *definition.destination.uris):
            # Within this broker nobody logs in: a shovel must not open what its owner cannot.
            if user is not None and uri.is_local and uri.vhost is not None and not user.can_open(uri.vhost):
                raise InvalidParameter(f'user "{user.name}" may not connect to vhost "{uri.vhost}"')

    def on_set(self, vhost: str, name: str, value: Any) -> None:
        """Start a shovel, instead of the one of that name. Raises InvalidParameter."""
        self.on_cleared(vhost, name)
        server = self.server
        shovel = Shovel(name, vhost, parse(value), self, server.broker.node, self._on_done, server.clock.real_now())
        self._shovels[vhost, name] = shovel
        self._loop.call_soon(self._begin, shovel)

    def on_cleared(self, vhost: str, name: str) -> None:
        """Stop a shovel, if there is one."""
        shovel = self._shovels.pop((vhost, name), None)
        if shovel is not None:
            shovel.stop()
            self._set_timer(shovel)

    def restart(self, vhost: str, name: str) -> bool:
        """Connect a shovel anew; returns whether there is one."""
        shovel = self._shovels.get((vhost, name))
        if shovel is not None:
            shovel.stop()
            self._loop.call_soon(self._begin, shovel)
        return shovel is not None

    def stop(self) -> None:
        for vhost, name in list(self._shovels):
            self.on_cleared(vhost, name)

    def _begin(self, shovel: Shovel) -> None:
        if self._shovels.get((shovel.vhost, shovel.name)) is shovel and not self._is_paused:
            shovel.start(self.server.clock.real_now())
            self._set_timer(shovel)

    def _on_done(self, shovel: Shovel) -> None:
        """It has moved all it should: its parameter goes, and that ends it."""
        logger.info("shovel '%s' in vhost '%s' has moved its messages", shovel.name, shovel.vhost)
        self._loop.call_soon(self._delete, shovel)

    def _delete(self, shovel: Shovel) -> None:
        vhost = self.server.broker.vhosts.get(shovel.vhost)
        if vhost is not None and self._shovels.get((shovel.vhost, shovel.name)) is shovel:
            vhost.parameters.clear(SHOVEL, shovel.name)
            self.server.flush()

    def _set_timer(self, shovel: Shovel) -> None:
        timer = self._timers.pop(shovel, None)
        if timer is not None:
            timer.cancel()
        if shovel.next_tick_ms is not None:
            self._timers[shovel] = self.server.broker.real_timers.at(
                shovel.next_tick_ms, lambda now: self._tick(shovel, now)
            )

    def _tick(self, shovel: Shovel, now: int) -> None:
        shovel.tick(now)
        self._set_timer(shovel)

    # Links

    def open(self, uri: Uri, client: Client, shovel: Shovel) -> Link[Shovel]:
        link: Link[Shovel] = LocalLink(self, client, shovel) if uri.is_local else RemoteLink(self, client, shovel)
        link.connect(uri)
        return link

    def lost(self, client: Client, shovel: Shovel, reason: str) -> None:
        """An end is gone."""
        was_running = shovel.state == RUNNING
        before = shovel.reason
        shovel.on_lost(client, reason, self.server.clock.real_now())
        if shovel.reason and (was_running or shovel.reason != before):
            logger.warning("shovel '%s' in vhost '%s' is interrupted: %s", shovel.name, shovel.vhost, shovel.reason)
        self._set_timer(shovel)
        self.server.flush()


class Mover(Protocol):
    """Who moves messages over links: a shovel, or a replay."""

    kind: str
    name: str
    vhost: str

    def flush(self) -> None: ...

    def on_full(self, client: Client, is_full: bool) -> None: ...


class Losing(Protocol[M]):
    """Who is told that a link is gone."""

    def lost(self, client: Client, mover: M, reason: str, /) -> None: ...


class Link(Generic[M]):
    """One end's connection: between its client, and a socket or a session."""

    def __init__(self, owner: Losing[M], client: Client, mover: M) -> None:
        self.owner = owner
        self.client = client
        self.mover = mover
        self._heartbeat: asyncio.TimerHandle | None = None

    def connect(self, uri: Uri) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def pause(self, is_paused: bool) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def receive(self, data: bytes) -> None:
        """The client gets what came, and both ends what it makes them say."""
        try:
            self.client.receive(data)
        except Lost as reason:
            self.flush()
            self.owner.lost(self.client, self.mover, str(reason))
        except Exception as error:
            # Whatever an end says, and whatever is wrong with us: the shovel begins anew, and tells why.
            logger.exception(
                "%s '%s' in vhost '%s': internal error", self.mover.kind, self.mover.name, self.mover.vhost
            )
            self.owner.lost(self.client, self.mover, f"internal error: {error}")
        else:
            self.mover.flush()


class RemoteLink(Link[M], asyncio.Protocol):
    """A socket to another broker."""

    def __init__(self, owner: Losing[M], client: Client, mover: M) -> None:
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
            context = tls_context(uri) if uri.scheme == "amqps" else None
            name = uri.query.get("server_name_indication", uri.host.strip("[]")) if context else None
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await loop.create_connection(
                    lambda: self, uri.host.strip("[]"), uri.port, ssl=context, server_hostname=name
                )
        except (OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            self.owner.lost(self.client, self.mover, f"cannot connect to {uri}: {reason}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        assert self._transport is not None
        if self._is_closed:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH)
        self.flush()
        if self.client.heartbeat_s:
            self._beat()

    def _beat(self) -> None:
        self._heartbeat = asyncio.get_running_loop().call_later(self.client.heartbeat_s / 2, self._on_heartbeat)

    def _on_heartbeat(self) -> None:
        try:
            self.client.tick(is_listening=not self._is_paused)
        except Lost as reason:
            self.owner.lost(self.client, self.mover, str(reason))
        else:
            self.flush()
            self._beat()

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
    """A session of this broker. It takes the place of a `Transport`, too."""

    def __init__(self, shovels: Shovels, client: Client, shovel: Shovel) -> None:
        super().__init__(shovels, client, shovel)
        self.shovels = shovels
        server = shovels.server
        port = server.ports.get("amqp", 0)
        self.session = Session(server.broker, server.dirty, "127.0.0.1", 0, "127.0.0.1", port, server.clock.now())
        self.session.insider = shovels.user
        # What stands for the socket of a transport.
        self.socket = self
        self.is_held = False
        self._is_closed = False
        self._is_paused = False
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_pumping = False

    def connect(self, uri: Uri) -> None:
        # No time passes between the two, so there is nothing that a heartbeat could find out.
        self.client.heartbeat_s = 0
        self.shovels.server.transports[self.session] = self
        asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        if self.is_held or not self.client.outbox or self._is_closed:
            return
        server = self.shovels.server
        pieces, self.client.outbox = self.client.outbox, []
        self.session.receive(b"".join(pieces), server.clock.now())
        server.flush()

    def pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._pump_soon()

    def close(self) -> None:
        """The shovel leaves, or the session is over."""
        if self._is_closed:
            return
        self._is_closed = True
        server = self.shovels.server
        server.forget(self.session)
        self.session.connection_lost(server.clock.now())
        self.session.take_output()
        self.shovels.lost(self.client, self.mover, "the broker closed the connection")

    # What a transport does for a session

    def write(self, pieces: list[bytes]) -> None:
        self._unread += pieces
        self._unread_bytes += sum(map(len, pieces))
        if self._unread_bytes > UNREAD_BYTES_HIGH:
            self.session.pause()
        self._pump_soon()

    def _pump_soon(self) -> None:
        # Not at once: this is called while the server is writing what sessions have to say.
        if not self._is_pumping and self._unread and not self._is_paused:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pumping = False
        if self._is_paused:
            return
        pieces, size = [], 0
        while self._unread and size < PORTION_BYTES:
            piece = self._unread.popleft()
            size += len(piece)
            pieces.append(piece)
        self._unread_bytes -= size
        self.receive(b"".join(pieces))
        self._pump_soon()
        if not self._unread and self.session.is_paused and not self._is_closed:
            self.session.resume(self.shovels.server.clock.now())
            self.shovels.server.flush()

    def hold(self, is_held: bool) -> None:
        self.is_held = is_held
        if not is_held:
            asyncio.get_running_loop().call_soon(self.flush)

    def abort(self) -> None:
        self.close()

    def read_on(self) -> None:
        pass


def tls_context(uri: Uri) -> ssl.SSLContext:
    """What the query of a URI says about TLS (RabbitMQ, "URI Query Parameters"). Raises OSError for a missing file."""
    query = uri.query
    context = ssl.create_default_context(cafile=query.get("cacertfile"))
    if query.get("verify") == "verify_none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "certfile" in query:
        # Without a password OpenSSL would ask for one at the terminal, and everything would wait.
        context.load_cert_chain(query["certfile"], query.get("keyfile"), query.get("password", ""))
    return context
