"""A vhost for one test, which is deleted afterwards and reports what the test left open."""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.admin.similar_names import did_you_mean
from amqp_broker.broker.observe.waiting import DepthWait
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.vhost_report import described, vhost_report
from amqp_broker.run_report.sentences import clock_words
from amqp_broker.testing.event_log import EmbeddedEventLog
from amqp_broker.testing.failure_report import LINES_MAX, FailureReport
from amqp_broker.testing.lab_controls import EmbeddedAdvice, EmbeddedFaults
from amqp_broker.testing.server_loop import awaited, blocked, done

if TYPE_CHECKING:
    from amqp_broker.broker.lab.advice import Advice
    from amqp_broker.server.server import Server
    from amqp_broker.testing.capture import EmbeddedCapture, Replayed
    from amqp_broker.testing.embedded_broker import EmbeddedBroker
    from amqp_broker.testing.embedded_nemesis import EmbeddedNemesis
    from amqp_broker.testing.failure_report import ReportedEvent

# Time in which the connection of a closed socket must be gone.
GRACE_S: Final = 0.1
STEP_S: Final = 0.002
# Queues that `repr` shows.
QUEUES_SHOWN_MAX: Final = 5


class LeakWarning(UserWarning):
    """A test left something open."""


class UnusedFaultWarning(UserWarning):
    """A fault rule of a test has hit nothing."""


class QueueState(NamedTuple):
    """The current state of a queue; `unacked` messages are delivered and not settled."""

    name: str
    type: str
    ready: int
    unacked: int
    consumers: int


class HeldMessage(NamedTuple):
    """A ready message; `properties` has the properties that are present, by their AMQP names."""

    body: bytes
    exchange: str
    routing_key: str
    properties: dict[str, Any]
    redelivered: bool


