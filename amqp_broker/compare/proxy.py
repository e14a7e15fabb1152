"""The proxy: for each client, a socket to the upstream and a session of the local broker.

Each end is read only as fast as the other is written, so a slow client or upstream uses little memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.compare.connection_pair import PATIENCE_MS, ComparisonState, ConnectionPair
from amqp_broker.compare.difference_report import DifferenceReport
from amqp_broker.compare.follower import Follower
from amqp_broker.compare.upstream import secured
from amqp_broker.server.server import Server
from amqp_broker.shovel.shovel_definition import Uri

if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES: Final = 64 * 1024
WRITE_BUFFER_BYTES_HIGH: Final = 256 * 1024
CONNECT_TIMEOUT_S: Final = 30.0
TICK_S: Final = 0.5
CATCH_UP_S: Final = 2.0


class Proxy:
    """Serves clients from `start` to `stop` on `port`, and adds differences to the report."""

    def __init__(self, uri: Uri, server: Server, report: DifferenceReport) -> None:
        self.uri = uri
        self.server = server
        self.report = report
        self.state = ComparisonState(report)
        self.port = 0
        self.links: dict[ConnectionPair, Link] = {}
        self._context, self._server_name = secured(uri)
        self._listener: asyncio.Server
        self._is_pumping = False
        self._ticker: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> None:
        """Start to listen. Raise OSError."""
        self._listener = await asyncio.start_server(self._accept, host, port, limit=READ_BYTES)
        self.port = self._listener.sockets[0].getsockname()[1]
        self._tick()

    async def stop(self) -> None:
        """Close all connections, and report the answers that are still missing."""
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
        self.state.deliveries.tick(now, PATIENCE_MS)
        self.pump()
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _end_ticks(self) -> None:
        """Report all answers that only one broker has given, however recent."""
        self.state.deliveries.tick(self.server.clock.real_now() + PATIENCE_MS, 0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Our own task: asyncio would complain about cancelled tasks of its own.
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._connect(reader, writer)
        finally:
            # The upstream's last octets, a refusal for example, still reach the client.
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
            self.report.note(f"a client was disconnected: cannot connect to {uri}: {error or 'no answer'}")
            return
        self.report.connections_count += 1
        link = Link(self, (reader, writer), upstream, self.report.connections_count)
        self.links[link.connection] = link
        try:
            await link.run()
        finally:
            del self.links[link.connection]

    def pump(self) -> None:
        """Exchange octets with the local broker until both directions are empty."""
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
            if connection.to_local:
                is_busy = True
                pieces, connection.to_local = connection.to_local, []
                link.follower.play(b"".join(pieces))
        self.server.flush()
        for link in list(self.links.values()):
            if link.follower.said:
                is_busy = True
                link.follower.hear()
        return is_busy

    def pump_soon(self) -> None:
        """Schedule `pump`, as the local broker has output, unless it is already running."""
        if not self._is_pumping:
            asyncio.get_running_loop().call_soon(self.pump)

    # connection_pair.Stage

    def accept_next_login(self, connection: ConnectionPair, user: str) -> None:
        self.links[connection].follower.accept_next_login(self._user(user))

    def create_missing(self, connection: ConnectionPair, user: str, vhost: str) -> None:
        broker = self.server.broker
        broker.add_vhost(vhost)
        there = self._user(user)
        if not there.can_open(vhost):
            broker.users.set_permission(there, vhost, Permission())

    def _user(self, name: str) -> User:
        users = self.server.broker.users
        return users[name] if name in users else self.server.broker.users.add(name, "")


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """One client: forwards octets to the upstream and back, and compares."""

    def __init__(self, proxy: Proxy, client: Streams, upstream: Streams, number: int) -> None:
        self.proxy = proxy
        self.client = client
        self.upstream = upstream
        self.connection = ConnectionPair(proxy.state, proxy, number)
        self.follower = Follower(proxy.server, self.connection, proxy.pump_soon)
        for _, writer in (client, upstream):
            writer.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH)

    async def run(self) -> None:
        """Forward octets until the client or the upstream disconnects."""
        connection = self.connection
        there = asyncio.create_task(self._carry(self.client[0], self.upstream[1], connection.from_client))
        back = asyncio.create_task(self._carry(self.upstream[0], self.client[1], connection.from_upstream, True))
        try:
            done, _ = await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            if back in done and there not in done and connection.is_open and not connection.close_seen:
                self.proxy.report.note(f"connection {connection.number}: the upstream closed the socket without notice")
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            await self._catch_up()
            self._finish()

    async def _catch_up(self) -> None:
        """Wait until the local broker has delivered the backlog that the upstream has already delivered."""
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
        """Forward one direction and pass each read to `tell`; read no more until the writer has room."""
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
