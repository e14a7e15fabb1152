"""Tests that repeat what happened to messages, as text; they use the fixtures of docs/testing.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.message import SpecialMessage
from amqp_broker.broker.lab.fault_rules import REPLIES
from amqp_broker.broker.observe.event_log import Event
from amqp_broker.broker.observe.message_fate import READY, Stay, fate, follow
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.pytest_topology import declared_name, topology
from amqp_broker.management.documents.python_source import IMPORTS, source, with_arguments

if TYPE_CHECKING:
    from amqp_broker.broker.observe.event_log import EventLog


BODY_BYTES_MAX: Final = 10_000
EVENTS_MAX: Final = 300
FILLERS_MAX: Final = 1000
# Advances of the clock are multiples: an event may be recorded some ms later than its time for the queue.
ADVANCE_MS: Final = 100
# A test does not wait longer for a late confirm.
DELAY_MAX_MS: Final = 100
# Properties that a test must not set: the broker checks the user, and replies need a consumer.
LEFT_OUT: Final = frozenset({"user_id", "reply_to"})
# Events that no method of a client brings about; some for one of their reasons.
NOT_REPEATED: Final = {
    "tx_publish": "a message is published in a transaction",
    "move": "an administrator moves a message",
    "delay": "a queue delays a message that came back",
    "route history": "an exchange sends a message again from its history",
    "requeue timed_out": "a delivery times out",
    "requeue cancelled": "a delayed delivery comes back",
    "drop retention": "a stream drops a message",
    "drop exchange_deleted": "a delayed exchange is deleted",
}
# Faults that a publish of the test meets; others are named in a comment.
REPEATED: Final = frozenset({"confirm_nack", "confirm_drop", "confirm_delay", "return"})
INDENT: Final = "    "
# The answer says that the broker has done what was sent before.
SYNC: Final = "connection.channel()"
KINDS: Final = """\
def kinds(life, queue):
    return [event.kind for event in life if event.queue == queue and event.kind != "fault"]
