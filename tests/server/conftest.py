"""A server on each supported event loop: asyncio's, and uvloop's except on Windows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.client import Client
from tests.running import RunningServer

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop


@pytest.fixture(params=LOOPS)
def new_loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    return LOOPS[request.param]


@pytest.fixture
def running(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> Iterator[RunningServer]:
    with RunningServer(new_loop) as running:
        yield running


@pytest.fixture
def client(running: RunningServer) -> Iterator[Client]:
    with Client(running.port).open() as client:
        yield client