class EmbeddedVHost:
    """A vhost of an embedded broker; `str` returns its name.

    `leaks` has a sentence for each connection that was open when the vhost was deleted, and for each queue and
    connection that the test left in another vhost.
    """

    def __init__(self, broker: EmbeddedBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.faults = EmbeddedFaults(broker, name)
        self.advice = EmbeddedAdvice(broker, name)
        # The advice about the vhost when it was deleted.
        self.advised: list[Advice] = []
        # A sentence for each fault rule that had hit nothing by then.
        self.unused_faults: list[str] = []
        self._failure_report = FailureReport()
        self.leaks: list[str] = []
        self._has_log = False
        # How far the clock was moved before this vhost was created.
        self._clock_offset_ms = 0
        # Queues and connections of other vhosts when this one was created.
        self._known: set[object] = set()

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        """Return the name, and the queues with their numbers of ready and unacked messages."""
        return f"<EmbeddedVHost {self.name!r}{self._contents()}>"

    def _contents(self) -> str:
        if not self.broker.is_running:
            return ""
        if self.name not in self.broker.ask(lambda server: server.broker.vhosts):
            return ", deleted"
        queues = list(self.broker.queues(self.name).values())
        shown = [f"{queue.name!r}: {queue.ready} ready, {queue.unacked} unacked" for queue in queues[:QUEUES_SHOWN_MAX]]
        more = [f"{len(queues) - len(shown)} more queues"] if len(queues) > len(shown) else []
        return ", " + "; ".join(shown + more) if queues else ", no queues"

    @property
    def url(self) -> str:
        """amqp://user:password@host:port/vhost"""
        return self.broker.amqp_url(self.name)

    def queues(self) -> dict[str, QueueState]:
        """Return the queues by name."""
        return self.broker.queues(self.name)

    def messages(self, queue: str) -> list[HeldMessage]:
        """Return the ready messages of a queue in delivery order, without consuming them. Raise NotFound."""
        return self.broker.messages(queue, self.name)

    def depth(self, queue: str) -> int:
        """Return the number of ready messages of a queue. Raise NotFound."""
        return self.broker.depth(queue, self.name)

    def wait_depth(self, queue: str, count: int, *, timeout_s: float = 5.0) -> None:
        """Wait until a queue has exactly `count` ready messages; it may be declared meanwhile.

        Raise AssertionError after `timeout_s`, with the number that it has.
        """
        server = self.broker.server
        blocked(server, self._wait_depth(server, queue, count, timeout_s), timeout_s)

    async def wait_depth_async(self, queue: str, count: int, *, timeout_s: float = 5.0) -> None:
        """Do `wait_depth` without blocking the event loop of the caller."""
        server = self.broker.server
        await awaited(server, self._wait_depth(server, queue, count, timeout_s))

    async def _wait_depth(self, server: Server, name: str, count: int, timeout_s: float) -> None:
        vhost = server.broker.vhost(self.name)
        wait = DepthWait(vhost, name, count)
        await done(wait, timeout_s)
        if wait.is_done:
            return
        queue = vhost.queues.get(name)
        if queue is None:
            raise AssertionError(f"no queue '{name}' in {vhost}{did_you_mean(name, vhost.queues, ': ')}")
        found = f"{queue.ready_count} ready and {queue.unacked_count} unacked"
        raise AssertionError(f"{count} ready wanted in queue '{name}', which has {found} after {timeout_s:g} s")

    def event_log(self) -> EmbeddedEventLog:
        """Return the event log of this vhost; the first call switches it on. A restart of the broker empties it."""
        log = EmbeddedEventLog(self.broker, self.name)
        if not self._has_log:
            self._has_log = True
            self.broker.ask(self._note_log)
        return log

    def _note_log(self, server: Server) -> None:
        core = server.broker
        log = core.event_logs.of(core.vhost(self.name))
        if log is not None and log.beginning:
            self._failure_report.note_log(log.beginning)

    def capture(
        self, *, exchange: str | None = None, routing_key: str | None = None
    ) -> AbstractContextManager[EmbeddedCapture]:
        """Capture the messages that are published in the block and match (docs/replay.md)."""
        from amqp_broker.testing.capture import capture

        return capture(self.broker, self.name, exchange, routing_key)

    def replay(self, source: EmbeddedCapture | str | PathLike[str], *, speed: float = 1.0) -> Replayed:
        """Publish captured messages again, from a capture or a file; return when all are confirmed or refused.

        The time between messages is the captured one divided by `speed`; math.inf does not wait. A frozen clock is
        advanced instead of waiting. Raise CaptureFileError for an invalid file, ValueError for an invalid speed,
        ReplayLost if the broker refuses an exchange or stops, and OSError.
        """
        from amqp_broker.testing.capture import replay

        return replay(self.broker, source, self.name, speed)

    async def replay_async(self, source: EmbeddedCapture | str | PathLike[str], *, speed: float = 1.0) -> Replayed:
        """Do `replay` without blocking the event loop of the caller."""
        return await asyncio.to_thread(self.replay, source, speed=speed)

    def nemesis(
        self, *, seed: int | None = None, pace_ms: int = 200, actions: Sequence[str] = ()
    ) -> AbstractContextManager[EmbeddedNemesis]:
        """Inject faults that the seed draws while the block runs, and check the history at its end.

        It is described in docs/nemesis.md. `pace_ms` is the mean length of a fault and of a pause, in time of the
        broker. Raise InvalidParameter.
        """
        from amqp_broker.testing.embedded_nemesis import nemesis_of

        return nemesis_of(self.broker, self.name, seed, pace_ms, actions)

    def reset(self) -> None:
        """Close all connections of the vhost and delete its contents."""
        self.broker.reset(self.name)

    def failure_report(self, lines_max: int = LINES_MAX) -> str:
        """Return a line for each of the last events: publishes, deliveries, nacks, faults and the like.

        A clock that was moved or frozen has a line before them.
        """
        if not self.broker.is_running:
            return self._failure_report.text(lines_max)

        def look(server: Server) -> str:
            lines = [self._failure_report.text(lines_max)]
            if lines[0] and (words := clock_words(self._clock(server))):
                lines.insert(0, f"({words})")
            return "\n".join(lines)

        return self.broker.ask(look)

    def _clock(self, server: Server) -> dict[str, Any]:
        """Return how the clock stands, and how far it was moved since the vhost was created."""
        clock = server.clock
        moved_ms = clock.offset() - self._clock_offset_ms
        return {"now_ms": clock.now(), "moved_ms": moved_ms, "is_frozen": clock.is_frozen}

    def report(self) -> dict[str, Any]:
        """Return what a report shows of this vhost (docs/test-report.md). Without its event log it has no messages."""

        def look(server: Server) -> dict[str, Any]:
            return finished(vhost_report(server.broker.vhost(self.name), **self._clock(server)))

        return self.broker.ask(look)

    @property
    def reported(self) -> Sequence[ReportedEvent]:
        """The last events of the vhost, oldest first; to be read in the thread of the broker."""
        return self._failure_report.events

    def import_definitions(self, document: Any) -> None:
        """Import a definitions document, as exported by RabbitMQ or amqp-broker. Raise DefinitionsError."""
        from amqp_broker.management.documents.importing import import_

        self.broker.ask(lambda server: import_(server.broker, document, self.name))

    # Creation and deletion

    def begin(self) -> None:
        """Create the vhost if it does not exist."""
        self.broker.ask(self._begin)

    def _begin(self, server: Server) -> None:
        core = server.broker
        is_new = self.name not in core.vhosts
        vhost = core.add_vhost(self.name)
        if is_new:
            core.users.set_permission(core.users.named(core.settings.default_user), self.name, Permission())
        self._clock_offset_ms = server.clock.offset()
        self._failure_report.begin(vhost)
        if self._has_log and core.event_logs.of(vhost) is None:
            core.event_logs.start(vhost)
        self._known = set(self._elsewhere(server))

    def end(self) -> None:
        """Note what is still open, and delete the vhost."""
        deadline = time.monotonic() + GRACE_S
        while (leaks := self.broker.ask(self._open)) and time.monotonic() < deadline:
            time.sleep(STEP_S)
        self.leaks = leaks
        self.broker.ask(self._delete)

    def _delete(self, server: Server) -> None:
        self.advised = self.advice.given(server)
        self.unused_faults = self.faults.unused(server)
        vhost = server.broker.vhosts.get(self.name)
        if vhost is not None:
            vhost.set_metadata(vhost.metadata.__class__())  # removes the protection from deletion
            server.broker.delete_vhost(self.name)

    def _open(self, server: Server) -> list[str]:
        vhost = server.broker.vhosts.get(self.name)
        here = [] if vhost is None else finished(described(vhost, vhost.connections))
        elsewhere = [text for thing, text in self._elsewhere(server).items() if thing not in self._known]
        return here + elsewhere

    def _elsewhere(self, server: Server) -> dict[object, str]:
        """Return the connections and queues of vhosts that belong to no test."""
        found: dict[object, str] = {}
        for vhost in server.broker.vhosts.values():
            if vhost.name not in self.broker.lent:
                found.update((queue, f"{queue} is left behind") for queue in vhost.queues.values() if not queue.owner)
                sentences = finished(described(vhost, vhost.connections))
                places = (f"{sentence} (vhost '{vhost.name}')" for sentence in sentences)
                found.update(zip(vhost.connections, places, strict=True))
        return found


@contextlib.contextmanager
def lent_vhost(broker: EmbeddedBroker, name: str, warns: bool) -> Iterator[EmbeddedVHost]:
    """Lend a vhost for the duration of the block.

    With `warns`, warn of each leak and of each unused fault rule, and add the events of the vhost to an error.
    """
    vhost = EmbeddedVHost(broker, name)
    if name in broker.ask(lambda server: server.broker.vhosts):
        raise ValueError(f"vhost '{name}' exists already, and would be deleted at the end of the block")
    was_frozen = broker.ask(lambda server: server.clock.is_frozen)
    vhost.begin()
    broker.lent[name] = vhost
    try:
        yield vhost
    except Exception as error:
        if warns and (events := vhost.failure_report()):
            error.add_note(f"{vhost}:\n{events}")
        raise
    finally:
        if broker.is_running:
            vhost.end()
            if not was_frozen:
                # The clock is the next test's, too.
                broker.clock.resume()
        del broker.lent[name]
        if warns:
            # The caller of the block: contextlib adds a frame.
            for leak in vhost.leaks:
                warnings.warn(leak, LeakWarning, stacklevel=3)
            for sentence in vhost.unused_faults:
                warnings.warn(sentence, UnusedFaultWarning, stacklevel=3)