"""


def pytest_text(lives: Sequence[Sequence[Event]], vhost: VHost, log: EventLog) -> str:
    """Return a module with one test that repeats the lives of messages, each with all its events.

    Raise InvalidParameter for messages that a test cannot repeat.
    """
    for life in lives:
        if life[0].is_cut_off:
            what = f"the fault '{life[0].more['action']}' comes before the broker takes message {int(life[0].number)}"
            raise InvalidParameter(f"a test cannot repeat that {what}")
    if not lives or any(life[0].kind not in ("publish", "tx_publish") for life in lives):
        raise InvalidParameter("the event log has no publish of this message")
    for life in lives:
        _require_repeatable(life)
    events = {event.sequence: event for life in lives for event in life}
    if len(events) > EVENTS_MAX:
        raise InvalidParameter(f"a test has at most {EVENTS_MAX} events")
    return _Test(lives, [events[sequence] for sequence in sorted(events)], vhost, log).text()


def _require_repeatable(life: Sequence[Event]) -> None:
    """Raise InvalidParameter for a life that no test can repeat, or not yet."""
    number = int(life[0].number)
    actions = {event.more["action"] for event in life if event.kind == "fault" and event.number == number}
    if "confirm_delay" in actions and not any(one.kind == "confirm" and one.number == number for one in life):
        raise InvalidParameter(f"the delayed confirm of message {number} has not been sent")
    stays: dict[tuple[int, str], Stay] = {}
    for event in life:
        follow(stays, event)
        what = NOT_REPEATED.get(event.kind) or NOT_REPEATED.get(f"{event.kind} {event.more.get('reason')}")
        if what is not None:
            raise InvalidParameter(f"a test cannot repeat that {what}, here message {int(event.number)}")
    if any(stay.kept for stay in stays.values()):
        raise InvalidParameter(f"a fault keeps back a delivery of message {number}")


class _Test:
    def __init__(self, lives: Sequence[Sequence[Event]], events: Sequence[Event], vhost: VHost, log: EventLog) -> None:
        self.lives = sorted(lives, key=lambda life: life[0].sequence)
        self.events, self.vhost, self.log = events, vhost, log
        self.is_alone = len(lives) == 1
        # Names of queues in the order of their first event.
        self.queues = list(dict.fromkeys(name for event in events for name in _queues_of(event)))
        self.has_fillers = False

    def text(self) -> str:
        inner = [*topology(self.vhost, self.queues, self.events), "", *self._channels(), *self._steps(), ""]
        inner += self._assertions()
        others = sorted({str(one.more["action"]) for one in self.events if one.kind == "fault"} - REPEATED)
        raises = any("pytest.raises" in line for line in inner)
        standard = [line for words, line in IMPORTS.items() if any(words in line for line in inner)]
        numbers = [int(life[0].number) for life in self.lives]
        what = f"message {numbers[0]}" if self.is_alone else f"messages {numbers[0]} to {numbers[-1]}"
        lines = [
            f"# What happened to {what} of the virtual host {source(self.vhost.name)}.",
            "",
            *([*standard, ""] if standard else []),
            "import pika",
            *(["import pika.exceptions", "import pytest"] if raises else []),
            "",
            "from amqp_broker.testing import Criteria",
            "",
            "",
            *KINDS.splitlines(),
            "",
            "",
            f"def test_{what.replace(' ', '_')}(amqp_url, amqp_vhost):",
            f"{INDENT}log = amqp_vhost.event_log()",
            *([f"{INDENT}# This test does not repeat the faults {', '.join(others)}."] if others else []),
            f"{INDENT}with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:",
            *(f"{INDENT * 2}{line}" if line else "" for line in inner),
        ]
        return "\n".join(lines) + "\n"

    # Actions of clients

    def _channels(self) -> Iterator[str]:
        if any(self._is_confirmed(life[0]) for life in self.lives):
            yield "confirming = connection.channel()"
            yield "confirming.confirm_delivery()"

    def _own(self, first: Event) -> list[Event]:
        return [event for event in self.events if event.number == first.number]

    def _faults(self, first: Event) -> list[Event]:
        """Return the faults of a publish that the test repeats."""
        return [event for event in self._own(first) if event.kind == "fault" and event.more["action"] in REPEATED]

    def _is_confirmed(self, first: Event) -> bool:
        faults = [str(event.more["action"]) for event in self._faults(first)]
        return any(name.startswith("confirm") for name in (*faults, *(event.kind for event in self._own(first))))

    def _publish(self, first: Event) -> Iterator[str]:
        message = self.log.message_of(first)
        if message is None or message.body_bytes > BODY_BYTES_MAX:
            raise InvalidParameter(f"a body in a test has at most {BODY_BYTES_MAX} octets")
        if isinstance(message, SpecialMessage) and message.blind_keys:
            raise InvalidParameter("the broker has removed the header BCC, so a test cannot repeat the publish")
        properties = message.properties().as_dict()
        if properties.get("timestamp") is not None:
            properties["timestamp"] = int(properties["timestamp"])
        given = ", ".join(f"{name}={source(value)}" for name, value in properties.items() if name not in LEFT_OUT)
        mandatory = ", mandatory=True" if first.more.get("mandatory") else ""
        place = f"{source(first.exchange)}, {source(_keys(first)[0])}"
        channel = "confirming" if self._is_confirmed(first) else "channel"
        call = f"{channel}.basic_publish({place}, {source(message.body)}, pika.BasicProperties({given}){mandatory})"
        for fault in self._faults(first):
            yield from _fault(fault)
        refusal = self._refusal(first)
        if refusal:
            yield f"with pytest.raises(pika.exceptions.{refusal}):"
        yield INDENT * bool(refusal) + call
        if refusal == LOST:
            yield from self._channels()

    def _refusal(self, first: Event) -> str:
        """Return the error that a publish raises, or ""."""
        own = self._own(first)
        actions = [event.more["action"] for event in self._faults(first)]
        if "confirm_drop" in actions:
            return LOST
        if any(event.kind == "confirm" and not event.more["ack"] for event in own):
            if "confirm_nack" not in actions and self.is_alone:
                raise InvalidParameter("a full queue refused the message: a test needs the messages before it, too")
            return "NackError"
        return "UnroutableError" if self._is_confirmed(first) and any(one.kind == "return" for one in own) else ""

    def _steps(self) -> Iterator[str]:
        """Publish, repeat what consumers did, and let the time pass."""
        firsts = {life[0].sequence for life in self.lives}
        clock = _Clock()
        # The channel and the variable of the last delivery of each message from each queue.
        taken: dict[tuple[int, str], tuple[str, str]] = {}
        deliveries = count(1)
        last = ""
        for event in self.events:
            if event.kind in ("publish", "dead_letter"):
                clock.begin(event)
            if event.sequence in firsts:
                yield from self._publish(event)
                last = ""
            if event.kind == "route":
                yield from clock.advance_to(event)
                clock.begin(event)
            if event.queue is None:
                continue
            name = source(declared_name(event.queue))
            if event.kind == "deliver" and event.more.get("no_ack"):
                yield f"channel.basic_get({name}, auto_ack=True)"
            elif event.kind == "deliver":
                number = next(deliveries)
                consumer = "channel"
                if self._is_lost(event):
                    consumer = f"consumer_{number}"
                    yield f"{consumer} = connection.channel()"
                taken[event.number, event.queue] = consumer, f"delivery_{number}"
                yield f"delivery_{number}, _, _ = {consumer}.basic_get({name})"
            elif event.kind in ("ack", "nack") and (event.number, event.queue) in taken:
                more = f", requeue={event.more['requeue']}" if event.kind == "nack" else ""
                consumer, delivery = taken[event.number, event.queue]
                yield f"{consumer}.basic_{event.kind}({delivery}.delivery_tag{more})"
            elif event.kind == "requeue" and (event.number, event.queue) in taken:
                yield f"{taken[event.number, event.queue][0]}.close()"
            elif event.kind == "refuse":
                self._require_full(event)
            elif event.kind == "expire":
                yield from clock.advance_to(event)
            elif event.kind == "drop":
                lines = list(self._drop(event, name))
                yield from lines if lines != [last] else ()
                last = lines[-1] if lines else last

    def _is_lost(self, deliver: Event) -> bool:
        """Return whether the channel or the connection of a delivery ended before it was settled."""
        for event in self.events:
            is_after = event.sequence > deliver.sequence
            if is_after and event.number == deliver.number and event.queue == deliver.queue and event.kind in ENDS:
                return event.kind == "requeue"
        return False

    def _require_full(self, event: Event) -> None:
        """Raise InvalidParameter unless the messages of the test fill a queue."""
        queue, name = self.vhost.queues.get(str(event.queue)), str(event.queue)
        limit = None if queue is None else queue.settings.length_max
        lives = [[one for one in life if one.sequence < event.sequence] for life in self.lives]
        ready = sum(fate(life, name).state == READY for life in lives)
        if limit is None or ready <= limit:
            raise InvalidParameter(f"queue '{name}' was full: a test needs the messages that it had, too")

    def _drop(self, event: Event, name: str) -> Iterator[str]:
        reason = event.more["reason"]
        if reason == "purged":
            yield f"channel.queue_purge({name})"
        elif reason == "queue_deleted":
            yield f"channel.queue_delete({name})"
        elif reason == "maxlen" and self.is_alone:
            queue = self.vhost.queues.get(str(event.queue))
            limit = queue.settings.length_max if queue is not None else None
            if not limit or limit > FILLERS_MAX:
                raise InvalidParameter(f"only queues of at most {FILLERS_MAX} messages can be filled by a test")
            self.has_fillers = True
            yield f"for _ in range({limit}):"
            yield f'{INDENT}channel.basic_publish("", {name}, b"filler")'
        elif reason == "maxlen":
            self._require_full(event)

    # Assertions

    def _assertions(self) -> Iterator[str]:
        yield SYNC
        yield f"published = log.matching(Criteria(), {len(self.lives)})"
        yield "assert [(one.exchange, one.routing_keys, one.message.body, one.queues) for one in published] == ["
        for life in self.lives:
            first = life[0]
            message = self.log.message_of(first)
            body = b"" if message is None else message.body
            queues = sorted(declared_name(name) for name in first.queues)
            yield f"{INDENT}({source(first.exchange)}, {source(_keys(first))}, {source(body)}, {source(queues)}),"
        yield "]"
        for at, life in enumerate(self.lives):
            yield f"life = log.timeline(published[{at}].number)"
            faults = [_struck(event) for event in self._faults(life[0])]
            if faults:
                yield f'assert [event.more["action"] for event in life if event.kind == "fault"] == {source(faults)}'
            for name in (None, *(name for name in self.queues if any(name in _queues_of(event) for event in life))):
                seen = [event.kind for event in life if event.queue == name and event.kind != "fault"]
                yield f"assert kinds(life, {None if name is None else source(declared_name(name))}) == {source(seen)}"
        for name in self.queues if not self.has_fillers else ():
            if name in self.vhost.queues:
                count = sum(fate(life, name).state == READY for life in self.lives)
                yield f"assert amqp_vhost.depth({source(declared_name(name))}) == {count}"


# The channel of a publish whose confirm a fault dropped.
LOST: Final = "ChannelClosedByBroker"


# Events after which a delivery is no longer with its consumer.
ENDS: Final = frozenset({"ack", "nack", "requeue", "expire", "drop"})


class _Clock:
    """How far a test has advanced the clock, in ms."""

    def __init__(self) -> None:
        self._advanced = 0
        # The time of each birth of a message, and how far the clock had been advanced.
        self._births: dict[int, tuple[int, int]] = {}

    def begin(self, event: Event) -> None:
        self._births[event.number] = event.time_us, self._advanced

    def advance_to(self, event: Event) -> Iterator[str]:
        """Let at least as much time pass as the message had in its queue."""
        time_us, advanced = self._births.get(event.number, (event.time_us, self._advanced))
        missing_ms = (event.time_us - time_us) / 1000 + ADVANCE_MS / 2 - (self._advanced - advanced)
        if missing_ms > 0:
            advance_ms = math.ceil(missing_ms / ADVANCE_MS) * ADVANCE_MS
            self._advanced += advance_ms
            yield SYNC
            yield f"amqp_vhost.broker.clock.advance({advance_ms})"


def _fault(event: Event) -> Iterator[str]:
    """Add the rules that strike the next publish as a rule struck one."""
    action = str(event.more["action"])
    given: Mapping[str, Any] = event.more["parameters"]
    usual = dict(zip(("code", "text"), REPLIES.get(action, ()), strict=False))
    parameters = {name: value for name, value in given.items() if value != usual.get(name)}
    remark = ""
    if parameters.get("delay_ms", 0) > DELAY_MAX_MS:
        remark = f"  # it was {parameters['delay_ms']}"
        parameters["delay_ms"] = DELAY_MAX_MS
    if action == "confirm_drop":
        yield "# pika would wait for the lost confirm for ever: here, the channel ends in its place."
        yield f'amqp_vhost.faults.add("{_struck(event)}", on="confirm", times=1)'
        return
    yield f"amqp_vhost.faults.add({source(action)}, times=1{with_arguments(parameters)}){remark}"


def _struck(event: Event) -> str:
    """Return the action of the test that stands for a fault."""
    action = str(event.more["action"])
    return "close_channel" if action == "confirm_drop" else action


def _queues_of(event: Event) -> Iterable[str]:
    return [*([event.queue] if event.queue is not None else []), *event.queues, *event.more.get("kept_from", ())]


def _keys(event: Event) -> list[str]:
    """Return the routing keys of a publish in the test; those of the default exchange are names of queues."""
    return [declared_name(key) for key in event.routing_keys] if not event.exchange else event.routing_keys
