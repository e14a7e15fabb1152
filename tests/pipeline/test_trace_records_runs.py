"""A history that is recorded in runs is decoded to the same events as without runs.

The reference is the same history with an observer: then the recorder hears of each event by itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from pamqp import base, frame
from pamqp.commands import Basic, Channel, Confirm

from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.pipeline.event_rows import ARROW
from amqp_broker.pipeline.trace_records import POISON, events_of_record
from tests.peer import NOW, Lab, Peer, publish_bytes

SCHEMA = pa.schema([*ARROW, *POISON])
TURN_MS = 7
CONSUMED = ("plain", "second", "quorum", "limited", "plain")


class Step(NamedTuple):
    """A method of a client, as part of a read; `number` selects a routing key, a delivery or a queue."""

    action: str
    number: int
    flag: bool


class Turn(NamedTuple):
    """A read of one of the clients, or (without steps) the end of its channel."""

    client: int
    steps: list[Step]
    ends: bool


ACTIONS = ("publish", "publish", "publish", "ack", "ack", "nack", "reject", "get", "recover", "expire", "transient")
STEPS = st.builds(Step, st.sampled_from(ACTIONS), st.integers(0, 7), st.booleans())
TURNS = st.lists(st.builds(Turn, st.integers(0, 2), st.lists(STEPS, max_size=12), st.booleans()), max_size=14)


class History:
    """Three clients that publish with confirms, consume and settle, at queues of several kinds."""

    def __init__(self, selection: Selection, is_observed: bool) -> None:
        self.lab = lab = Lab()
        broker = lab.broker
        broker.now_us = lambda: lab.now * 1000
        vhost = lab.vhost
        arguments: dict[str, dict[str, Any]] = {
            "plain": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "second"},
            "second": {},
            "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 1, "x-dead-letter-exchange": "amq.fanout"},
            "limited": {"x-max-length": 2, "x-message-ttl": 3 * TURN_MS, "x-overflow": "reject-publish"},
            "trace": {"x-queue-type": "stream"},
        }
        for name, table in arguments.items():
            vhost.declare_queue(QueueDeclaration(name, table, is_durable=True))
        # Transient: it reports from its plain path.
        vhost.declare_queue(QueueDeclaration("fast", {}))
        for name in ("second", "fast"):
            vhost.bind(vhost.exchanges["amq.fanout"], vhost.queues[name], "", {})
        self.peers = [lab.peer() for _ in range(3)]
        for index, peer in enumerate(self.peers):
            peer.open()
            self.open_channel(peer, index)
        vhost.tracing.record(vhost.queues["trace"], selection)
        if is_observed:
            vhost.tracing.observe(lambda *event: None)

    def open_channel(self, peer: Peer, index: int) -> None:
        methods: list[base.Frame] = [Channel.Open(), Confirm.Select(), Basic.Qos(prefetch_count=3 + index)]
        methods += [Basic.Consume(queue="fast", no_ack=index == 2)]
        methods += [Basic.Consume(queue=queue) for queue in CONSUMED[index : index + 2]]
        peer.send(*methods)

    def play(self, turns: list[Turn]) -> None:
        for turn in turns:
            peer = self.peers[turn.client]
            if not turn.steps:
                peer.send(Channel.Close(200, "", 0, 0))
            elif 1 in peer.session.channels:
                peer.send_bytes(b"".join(self.octets(peer, step) for step in turn.steps))
            if 1 not in peer.session.channels:
                if 1 in peer.session.closing_channels:
                    peer.send(Channel.CloseOk())
                self.open_channel(peer, turn.client)
            if turn.ends:
                self.lab.broker.end_turn()
                self.lab.drain()
                self.lab.advance(TURN_MS)

    def octets(self, peer: Peer, step: Step) -> bytes:
        keys = ("fast", "fast", "plain", "second", "quorum", "limited", "nowhere", "")
        key, body = keys[step.number], bytes(step.number * 3)
        exchange = "amq.fanout" if key == "" else ""
        if step.action in ("publish", "transient"):
            mode = 2 if step.action == "publish" and step.flag else 1
            return publish_bytes(key, body, exchange=exchange, mandatory=step.flag, delivery_mode=mode)
        if step.action == "expire":
            return publish_bytes(key, body, exchange=exchange, expiration="0" if step.flag else "20")
        # The next tag is of a message that may be delivered in this read; else the broker closes the channel.
        unacked = peer.session.channels[1].unacked
        tags = list(unacked.deliveries) or [unacked.last_tag + 1]
        tag = tags[step.number % len(tags)] + (step.number == 7)
        methods: dict[str, base.Frame] = {
            "ack": Basic.Ack(tag, multiple=step.flag),
            "nack": Basic.Nack(tag, multiple=step.flag, requeue=step.number > 3),
            "reject": Basic.Reject(tag, requeue=step.flag),
            "get": Basic.Get(queue="fast" if step.number > 3 else "plain", no_ack=step.flag),
            "recover": Basic.Recover(requeue=True),
        }
        return frame.marshal(methods[step.action], 1)

    def events(self) -> list[dict[str, Any]]:
        """Return all events, without their places in the trace."""
        recorder = self.lab.vhost.tracing.recorder
        assert recorder is not None
        recorder.flush()
        found = []
        for offset, message in enumerate(self.lab.vhost.queues["trace"].messages()):
            rows = events_of_record(message.body, "trace", offset, SCHEMA).to_pylist()
            assert [row.pop("trace_index") for row in rows] == list(range(len(rows)))
            found += rows
        assert len(found) == recorder.written
        for row in found:
            del row["trace_offset"]
        return found


def lives(events: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Return the events of each message in order."""
    of_messages = defaultdict(list)
    for event in events:
        of_messages[event["message_number"]].append(event)
    return of_messages


