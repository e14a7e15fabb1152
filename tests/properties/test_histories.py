"""The event log is a complete history: after each step, it says where the queues have each message."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.amqp.message import Message, NumberedMessage
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.observe.event_log import Event, EventLog
from amqp_broker.broker.observe.history_check import HistoryCheck
from amqp_broker.broker.observe.message_fate import ELSEWHERE, GONE, Stay, fate, follow
from amqp_broker.broker.queues.leaving_reasons import DUE
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.conformance.duel.steps import (
    SHORT_MS,
    At,
    Call,
    End,
    Program,
    Publish,
    Settle,
    Step,
    Wait,
    names_in,
    renamed,
)
from amqp_broker.conformance.wire import BODY, HEADER, METHOD, frame, header_payload, method_payload
from compat.duel.programs import programs
from tests.peer import Lab, Peer
from tests.properties.generators import examples

# How often a message is in a queue: ready, unacked and delayed.
Counts = tuple[int, int, int]
Places = dict[tuple[int, str], Counts]
PUBLISH_FIELDS = commands.Basic.Publish.attributes()


class Play:
    """A program at a broker with an event log; `missing` are kinds of events that the log does not get."""

    def __init__(self, missing: frozenset[str] = frozenset(), **options: Any) -> None:
        self.lab = Lab(**options)
        self.lab.broker.add_vhost("other")
        self.log: EventLog = self.lab.broker.event_logs.start(self.lab.vhost)
        self.peers: dict[int, Peer] = {}
        self.missing = missing
        self.stays: dict[tuple[int, str], Stay] = {}
        self.seen = self.published = 0
        # Numbers of delayed messages.
        self.delayed: set[int] = set()
        peer = self.peer(At())
        peer.send(commands.Exchange.Declare(exchange="x0", exchange_type="fanout", durable=True))
        arguments: FieldTable = {"x-delayed-type": "fanout"}
        peer.send(
            commands.Exchange.Declare(
                exchange="x1", exchange_type="x-delayed-message", durable=True, arguments=arguments
            )
        )

    def peer(self, at: At) -> Peer:
        """Return the client of a step, whose channel is open."""
        peer = self.peers.get(at.connection)
        if peer is None or peer.session not in self.lab.broker.connections:
            peer = self.peers[at.connection] = self.lab.peer()
            peer.open()
        if at.channel + 1 not in peer.session.channels:
            if at.channel + 1 in peer.session.closing_channels:
                peer.send(commands.Channel.CloseOk(), channel=at.channel + 1)
            peer.send(commands.Channel.Open(), channel=at.channel + 1)
        return peer

    def step(self, step: Step) -> None:
        match step:
            case Call(at, method, fields):
                self.peer(at).send_bytes(frame(METHOD, at.channel + 1, method_payload(method, fields)))
            case Publish(at, options, count, _):
                for _ in range(count):
                    self.publish(at, options)
            case Settle(at, verb, pick, options):
                self.settle(at, verb, pick, options)
            case End(connection, is_reset):
                peer = self.peers.pop(connection, None)
                if peer is not None and is_reset:
                    peer.disconnect()
                elif peer is not None:
                    peer.send(commands.Connection.Close(200, "", 0, 0), channel=0)
            case Wait(duration_ms):
                self.lab.advance(duration_ms)
        self.lab.drain()

    def publish(self, at: At, options: Mapping[str, Any]) -> None:
        fields = {name: value for name, value in options.items() if name in PUBLISH_FIELDS}
        properties = {name: value for name, value in options.items() if name not in PUBLISH_FIELDS}
        if fields.get("exchange") == "x1":
            # Most are delayed.
            self.published += 1
            properties["headers"] = {**properties.get("headers", {}), "x-delay": SHORT_MS * (self.published % 3)}
        pieces = method_payload(commands.Basic.Publish, fields), header_payload(1, properties), b"x"
        kinds = METHOD, HEADER, BODY
        octets = b"".join(frame(kind, at.channel + 1, piece) for kind, piece in zip(kinds, pieces, strict=True))
        self.peer(at).send_bytes(octets)

    def settle(self, at: At, verb: str, pick: int | None, options: Any) -> None:
        peer = self.peer(at)
        tags = list(peer.session.channels[at.channel + 1].unacked.deliveries)
        if pick is not None and not tags:
            return
        tag = 0 if pick is None else tags[pick % len(tags)]
        method = {"ack": commands.Basic.Ack, "nack": commands.Basic.Nack, "reject": commands.Basic.Reject}[verb]
        peer.send(method(delivery_tag=tag, **options), channel=at.channel + 1)

    def check(self) -> None:
        """Compare the history with the queues."""
        new = [event for event in self.log.events if event.sequence > self.seen]
        for event in new:
            self.seen = event.sequence
            if event.kind not in self.missing:
                follow(self.stays, event)
                self.follow_delays(event)
        told = {place: (stay.ready, stay.unacked, stay.delayed) for place, stay in self.stays.items() if stay.is_here}
        assert told == dict(self.actual())
        for place, holders in self.holders().items():
            assert Counter(self.stays[place].holders) == holders
        exchange = self.lab.vhost.exchanges.get("x1")
        kept = exchange.delayed() if isinstance(exchange, DelayedExchange) else ()
        assert self.delayed == {number_of(message) for _, message in kept}

    def follow_delays(self, event: Event) -> None:
        if event.more.get("delayed_in"):
            self.delayed.add(event.number)
        elif event.queue is None and (event.kind == "drop" or event.more.get("reason") == DUE):
            self.delayed.discard(event.number)

    def check_sentences(self) -> None:
        """Compare with the queues what the web page says of each message."""
        actual = dict(self.actual())
        for number, queue in self.stays:
            if queue not in self.lab.vhost.queues:
                continue
            life = self.log.timeline(number)
            found = fate(life, queue)
            is_here = any((event.number, queue) in actual for event in life)
            assert (found.state not in (GONE, ELSEWHERE)) is is_here, found.sentences
            assert all(sentence.endswith(".") for sentence in found.sentences)

    def actual(self) -> Iterator[tuple[tuple[int, str], Counts]]:
        """Yield what the queues have."""
        found: dict[tuple[int, str], list[int]] = {}

        def count(message: Message, queue: str, index: int) -> None:
            found.setdefault((number_of(message), queue), [0, 0, 0])[index] += 1

        for queue in self.queues():
            for message in queue.messages():
                count(message, queue.name, 0)
            if isinstance(queue, QuorumQueue):
                for _, message in queue.retries.items():
                    count(message, queue.name, 2)
        for queue, _, message in self.unacked():
            count(message, queue.name, 1)
        for place, counts in found.items():
            yield place, (counts[0], counts[1], counts[2])

    def queues(self) -> list[Queue]:
        return list(self.lab.vhost.queues.values())

    def unacked(self) -> Iterator[tuple[Queue, tuple[str, int, str], Message]]:
        for connection in self.lab.vhost.connections:
            for channel in connection.channels.values():
                for queue, consumer, _, message in channel.deliveries():
                    if not queue.is_deleted and not isinstance(queue, StreamQueue):
                        tag = "" if consumer is None else consumer.tag
                        yield queue, (connection.name, channel.number, tag), message

    def holders(self) -> dict[tuple[int, str], Counter[tuple[str, int, str]]]:
        found: dict[tuple[int, str], Counter[tuple[str, int, str]]] = {}
        for queue, holder, message in self.unacked():
            found.setdefault((number_of(message), queue.name), Counter())[holder] += 1
        return found


def number_of(message: Message) -> int:
    assert isinstance(message, NumberedMessage)
    return message.number


def renamed_step(step: Step) -> Step:
    """Return a step with names of queues and exchanges as plain text."""
    names: dict[str, str] = {name: str.__str__(name) for name in names_in(list(vars(step).values()))}
    return replace(step, **{name: renamed(value, names) for name, value in vars(step).items()})


def play(program: Program, missing: frozenset[str] = frozenset(), **options: Any) -> Play:
    """Play a program, and check the history after each step."""
    played = Play(missing, **options)
    for step in program:
        played.step(renamed_step(step))
        played.check()
    played.check_sentences()
    if not missing:
        assert finished(HistoryCheck(played.log).run())["breaches"] == []
    return played


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Programs make many errors, whose log lines take most of the time."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("compat", ["3.13", "4.0", "4.3"])
@settings(deadline=None, max_examples=examples(0.5), suppress_health_check=list(HealthCheck))
@given(programs())
def test_the_history_says_where_each_message_is(compat: str, program: Program) -> None:
    play(program, compat=compat)


@pytest.mark.parametrize("kind", ["deliver", "requeue", "nack", "refuse", "expire", "drop", "publish"])
def test_a_missing_event_is_found(kind: str) -> None:
    def is_found(program: Program) -> bool:
        try:
            play(program, missing=frozenset({kind}))
        except AssertionError:
            return True
        return False

    find(programs(), is_found, settings=settings(max_examples=500, phases=[Phase.generate], database=None))
