"""The play of a program at one broker: one step after the other, each followed by a rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.api_client import Answer, Unanswered, filled
from amqp_broker.conformance.duel.http_steps import (
    EVERYTHING,
    PERMISSIONS,
    TOPIC_PERMISSIONS,
    USER,
    ask,
    has_user,
    shown,
)
from amqp_broker.conformance.duel.scenario_source import Source
from amqp_broker.conformance.duel.steps import Call, End, Http, Program, Publish, Settle, Step, Wait, names_in, renamed
from amqp_broker.conformance.duel.watching import Observer, Refused, WatchedChannel, WatchedConnection, WatchedLab
from amqp_broker.conformance.duel.windows import Ledger
from amqp_broker.conformance.received import Stopped
from amqp_broker.conformance.terms import NO_API, Skipped
from amqp_broker.conformance.transcript import Transcript

# A broker whose input does not change for this long is at rest.
QUIET_S = 0.15
# Between two looks, longer each time.
PAUSE_S, PAUSE_MAX_S = 0.002, 0.015

# The lines of a window, and whether they are those that were expected.
Lines = list[str]

# RabbitMQ refreshes the counts of its HTTP API after 5 s.
STATISTICS_S = 6.0

# The connection of a user whose permissions change, in a program that changes them; others are guest's.
OF_USER = 3


@dataclass(frozen=True)
class Pace:
    """How long a play waits."""

    # The least duration of a step.
    step_s: float = 0.0
    # A window is complete when nothing has changed for so long.
    quiet_s: float = QUIET_S


class Player:
    """A play of a program. `windows` has the lines of each step, then those of the end."""

    def __init__(
        self,
        lab: WatchedLab,
        observer: Observer,
        pace: Pace | None = None,
        normalize: Callable[[str], str] = str,
    ) -> None:
        self.lab = lab
        self.observer = observer
        self.pace = pace or Pace()
        self.windows: list[Lines] = []
        # The longest time that passed between two waits.
        self.unbroken_s = 0.0
        self.source = Source()
        # The lines of each step as source.
        self.sent: list[Lines] = []
        # Leaves out of a line what may differ.
        self._normalize = normalize
        self.is_normalized = False
        self._shown = Transcript(lab.prefix, lab.terms)
        self._connections: dict[int, WatchedConnection] = {}
        # Queues in the order of their declaration, those that are asked for their counts, and streams.
        self._queues: dict[str, None] = {}
        self._counted: dict[str, None] = {}
        self._streams: set[str] = set()
        self._exchanges: set[str] = set()
        # Paths of what is there because of the program.
        self._put: dict[str, None] = {}
        self._user = ""
        # A question over HTTP whose answer settles after a while.
        self._asked: Http | None = None
        self._number = 0
        self._acting: WatchedChannel | None = None
        self._counts: dict[str, tuple[int, int] | int] = {}
        self._extra: Lines = []
        self._quiet_s = self.pace.quiet_s
        # Connections of which channels hand messages on as they end, and whether one has ended with them.
        self._holding: set[int] = set()
        self._is_over = False

    # --- Play

    def play(self, program: Program, expected: Sequence[Lines] | None = None) -> list[Lines]:
        """Play until the end, or until a window is not the expected one. Return the windows."""
        begun = last_wait = time.monotonic()
        if has_user(program):
            self._add_user()
        for index, step in enumerate(self._with_end(program)):
            wanted = expected[index] if expected is not None and index < len(expected) else None
            self._extra, self._acting, self._asked = [], None, None
            self._holding = {index for index, one in self._connections.items() if len(_involved(one)) > 1}
            lines_before = len(self.source.lines)
            try:
                try:
                    self._do(step)
                except Refused as why:
                    self._extra.append(f"lab {why}")
                finally:
                    self.sent.append(self.source.lines[lines_before:])
                if not _waits(step):
                    self.unbroken_s = max(self.unbroken_s, time.monotonic() - last_wait)
                self._rest(wanted)
            except Stopped as why:
                self.windows.append([f"STOPPED: {why}"])
                break
            if self._is_over:
                self.windows.pop()
                break
            if expected is not None and self.windows[-1] != wanted:
                break
            if _waits(step):
                last_wait = time.monotonic()
            time.sleep(max(0.0, begun + (index + 1) * self.pace.step_s - time.monotonic()))
        return self.windows

    def _with_end(self, program: Program) -> Iterator[Step | str]:
        yield from program
        for connection in list(self._connections):
            yield End(connection)
        # Dead letters may reach queues meanwhile, so each queue is emptied when the former one is at rest.
        yield from list(self._queues)

    def _do(self, step: Step | str) -> None:
        match step:
            case str() if step in self._streams:
                self._extra += self.observer.read(step)
            case str():
                self._drain(step)
            case Call():
                self._call(step)
            case Publish():
                self._publish(step)
            case Settle():
                self._settle(step)
            case End(connection, is_reset):
                self._end(connection, is_reset)
            case Wait(duration_ms):
                self.source.add(f"time.sleep({duration_ms / 1000})")
                time.sleep(duration_ms / 1000)
            case Http():
                self._ask(step)

    def clean_up(self) -> None:
        """Close everything, and delete all objects."""
        for connection in self._connections.values():
            connection.hang_up()
        self.observer.delete(self._queues, self._exchanges)
        self.undo()

    def undo(self) -> None:
        """Delete what was put over HTTP."""
        for path in self._put:
            self._ask_api(Http("DELETE", path))

    # --- Steps

    def _names(self, value: Any) -> dict[str, str]:
        names = {str(name): self.lab.name(name) for name in names_in(value)}
        self.source.name(names)
        return names

    def _at(self, step: Call | Publish | Settle) -> WatchedChannel:
        """Return the step's channel, opened if it is closed."""
        connection = self._connections.get(step.at.connection)
        if connection is None or connection.is_ended or not connection.control.is_open:
            connection = self._connect(step.at.connection)
        number = step.at.channel + 1
        channel = connection.channels.get(number)
        if channel is None or not channel.is_open:
            self.source.channel(step.at)
            channel = connection.channel(number)
        assert isinstance(channel, WatchedChannel)
        channel.window.replies.clear()
        self._acting = channel
        return channel

    def _connect(self, index: int) -> WatchedConnection:
        self.source.connect(index)
        connection = self.lab.connect_as(self._user if index == OF_USER else "")
        self._connections[index] = connection
        connection.first.next_window()
        return connection

    def _add_user(self) -> None:
        self._user = filled(USER, self._names_of_requests)
        self._put[f"users/{USER}"] = None
        self._ask_api(Http("PUT", f"users/{USER}", {"password": USER, "tags": ""}))
        self._ask_api(Http("PUT", PERMISSIONS, EVERYTHING))

    def _call(self, step: Call) -> None:
        names = self._names(step.fields)
        channel = self._at(step)
        fields = renamed(dict(step.fields), names)
        if step.method in (Queue.Declare, Queue.Delete, commands.Exchange.Declare):
            self._note_names(step, fields)
        if step.method in (Basic.Consume, Basic.Get):
            channel.is_no_ack = bool(fields.get("no_ack"))
        if fields.get("nowait") or not step.method.synchronous:
            self.source.call(step, "send")
            channel.send(step.method, **fields)
            return
        self.source.call(step, "call")
        answer = channel.call(step.method, **fields)
        if answer.method is Queue.DeclareOk and not fields.get("passive"):
            self._note_kind(answer.fields["queue"], fields.get("arguments", {}).get("x-queue-type"))
        if answer.method in (Queue.DeclareOk, Queue.DeleteOk) and fields["queue"] in self._streams:
            answer.fields["message_count"] = 0

    def _note_names(self, step: Call, fields: dict[str, Any]) -> None:
        if step.method is commands.Exchange.Declare:
            self._exchanges.add(fields["exchange"])
        elif step.method is Queue.Declare and fields["queue"] and not fields.get("passive"):
            self._queues[fields["queue"]] = None

    def _note_kind(self, queue: str, kind: str | None) -> None:
        self._queues[queue] = None
        if kind == "stream":
            # RabbitMQ counts the messages of a stream every few seconds.
            self._streams.add(queue)
            self._counted.pop(queue, None)
        else:
            self._streams.discard(queue)
            self._counted[queue] = None

    def _publish(self, step: Publish) -> None:
        names = self._names(step.options)
        channel = self._at(step)
        options = renamed(dict(step.options), names)
        for index in range(step.count):
            if index:
                # A quorum queue that refuses publishes lets some pass if they come at once.
                self._look()
                if not channel.is_open:
                    break
            self._number += 1
            body = str(self._number).encode().ljust(step.size, b".")
            channel.ledger.count_publish()
            self.source.publish(step, body)
            channel.publish(body, **options)

    def _settle(self, step: Settle) -> None:
        channel = self._at(step)
        unacked = channel.ledger.unacked
        tag = 0
        if step.pick is not None:
            if not unacked:
                return
            delivery = unacked[step.pick % len(unacked)]
            tag = delivery.last_tag if step.options.get("multiple") else delivery.tag
        is_multiple = bool(step.options.get("multiple"))
        channel.ledger.unacked = [
            one for one in unacked if not (one.tag == tag or (is_multiple and (one.tag <= tag or tag == 0)))
        ]
        self.source.settle(step, tag)
        channel.send(getattr(Basic, step.verb.title()), delivery_tag=tag, **step.options)

    def _end(self, index: int, is_reset: bool) -> None:
        connection = self._connections.pop(index, None)
        if connection is None or connection.is_ended or not connection.control.is_open:
            return
        self._quiet_s = max(self._quiet_s, 0.02)
        self.source.end(index, is_reset)
        if is_reset:
            self._is_over = index in self._holding
            connection.abort()
            return
        for channel in _involved(connection)[1:]:
            channel.call(commands.Channel.Close, reply_code=200, reply_text="", class_id=0, method_id=0)
        connection.call(commands.Connection.Close, reply_code=200, reply_text="bye")
        connection.hang_up()

    def _ask(self, step: Http) -> None:
        if "{number}" in str(step.body):
            self._number += 1
        self.source.http(step, filled(step.body, {"number": str(self._number)}))
        if step.method == "GET":
            self._asked, self._quiet_s = step, STATISTICS_S if self.pace.quiet_s else 0.0
            return
        if step.method == "PUT" and step.path not in (PERMISSIONS, TOPIC_PERMISSIONS):
            self._put[step.path] = None
        self._extra.append(shown(step, self._ask_api(step)))

    @property
    def _names_of_requests(self) -> dict[str, str]:
        vhost = quote(self.lab.terms.vhost, safe="")
        return {"vhost": vhost, "prefix": self.lab.prefix, "number": str(self._number)}

    def _ask_api(self, step: Http) -> Answer:
        api = self.lab.terms.api
        if api is None:
            raise Skipped(NO_API)
        try:
            return ask(api, self._names_of_requests, step)
        except Unanswered as why:
            raise Stopped(str(why)) from None

    def _drain(self, queue: str) -> None:
        """Take what is left in a queue."""
        self.source.drain(queue.removeprefix(self.lab.prefix))
        while (got := self.observer.call(Basic.Get, queue=queue, no_ack=True)).method is Basic.GetOk:
            got.fields["delivery_tag"] = 0  # the observer's channel is older than the play
            self._extra += got.lines()
        if got.method is not Basic.GetEmpty:
            self._extra += got.lines()

    # --- Rest

    def _rest(self, expected: Lines | None) -> None:
        """Wait until the window is as expected, or does not change any more; then note it."""
        former: Lines | None = None
        changed, pause_s = time.monotonic(), PAUSE_S
        while True:
            lines = self._look()
            if lines == expected:
                break
            if lines != former:
                former, changed = lines, time.monotonic()
            elif time.monotonic() - changed >= self._quiet_s and not self._is_unconfirmed(expected, changed):
                break
            elif time.monotonic() - changed > PAUSE_S:
                time.sleep(pause_s)
                pause_s = min(1.5 * pause_s, PAUSE_MAX_S)
        self.windows.append(lines)
        self._quiet_s = self.pace.quiet_s
        for queue, count in self._counts.items():
            if isinstance(count, int):
                del self._counted[queue]
        self.source.rest(queue.removeprefix(self.lab.prefix) for queue in self._counted)
        for connection in self._connections.values():
            for channel in connection.watched:
                channel.next_window()
                if not channel.is_open:
                    channel.ledger = Ledger()

    def _is_unconfirmed(self, expected: Lines | None, since: float) -> bool:
        """Return whether confirms are outstanding, and may still come."""
        waits = expected is None and time.monotonic() - since < QUIET_S
        return waits and any(
            channel.is_open and len(channel.ledger.unconfirmed) > len(channel.window.confirms)
            for connection in self._connections.values()
            for channel in connection.watched
        )

    def _look(self) -> Lines:
        """Have the broker answer on all channels, the acting one first. Return the lines of the window."""
        if self._acting is not None and self._acting.is_open:
            self._acting.ask_flow()
            self._acting.await_flow()
        self._counts = self.observer.counts(self._counted)
        opened = [channel for connection in self._connections.values() for channel in connection.opened]
        for channel in opened:
            channel.ask_flow()
        for channel in opened:
            channel.await_flow()
        self._shown.lines.clear()
        if self._asked is not None:
            self._shown.record(f"lab {shown(self._asked, self._ask_api(self._asked))}")
        for index, connection in sorted(self._connections.items()):
            for channel in connection.watched:
                channel.take_waiting()
                for line in channel.ledger.lines(channel.window, connection.is_ended):
                    self._shown.record(f"{'abcd'[index]}{channel.number} {line}")
        for line in self._extra:
            self._shown.record(f"lab {line}")
        for queue, count in self._counts.items():
            text = f"refused with {count}" if isinstance(count, int) else "{} ready, {} consumers".format(*count)
            self._shown.record(f"{queue}: {text}")
        self._note_open_order()
        lines = [self._normalize(line) for line in self._shown.lines]
        self.is_normalized = self.is_normalized or lines != self._shown.lines
        return lines

    def _note_open_order(self) -> None:
        """End the play before a window in which several channels lose their messages with their connection.

        RabbitMQ ends the channels one after the other in any order, and those that are left may still receive what the
        others held.
        """
        for index in self._holding & self._connections.keys():
            connection = self._connections[index]
            if connection.is_ended or not connection.control.is_open:
                self._is_over = True


def _waits(step: Step | str) -> bool:
    """Return whether time passes in this step at each broker: statistics may need seconds."""
    return isinstance(step, Wait) or (isinstance(step, Http) and step.method == "GET")


def _involved(connection: WatchedConnection) -> list[WatchedChannel]:
    """Return the channels that consume or hold messages, if any holds some."""
    opened = connection.opened
    if not any(channel.ledger.unacked for channel in opened):
        return []
    return [channel for channel in opened if channel.ledger.unacked or channel.ledger.consumers]
