"""The proxy: for each client, a socket to the upstream and a session of the local broker.

Each end is read only as fast as the other is written, so a slow client or upstream uses little memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.compare.connection_pair import PATIENCE_MS, ComparisonState, ConnectionPair
from amqp_broker.compare.difference_report import DifferenceReport
from amqp_broker.compare.follower import Follower
from amqp_broker.compare.leaving import Leaving
from amqp_broker.compare.upstream import secured
from amqp_broker.server.server import Server
from amqp_broker.shovel.shovel_definition import Uri

READ_BYTES: Final = 64 * 1024
WRITE_BUFFER_BYTES_HIGH: Final = 256 * 1024
CONNECT_TIMEOUT_S: Final = 30.0
TICK_S: Final = 0.5
# Time between two looks at what the brokers have delivered, while a client waits to leave.
LOOK_S: Final = 0.02


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
        await asyncio.gather(*[link.settle_up() for link in self.links.values()])
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
        self.leaving = Leaving()
        # Deliveries up to this time have had the time to come from both brokers.
        self._settled_until_ms = 0
        self._is_upstream_gone = False
        for _, writer in (client, upstream):
            writer.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH)

    async def run(self) -> None:
        """Forward octets until the client or the upstream disconnects."""
        connection = self.connection
        there = asyncio.create_task(self._carry_requests())
        back = asyncio.create_task(self._carry_answers())
        try:
            done, _ = await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            if back not in done:
                await self.settle_up()
            if back in done and there not in done and connection.is_open and not connection.close_seen:
                self.proxy.report.note(f"connection {connection.number}: the upstream closed the socket without notice")
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            self._finish()

    async def settle_up(self) -> None:
        """Wait until both brokers have delivered the same here. After PATIENCE_MS, report the differences."""
        connection, deliveries, clock = self.connection, self.proxy.state.deliveries, self.proxy.server.clock
        began_ms = clock.real_now()
        while deliveries.is_unequal(connection, self._settled_until_ms, began_ms):
            if clock.real_now() - began_ms >= PATIENCE_MS:
                # The upstream may have delivered more than was read from it.
                is_behind = connection.is_held_up or self._is_upstream_gone
                deliveries.report_unequal(connection, began_ms, with_surplus=not is_behind)
                self._settled_until_ms = began_ms
                return
            if self._is_upstream_gone and connection.behind_count <= 0:
                return
            await asyncio.sleep(LOOK_S)
            self.proxy.pump()

    def _finish(self) -> None:
        self.proxy.pump()
        self.connection.finish(self.proxy.server.clock.real_now())
        self.follower.leave()
        self.proxy.pump()
        self.upstream[1].close()

    async def _carry_requests(self) -> None:
        """Forward what the client sends; where it begins to leave, wait for deliveries first."""
        try:
            while data := await self.client[0].read(READ_BYTES):
                start = 0
                for place in self.leaving.places(data):
                    await self._request(data[start:place])
                    await self.settle_up()
                    start = place
                await self._request(data[start:])
        except OSError:
            return

    async def _request(self, data: bytes) -> None:
        if data:
            writer = self.upstream[1]
            writer.write(data)
            self.connection.from_client(data, self.proxy.server.clock.real_now())
            self.proxy.pump()
            await writer.drain()

    async def _carry_answers(self) -> None:
        """Forward what the upstream sends; read no more until the client has room, and go on if it has gone."""
        connection, proxy, writer = self.connection, self.proxy, self.client[1]
        try:
            while data := await self.upstream[0].read(READ_BYTES):
                writer.write(data)
                connection.from_upstream(data, proxy.server.clock.real_now())
                proxy.pump()
                connection.is_held_up = True
                # The upstream may still deliver what the local broker has delivered.
                with contextlib.suppress(OSError):
                    await writer.drain()
                connection.is_held_up = False
        except OSError:
            pass
        finally:
            self._is_upstream_gone = True
