"""The lab of a scenario, the registry of scenarios, and the run of one against a broker."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue

from amqp_broker.conformance.api_client import Unanswered, filled
from amqp_broker.conformance.received import END, Silent, Stopped, Unreachable
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.scenario_connection import Connection
from amqp_broker.conformance.terms import NO_API, Skipped, Terms
from amqp_broker.conformance.transcript import Transcript
from amqp_broker.conformance.wire import Method

STOPPED = "STOPPED:"
# A broker is at rest when nothing has changed for so long.
REST_S = 0.1
# New connections for the deletion of what a scenario has declared.
CLEANING_ATTEMPTS_MAX = 3

Step = tuple[Method, dict[str, Any]]


class Broker(Protocol):
    """The broker under test."""

    @property
    def host(self) -> str:
        """The address."""

    @property
    def port(self) -> int:
        """The port of AMQP."""

    @property
    def declares_durable(self) -> bool:
        """Scenarios declare durable queues wherever any kind will do: some versions refuse transient ones."""


class Lab:
    """One run of a scenario: its connections (a, b, c … in the transcript), its names and its transcript."""

    def __init__(self, broker: Broker, terms: Terms | None = None) -> None:
        self.broker = broker
        self.terms = terms or Terms()
        # A scenario stops after this silence of the broker.
        self.silence_s = self.terms.silence_s
        # Scenarios share a broker, which may serve many runs.
        self.prefix = f"{self.terms.prefix}{secrets.token_hex(4)}."
        self.transcript = Transcript(self.prefix, self.terms)
        self.is_interrupted = False
        self._connections: list[Connection] = []
        self._names: set[str] = set()
        self._feeder: Channel | None = None
        # Deletions that are not done: the broker was gone.
        self.remaining: list[Step] = []

    def name(self, name: str) -> str:
        """Return a unique queue or exchange name; the transcript shows `name`."""
        self._names.add(self.prefix + name)
        return self.prefix + name

    def dial(self) -> Connection:
        """Open a socket without sending anything."""
        label = chr(ord("a") + len(self._connections))
        connection = self._connection(label)
        self._connections.append(connection)
        return connection

    def connect(
        self, *, capabilities: dict[str, bool] | None = None, vhost: str | None = None, **tune: int
    ) -> Connection:
        """Open a connection of guest to a vhost, by default that of the run; its opening is not recorded."""
        with self.transcript.muted():
            return _open(self.dial(), capabilities, vhost, **tune)

    def channel(self) -> Channel:
        """Open a channel on a new connection."""
        return self.connect().channel()

    def queue(self, name: str = "q", **flags: Any) -> str:
        """Declare a queue on a connection that is not recorded."""
        queue = self.name(name)
        with self.transcript.muted():
            self._feed().declare(queue, **flags)
        return queue

    def put(self, queue: str, *bodies: bytes, **properties: Any) -> None:
        """Publish messages to a queue on a connection that is not recorded, and wait for the confirms."""
        self.transcript.record(f"lab> puts {', '.join(map(repr, bodies))} into {queue}")
        with self.transcript.muted():
            for body in bodies:
                self._feed().publish(body, routing_key=queue, mandatory=True, **properties)
                if self._feed().expect(Basic.Ack, Basic.Return).method is not Basic.Ack:
                    raise Stopped(f"{queue} does not take messages")

    def http(self, method: str, path: str, body: object = None) -> Any:
        """Ask the HTTP API for a path below `/api/`, and return the value of the answer.

        `{vhost}` and `{prefix}`, that of all names, are filled in. Raise Skipped without an API.
        """
        if self.terms.api is None:
            raise Skipped(NO_API)
        shown = "" if body is None else f" {body.decode() if isinstance(body, bytes) else _json(body)}"
        self.transcript.record(f"lab> {method} {path}{shown}")
        vhost, names = self.terms.vhost, {"prefix": self.prefix}
        quoted = {**names, "vhost": quote(vhost, safe="")}
        try:
            answer = self.terms.api.ask(method, filled(path, quoted), filled(body, {**names, "vhost": vhost}))
        except Unanswered as why:
            raise Stopped(str(why)) from None
        value = _json(answer.value).replace(f'"vhost": {_json(vhost)}', '"vhost": "/"')
        location = f" at {answer.headers['location']}" if "location" in answer.headers else ""
        self.transcript.record(f"lab< {answer.status} {value}{location}")
        return answer.value

    def rest(self, *queues: str) -> None:
        """Wait until these queues and all channels are at rest. Record their input, channel after channel."""
        former, changed = None, time.monotonic()
        while (state := self._state(queues)) != former or time.monotonic() - changed < REST_S:
            if state != former:
                former, changed = state, time.monotonic()
            time.sleep(REST_S / 10)
        for channel in self._channels():
            channel.flush()

    def _state(self, queues: tuple[str, ...]) -> list[Any]:
        """Return what changes as long as the broker works: counts of queues, and sizes of inboxes."""
        with self.transcript.muted():
            counts = [self._feed().call(Queue.Declare, queue=queue, passive=True).fields for queue in queues]
        for channel in self._channels():
            if channel.is_open and channel.number:
                channel.collect()
        return [*counts, *(len(channel.inbox) for channel in self._channels())]

    def _channels(self) -> list[Channel]:
        return [channel for connection in self._connections for channel in connection.channels.values()]

    def _feed(self) -> Channel:
        if self._feeder is None or not self._feeder.is_open:
            self._feeder = _open(self._connection("lab")).channel()
            self._feeder.call(Confirm.Select)
        return self._feeder

    def _connection(self, label: str) -> Connection:
        if self.is_interrupted:
            raise Stopped("the run was interrupted")
        return self._connect(label)

    def _connect(self, label: str) -> Connection:
        address = (self.broker.host, self.broker.port)
        return Connection(address, label, self.transcript, self.broker.declares_durable, self.silence_s, self.terms)

    def finish(self) -> None:
        """Record the remaining input and close the connections."""
        for connection in self._connections:
            connection.flush()
        with self.transcript.muted():  # one connection's unsettled messages go to the next, which is irrelevant
            for connection in self._connections:
                connection.finish()

    def leave(self) -> None:
        """Close the connections correctly as far as possible, and clean up; nothing is recorded."""
        with contextlib.suppress(Stopped), self.transcript.muted():
            for connection in self._connections:
                connection.finish()
        self.clean_up()

    def interrupt(self) -> None:
        """Let the scenario end soon; another thread plays it."""
        self.is_interrupted = True
        for connection in [*self._connections]:
            connection.interrupt()

    def clean_up(self) -> None:
        """Delete all objects from the broker, whatever has happened."""
        names = set(self._names)
        for connection in self._connections:
            connection.hang_up()
            names |= connection.declared
        self.remaining += [(Queue.Delete, {"queue": name}) for name in sorted(names)]
        self.remaining += [(Exchange.Delete, {"exchange": name}) for name in sorted(names)]
        with self.transcript.muted():
            for _ in range(CLEANING_ATTEMPTS_MAX):
                try:
                    self._delete(self.remaining)
                    break
                except (Silent, Unreachable):
                    break
                except Stopped:
                    continue
            if self._feeder is not None:
                if not self.remaining:
                    with contextlib.suppress(Stopped):
                        self._feeder.connection.finish()
                self._feeder.connection.hang_up()

    def _delete(self, steps: list[Step]) -> None:
        """Do each step and remove it from the list; a refused one costs the channel.

        Raise Stopped if the connection is lost.
        """
        batch = len(steps)
        while steps:
            if self._feeder is None or self._feeder.connection.is_ended or not self._feeder.connection.control.is_open:
                self._feeder = _open(self._connect("lab")).channel()
            elif not self._feeder.is_open:
                self._feeder = self._feeder.connection.channel()
            channel, sent = self._feeder, steps[:batch]
            for method, fields in sent:
                channel.send(method, **fields)
            for _ in sent:
                if not channel.is_open:
                    break
                answer = channel.expect(Queue.DeleteOk, Exchange.DeleteOk)
                del steps[0]
                if answer.method is commands.Channel.Close:
                    # RabbitMQ finds nothing wrong with the deletion of a missing object, others do.
                    batch = 1
                if answer is END or answer.method is commands.Connection.Close:
                    raise Stopped("the connection is lost")


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _open(
    connection: Connection, capabilities: dict[str, bool] | None = None, vhost: str | None = None, **tune: int
) -> Connection:
    connection.send_header()
    connection.start_ok(capabilities=capabilities)
    connection.tune_ok(**tune)
    if connection.open(vhost).method is not commands.Connection.OpenOk:
        raise Stopped("the connection was refused")
    return connection


@dataclass(frozen=True)
class Scenario:
    """A behaviour: its sentence, its area, and the function that plays it."""

    name: str
    area: str
    play: Callable[[Lab], None]
    # The scenario waits for seconds (RabbitMQ's silence after a refused login, heartbeats), so it runs beside others.
    is_slow: bool = False
    lab: type[Lab] = Lab

    @property
    def question(self) -> str:
        """Return its name in the records."""
        return f"{self.area}/{self.name}"


Play = Callable[[Lab], None]
SCENARIOS: dict[str, Scenario] = {}
# Those that ask the HTTP API.
HTTP_SCENARIOS: dict[str, Scenario] = {}


def scenario(play: Play) -> Play:
    """Register a function whose name is the sentence of the behaviour."""
    return register(play, SCENARIOS)


def slow_scenario(play: Play) -> Play:
    """Register a function that waits for seconds."""
    return register(play, SCENARIOS, is_slow=True)


def http_scenario(play: Play) -> Play:
    """Register a function that asks the HTTP API."""
    return register(play, HTTP_SCENARIOS)


def register(play: Play, registry: dict[str, Scenario], *, is_slow: bool = False) -> Play:
    """Add a function to a registry; its area is its module."""
    name = play.__name__
    add(Scenario(name, play.__module__.rpartition(".")[2], play, is_slow), name, registry)
    return play


def add(scenario: Scenario, name: str, registry: dict[str, Scenario]) -> None:
    assert name not in registry, f"two scenarios are called {name}"
    registry[name] = scenario


def run(scenario: Scenario, broker: Broker, terms: Terms | None = None) -> str:
    """Play a scenario against one broker and return the transcript."""
    return play(scenario, Lab(broker, terms))


def play(scenario: Scenario, lab: Lab) -> str:
    """Play a scenario in its lab and return the transcript. Raise Skipped."""
    try:
        scenario.play(lab)
        lab.finish()
    except Stopped as why:
        reason = f" after {lab.transcript.unrecorded_close}" if lab.transcript.unrecorded_close else ""
        lab.transcript.record(f"{STOPPED} {why}{reason}")
    finally:
        lab.clean_up()
    return str(lab.transcript)
