"""A running comparison with real sockets, in its own thread.

with RunningServer() as upstream, RunningProxy(upstream) as proxy:
    Client(proxy.port).open()
    proxy.until(lambda: proxy.report.compared_count)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from amqp_broker.cli.own.compare import settings
from amqp_broker.compare.difference_report import DifferenceReport
from amqp_broker.compare.proxy import Proxy
from amqp_broker.compare.upstream import Upstream, ask
from amqp_broker.server.server import Server
from amqp_broker.shovel.shovel_definition import parse_uri
from compat.waiting import wait_until
from tests.running import RunningServer

T = TypeVar("T")


class RunningProxy:
    """A proxy in a thread; `prepare` is called there with the local broker's server, before the first client."""

    def __init__(
        self, upstream: RunningServer | str, prepare: Callable[[Server], object] | None = None, **settings: Any
    ) -> None:
        url = upstream if isinstance(upstream, str) else f"amqp://guest:guest@127.0.0.1:{upstream.port}"
        self.uri = parse_uri(url)
        self.prepare = prepare
        self.settings = settings
        self.lines: list[str] = []
        self.report = DifferenceReport(self.lines.append)
        self.upstream: Upstream
        self.server: Server
        self.proxy: Proxy
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def port(self) -> int:
        return self.proxy.port

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    async def _start(self) -> None:
        self.upstream = await ask(self.uri)
        self.report.version = self.upstream.version
        self.server = Server(settings(self.upstream, self.settings.get("profile", self.upstream.profile), ""))
        await self.server.start()
        if self.prepare is not None:
            self.prepare(self.server)
        self.proxy = Proxy(self.uri, self.server, self.report)
        await self.proxy.start("127.0.0.1", 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self.proxy.stop())
        self.run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def ask(self, question: Callable[[Server], T]) -> T:
        async def put() -> T:
            return question(self.server)

        answer: T = self.run(put())
        return answer

    def until(self, condition: Callable[[], object]) -> None:
        wait_until(condition)

    @property
    def found(self) -> list[tuple[str, str]]:
        return [(difference.upstream, difference.amqp_broker) for difference in self.report.differences]
