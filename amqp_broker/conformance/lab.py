"""The lab of a scenario, the registry of scenarios, and the run of one against a broker."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue

from amqp_broker.conformance.received import Stopped
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.scenario_connection import SILENCE_S, Connection
from amqp_broker.conformance.transcript import Transcript

STOPPED = "STOPPED:"
# A broker is at rest when nothing has changed for so long.
REST_S = 0.1


class Broker(Protocol):
    """The broker under test."""

    host: str
    port: int
    # Scenarios declare durable queues wherever any kind will do, for versions that refuse transient ones.
    declares_durable: bool


class Lab:
    """One run of a scenario: its connections (a, b, c … in the transcript), its names and its transcript."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        # A scenario stops after this silence of the broker.
        self.silence_s = SILENCE_S
        # Scenarios share a broker, which may serve many runs.
        self.prefix = secrets.token_hex(4) + "."
        self.transcript = Transcript(self.prefix)
        self._connections: list[Connection] = []
        self._names: set[str] = set()
        self._feeder: Channel | None = None

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

    def connect(self, *, capabilities: dict[str, bool] | None = None, vhost: str = "/", **tune: int) -> Connection:
        """Open a connection of guest to a vhost; its opening is not recorded."""
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
        address = (self.broker.host, self.broker.port)
        return Connection(address, label, self.transcript, self.broker.declares_durable, self.silence_s)

    def finish(self) -> None:
        """Record the remaining input and close the connections."""
        for connection in self._connections:
            connection.flush()
        with self.transcript.muted():  # one connection's unsettled messages go to the next, which is irrelevant
            for connection in self._connections:
                connection.finish()

    def clean_up(self) -> None:
        """Delete all objects from the broker, whatever has happened."""
        for connection in self._connections:
            connection.hang_up()
        with self.transcript.muted():
            for name in sorted(self._names):
                self._feed().send(Queue.Delete, queue=name, nowait=True)
                self._feed().send(Exchange.Delete, exchange=name, nowait=True)
            if self._feeder is not None:
                self._feeder.connection.finish()


def _open(
    connection: Connection, capabilities: dict[str, bool] | None = None, vhost: str = "/", **tune: int
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

    @property
    def question(self) -> str:
        """Return its name in the records."""
        return f"{self.area}/{self.name}"


Play = Callable[[Lab], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(play: Play) -> Play:
    """Register a function whose name is the sentence of the behaviour."""
    return register(play, SCENARIOS)


def slow_scenario(play: Play) -> Play:
    """Register a function that waits for seconds."""
    return register(play, SCENARIOS, is_slow=True)


def register(play: Play, registry: dict[str, Scenario], *, is_slow: bool = False) -> Play:
    """Add a function to a registry; its area is its module."""
    name = play.__name__
    add(Scenario(name, play.__module__.rpartition(".")[2], play, is_slow), name, registry)
    return play


def add(scenario: Scenario, name: str, registry: dict[str, Scenario]) -> None:
    assert name not in registry, f"two scenarios are called {name}"
    registry[name] = scenario


def run(scenario: Scenario, broker: Broker) -> str:
    """Play a scenario against one broker and return the transcript."""
    lab = Lab(broker)
    try:
        scenario.play(lab)
        lab.finish()
    except Stopped as why:
        lab.transcript.record(f"{STOPPED} {why}")
    finally:
        lab.clean_up()
    return str(lab.transcript)