def publishes(count: int, *numbers: int) -> list[Step]:
    return [Step("publish", number, False) for _ in range(count) for number in numbers]


ACKS = [Step("ack", 0, False), Step("ack", 1, False)]
# Runs are for these: publishes in a row, in turn, and beside acks, and a queue whose consumers take turns.
STEADY = [Turn(0, publishes(9, 0), True), Turn(1, ACKS, True), Turn(2, publishes(3, 1, 2, 7) + ACKS, True)] * 3
# Messages that a closed channel returns in the turn of their delivery.
RETURNED = [Turn(0, publishes(4, 0, 4), False), Turn(0, [], False), Turn(1, publishes(2, 0, 4), False)] * 2


@given(turns=TURNS, one_in=st.sampled_from([1, 1, 2]), queues=st.sampled_from([(), (), ("fast", "second")]))
@example(turns=STEADY, one_in=1, queues=())
@example(turns=STEADY, one_in=1, queues=("fast", "second"))
@example(turns=STEADY, one_in=2, queues=())
@example(turns=RETURNED, one_in=1, queues=())
def test_runs_are_decoded_to_the_events_of_each_message_in_order(
    turns: list[Turn], one_in: int, queues: tuple[str, ...]
) -> None:
    selection = Selection(queues=frozenset(queues), one_in=one_in)
    found, wanted = (History(selection, is_observed) for is_observed in (False, True))
    for history in (found, wanted):
        history.play(turns)
    events, reference = found.events(), wanted.events()
    for each in (events, reference):
        for event in each:
            # Turns that do not end are one, and its first event has read the clock.
            time = int(event.pop("time").timestamp() * 1000) - NOW
            assert 0 <= time <= TURN_MS * len(turns)
    assert lives(events) == lives(reference)
    assert [event for event in events if event["event"] == "publish"] == [
        event for event in reference if event["event"] == "publish"
    ]


def test_a_steady_history_takes_few_rows() -> None:
    history = History(Selection(), is_observed=False)
    history.play([Turn(0, publishes(100, 0), True), *[Turn(1, ACKS * 3, True)] * 10])
    counts: dict[str, int] = defaultdict(int)
    for event in history.events():
        counts[event["event"]] += 1
    recorded = sum(len(message.body) for message in history.lab.vhost.queues["trace"].messages())
    assert (counts["publish"], counts["confirm"]) == (100, 100)
    # An event of its own would take 36 octets and more.
    assert recorded < 20 * sum(counts.values())
