"""The proxy: for each client a socket to the upstream, and a session of our broker that hears the same.

Each end is read only as fast as the other is written, so little is in memory of a client or an upstream that is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.access import Permission, User
from amqp_broker.compare.connection import PATIENCE_MS, Book, Connection
from amqp_broker.compare.follower import Follower
from amqp_broker.compare.report import Report
from amqp_broker.compare.upstream import secured
from amqp_broker.server.server import Server
from amqp_broker.shovel.definition import Uri

if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES: Final = 64 * 1024
WRITE_BUFFER_BYTES_HIGH: Final = 256 * 1024
CONNECT_TIMEOUT_S: Final = 30.0
TICK_S: Final = 0.5
CATCH_UP_S: Final = 2.0


class Proxy:
    """Serves clients from `start` to `stop`; what differs is told to the report. `port` is where it listens."""

    def __init__(self, uri: Uri, server: Server, report: Report) -> None:
        self.uri = uri
        self.server = server
        self.report = report
        self.book = Book(report)
        self.port = 0
        self.links: dict[Connection, Link] = {}
        self._context, self._server_name = secured(uri)
        self._listener: asyncio.Server
        self._is_pumping = False
        self._ticker: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        self._listener = await asyncio.start_server(self._accept, host, port, limit=READ_BYTES)
        self.port = self._listener.sockets[0].getsockname()[1]
        self._tick()

    async def stop(self) -> None:
        """Leave the upstream, and let the clients see that it is over; what is missing by then is told."""
        self._listener.close()
        if self._ticker is not None:
            self._ticker.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end_ticks()

    def _tick(self) -> None:
        now = self.server.clock.real_now()
        for connection in list(self.links):
            connection.tick(now)
        self.book.deliveries.tick(now, PATIENCE_MS)
        self.pump()
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _end_ticks(self) -> None:
        """Nobody waits any longer for what only one of them has said."""
        self.book.deliveries.tick(self.server.clock.real_now() + PATIENCE_MS, 0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: asyncio would complain of those that `stop` ends.
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._connect(reader, writer)
        finally:
            # What the upstream has said last, a refusal for one, still reaches the client.
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        uri = self.uri
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                upstream = await asyncio.open_connection(
                    uri.host.strip("[]"),
                    uri.port,
                    ssl=self._context,
                    server_hostname=self._server_name,
                    limit=READ_BYTES,
                )
        except (OSError, ValueError) as error:
            self.report.note(f"a client was turned away, as there is no connection to {uri}: {error or 'no answer'}")
            return
        self.report.connections_count += 1
        link = Link(self, (reader, writer), upstream, self.report.connections_count)
        self.links[link.connection] = link
        try:
            await link.run()
        finally:
            del self.links[link.connection]

    def pump(self) -> None:
        """Play to our broker what it is to hear, and hear it, until neither has anything to say."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while self._pump():
                pass
        finally:
            self._is_pumping = False

    def _pump(self) -> bool:
        is_busy = False
        for connection, link in list(self.links.items()):
            if connection.to_ours:
                is_busy = True
                pieces, connection.to_ours = connection.to_ours, []
                link.follower.play(b"".join(pieces))
        self.server.flush()
        for link in list(self.links.values()):
            if link.follower.said:
                is_busy = True
                link.follower.hear()
        return is_busy

    def pump_soon(self) -> None:
        """Our broker has said something: unasked, if nobody is pumping."""
        if not self._is_pumping:
            asyncio.get_running_loop().call_soon(self.pump)

    # What our broker must have (`connection.Stage`)

    def let_in(self, connection: Connection, user: str) -> None:
        self.links[connection].follower.let_in(self._user(user))

    def furnish(self, connection: Connection, user: str, vhost: str) -> None:
        broker = self.server.broker
        broker.add_vhost(vhost)
        there = self._user(user)
        if not there.can_open(vhost):
            broker.set_permission(there, vhost, Permission())

    def _user(self, name: str) -> User:
        users = self.server.broker.users
        return users[name] if name in users else self.server.broker.add_user(name, "")


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """One client: octets from it to the upstream and back, and what our broker makes of them."""

    def __init__(self, proxy: Proxy, client: Streams, upstream: Streams, number: int) -> None:
        self.proxy = proxy
        self.client = client
        self.upstream = upstream
        self.connection = Connection(proxy.book, proxy, number)
        self.follower = Follower(proxy.server, self.connection, proxy.pump_soon)
        for _, writer in (client, upstream):
            writer.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH)

    async def run(self) -> None:
        """Until one of them leaves."""
        connection = self.connection
        there = asyncio.create_task(self._carry(self.client[0], self.upstream[1], connection.from_client))
        back = asyncio.create_task(self._carry(self.upstream[0], self.client[1], connection.from_upstream, True))
        try:
            done, _ = await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            if back in done and there not in done and connection.is_open and not connection.has_said_goodbye:
                self.proxy.report.note(f"connection {connection.number}: the upstream has closed it without a word")
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            await self._catch_up()
            self._finish()

    async def _catch_up(self) -> None:
        """Ours may still have a backlog to hand out, in portions, that the client has got from the upstream."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                while self.connection.behind_count > 0:
                    self.proxy.pump()
                    await asyncio.sleep(0.01)

    def _finish(self) -> None:
        self.proxy.pump()
        self.connection.finish(self.proxy.server.clock.real_now())
        self.follower.leave()
        self.proxy.pump()
        self.upstream[1].close()

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tell: Callable[[bytes, int], None],
        is_back: bool = False,
    ) -> None:
        """One direction: what is read is written, and told; no more is read before there is room."""
        proxy = self.proxy
        try:
            while data := await reader.read(READ_BYTES):
                writer.write(data)
                tell(data, proxy.server.clock.real_now())
                proxy.pump()
                if is_back:
                    self.connection.is_held_up = True
                await writer.drain()
                if is_back:
                    self.connection.is_held_up = False
        except OSError:
            return
