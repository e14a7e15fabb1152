"""A broker whose loop is played: no sockets and no clock, and each turn of the loop counts its work.

    world = World()
    client = world.client()
    world.begin()                       # what runs from now on is counted
    client.send(commands.Queue.Purge(queue="q"))
    world.turns                         # the turns of the read, and of what it put off

The flush cycle and the timers are the server's own. The time of the loop is the work: a line takes `LINE_S`, so a
portion that ends with its time ends after a number of lines. The portions of the broker are smaller here (`PORTIONS`),
and so are the reads, so that a few hundred things are more than one portion.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from operator import attrgetter
from typing import Any, Final

import msgspec
from pamqp import base

from amqp_broker.broker.scheduling.portions import Work
from amqp_broker.broker.scheduling.timers import Timers
from amqp_broker.management.api_sections import all_endpoints
from amqp_broker.management.application import _handled, _written
from amqp_broker.management.http.answers import Deferred, refusal_of
from amqp_broker.management.http.paths import Paths
from amqp_broker.management.http.request import Request
from amqp_broker.management.metrics import exposition
from amqp_broker.management.node.rates import Rates
from amqp_broker.server.flush_cycle import FlushCycle
from amqp_broker.server.ticking import Ticking
from tests.growth.counted import LineCounter, Turn
from tests.management.asking import StillNode
from tests.peer import Lab, Peer

# The duration of a line: a portion of 1 ms (`portions.BUDGET_S`) is 250 of them.
LINE_S: Final = 4e-6
READ_BYTES: Final = 2048
ENDPOINTS: Final = (*all_endpoints(), *exposition.endpoints(False))
PATHS: Final = Paths(ENDPOINTS)
# The sizes of portions, by their names in the modules of the broker.
PORTIONS: Final = {
    "WORK_MAX": 1024,
    "PORTION_STEPS": 10,
    "DRAIN_MESSAGES_MAX": 32,
    "FREED_MAX": 64,
    "DYING_MAX": 16,
    "SETTLED_MAX": 16,
    "ACKED_MAX": 32,
    "COMMITTED_MAX": 16,
    "DEAD_KEYS_MAX": 4,
    "CHUNK_MESSAGES_MAX": 32,
    "DUE_MAX": 8,
    "CHECKED_AT_ONCE": 16,
}


@contextmanager
def small_scale() -> Iterator[None]:
    """Make the portions of the broker small, and log nothing."""
    before: list[tuple[Any, str, Any]] = []
    for name, module in list(sys.modules.items()):
        if name.startswith("amqp_broker.") and not name.endswith(".management.api.openapi"):
            before += [
                (module, constant, getattr(module, constant)) for constant in PORTIONS if hasattr(module, constant)
            ]
    found = {constant for _, constant, _ in before}
    assert found == set(PORTIONS), f"no module has {set(PORTIONS) - found}"
    try:
        for module, constant, _ in before:
            setattr(module, constant, PORTIONS[constant])
        logging.disable(logging.CRITICAL)
        yield
    finally:
        logging.disable(logging.NOTSET)
        for module, constant, value in before:
            setattr(module, constant, value)


class Handle:
    """A call that waits in the loop."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        self.call = None


class PlayedLoop:
    """The part of an event loop that the flush cycle uses."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ready: deque[Handle] = deque()
        self.later: list[tuple[float, int, Handle]] = []
        self._numbers = count()

    def time(self) -> float:
        return self._world.now / 1000 + self._world.counter.lines * LINE_S

    def call_soon(self, call: Callable[..., object], *arguments: Any) -> Handle:
        handle = Handle(lambda: call(*arguments))
        self.ready.append(handle)
        return handle

    def call_later(self, delay_s: float, call: Callable[..., object], *arguments: Any) -> Handle:
        handle = Handle(lambda: call(*arguments))
        due_ms = self._world.now + round(delay_s * 1000)
        heapq.heappush(self.later, (due_ms, next(self._numbers), handle))
        return handle

    def run(self) -> None:
        """Run all calls that are due, each as one turn."""
        while True:
            while self.later and self.later[0][0] <= self._world.now:
                self.ready.append(heapq.heappop(self.later)[2])
            if not self.ready:
                return
            handle = self.ready.popleft()
            if handle.call is not None:
                self._world.turn(handle.call)


class WorldClock:
    """The clock of the timers: it stands still during a turn."""

    is_frozen = False

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> int:
        return self._world.now

    real_now = now


class Socket:
    """The transport of a client, which takes everything. Before the work is counted, the client reads it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.is_blocked = False

    def write(self, pieces: list[bytes]) -> None:
        if self._client.is_reading or not self._client.world.is_counted:
            self._client.keep(pieces)

    def set_blocked(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked

    def close(self) -> None:
        self._client.world.cycle.forget(self._client.session)

    abort = close


class Ordered(set[Any]):
    """Connections in the order of their arrival, so that the same is done in each run."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=attrgetter("number")))


class World(Lab):
    """A broker with its flush cycle and its timers; what is done after `begin` is counted."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.counter = LineCounter()
        self.is_counted = False
        # The reason of the last answer that was an error.
        self.refusal = ""
        self.loop = PlayedLoop(self)
        clock: Any = WorldClock(self)
        self.broker.now = self.now
        self.broker.connections = Ordered()
        self.vhost.connections = Ordered()
        self.broker.real_timers = Timers()
        self.broker.real_now = clock.real_now
        self.cycle = FlushCycle(self.broker, clock)
        self.cycle.loop = self.loop  # type: ignore[assignment]
        self.cycle.dirty = self.dirty
        self.cycle.ticking = Ticking(self.broker, clock, self.cycle.flush)
        self.node = StillNode()
        self.node.time = self.now
        self.node.rates = Rates(self.broker)
        self.node.flush = self.cycle.flush  # type: ignore[method-assign]

    @property
    def turns(self) -> list[Turn]:
        return self.counter.turns

    def begin(self, **options: bool) -> None:
        """Count from now on; the options are those of the counter."""
        self.counter = LineCounter(**options)
        self.is_counted = True

    def end(self) -> None:
        """Count no more."""
        self.is_counted = False

    def turn(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do something as one turn of the loop."""
        asyncio.events._set_running_loop(self.loop)  # type: ignore[arg-type]
        try:
            return self.counter.run(function, *arguments) if self.is_counted else function(*arguments)
        finally:
            asyncio.events._set_running_loop(None)

    def settle(self) -> None:
        """Let the loop do all that was put off."""
        self.turn(self.cycle.flush)
        self.loop.run()

    def client(self, **options: Any) -> Client:
        """A client with an open connection and channel 1 open."""
        client = Client(self, "127.0.0.1")
        client.is_reading = True
        client.open(**options)
        client.open_channel(1)
        client.is_reading = False
        return client

    def advance(self, duration_ms: int) -> None:
        """Let time pass; timers run when they are due."""
        end = self.now + duration_ms
        self.settle()
        while self.loop.later and self.loop.later[0][0] <= end:
            self.now = max(self.now, int(self.loop.later[0][0]))
            self.loop.run()
        self.now = end
        self.loop.run()

    def ask(self, method: str, path: str, body: Any = b"", **query: str) -> int:
        """The status of an answer of the HTTP API, which works in portions."""
        found = PATHS.find(path)
        assert found is not None, f"no endpoint {path}"
        octets = body if isinstance(body, bytes) else msgspec.json.encode(body)
        user = self.broker.users["guest"]
        request = Request(self.broker, self.node, user, method, found[1], query, {}, octets, "")
        try:
            value = self._portions(_handled(found[0][method], request))
            if isinstance(value, Deferred):
                value = self.turn(value.answer)
            return int(self._portions(_written(request, value)).status)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            self.refusal = str(error)
            return refusal.status

    def _portions(self, steps: Any) -> Any:
        work = Work(steps, self.loop.time)
        while not self.turn(work.run_portion):
            self.turn(self.cycle.flush)
        self.settle()
        return work.result


class Client(Peer):
    """A client whose reads are turns of the loop."""

    def __init__(self, world: World, peer_host: str) -> None:
        super().__init__(world, peer_host)
        self.world = world
        # It reads while the work is counted, too.
        self.is_reading = False
        world.cycle.transports[self.session] = Socket(self)

    def send_bytes(self, data: bytes) -> None:
        """Send octets, which arrive in reads of the usual size, each when the broker reads again."""
        for at in range(0, len(data), READ_BYTES):
            self.world.turn(self.read, data[at : at + READ_BYTES])
            self.world.loop.run()

    def read(self, data: bytes) -> None:
        self.session.receive(data, self.lab.now)
        self.world.cycle.flush()

    def keep(self, pieces: list[bytes]) -> None:
        """Keep what the broker has written for `next`."""
        self._received += b"".join(pieces)

    def ignore(self, *methods: base.Frame, channel: int = 1) -> None:
        """Send methods, and drop what is received."""
        self.send(*methods, channel=channel)
        self._received = b""

    def disconnect(self) -> None:
        self.world.turn(self.session.connection_lost, self.lab.now)
        self.world.settle()
        self.world.cycle.forget(self.session)
