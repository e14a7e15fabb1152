"""What faults do to a connection: how a session carries out the rules of `broker/faults.py`.

What happens while a peer is heard ends as errors do, in `Session._run`; what comes from elsewhere is done at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.fault_rules import CONFIRM, PUBLISH, Rule
from amqp_broker.errors import ChannelError, ConnectionError_, Disconnect
from amqp_broker.protocol import wire
from amqp_broker.protocol.connection import RUNNING

if TYPE_CHECKING:
    from amqp_broker import fields
    from amqp_broker.broker.counters import PublishCounts
    from amqp_broker.broker.route import Route
    from amqp_broker.message import Message
    from amqp_broker.session.channel import Channel, Delivery
    from amqp_broker.session.session import Session

FOREVER: Final = 2**62
# Output that a latency may hold back before consumers get nothing more.
LAG_BYTES_MAX: Final = 256 * 1024
# What is sent of a frame that is never finished: type and channel, and half of the size.
TORN_FRAME: Final = wire.HEARTBEAT_FRAME[:5]
CAUSE: Final = "a fault"


class Silenced(Exception):
    """The connection has fallen into a black hole: nothing more is heard, nothing said."""


# Coming in


def refuse(session: Session) -> None:
    """A socket is connected: reset it if a rule says so."""
    broker = session.broker
    if broker.faults.of_connection(broker.faults.on_connect, session):
        session.cause, session.is_reset = CAUSE, True
        session.drop()


def on_login(session: Session, user: str) -> bool:
    """Somebody gives his name; returns whether he is refused."""
    rules = session.broker.faults.of_connection(session.broker.faults.on_login, session, user)
    for rule in rules:
        if rule.action != "refuse_login":
            _raise(session, rule)
    return bool(rules)


def on_open(session: Session) -> None:
    """A vhost is open, and the peer knows it."""
    for rule in session.broker.faults.of_connection(session.broker.faults.on_open, session):
        _raise(session, rule)


# Publishing


def before_publish(
    channel: Channel, route: Route, keys: Sequence[str], headers: fields.Table, message: Message
) -> list[Rule]:
    """The rules that hit a message, which is not routed yet; what ends channel or connection before that is raised."""
    session, vhost, faults = channel.session, channel.vhost, channel.session.broker.faults

    def queues() -> list[str]:
        return [queue.name for queue in vhost.route(route.exchange, keys, headers, None)[0]]

    possible = [
        rule
        for rule in faults.on_publish
        if (channel.is_confirming or not rule.action.startswith("confirm_"))
        and (route.mandatory or rule.action != "return")
    ]
    rules = faults.of_message(possible, session, message, queues)
    for rule in rules:
        if rule.on == PUBLISH and not rule.action.startswith("confirm_"):
            if rule.action == "return":
                frame = wire.return_frame(channel.number, rule.code, rule.text, message.address)
                session.send_bytes(frame, message.content_for(channel.number, session.frame_max))
            else:
                _raise(session, rule)
    return rules


def loses(rules: Sequence[Rule]) -> bool:
    """Whether a message goes nowhere: one that is nacked was not taken, one that is returned had no queue."""
    return any(rule.action == "confirm_nack" or (rule.action == "return" and not rule.is_routed) for rule in rules)


def after_publish(channel: Channel, rules: Sequence[Rule]) -> None:
    """The message is where it goes, and its confirm, number `publish_count`, is to come."""
    number, withheld = channel.publish_count, channel.withheld
    if channel.is_confirming:
        is_nacked = any(rule.action == "confirm_nack" for rule in rules)
        is_dropped = any(rule.action == "confirm_drop" or rule.on == CONFIRM for rule in rules)
        delay_ms = max((rule.delay_ms for rule in rules if rule.action == "confirm_delay"), default=0)
        if is_dropped or delay_ms:
            if withheld is None:
                withheld = channel.withheld = Withheld()
            if number in channel.rejected[-1:]:
                # A queue refused it, which the late confirm must say.
                channel.rejected.pop()
                is_nacked = True
            withheld.add(number, None if is_dropped else delay_ms, is_nacked, channel.publish_counts)
        elif is_nacked and number not in channel.rejected[-1:]:
            channel.rejected.append(number)
    for rule in rules:
        if rule.on == CONFIRM:
            _raise(channel.session, rule)


class Withheld:
    """Publish numbers of a channel that are not confirmed with the others, but later or never.

    What is confirmed meanwhile must not stand for them: no frame with `multiple` goes beyond the first of them.
    """

    def __init__(self) -> None:
        # Those that no confirm has passed yet: when they leave after that (None: never), as a nack or as an ack, and
        # what counts an ack.
        self._ahead: dict[int, tuple[int | None, bool, tuple[PublishCounts, ...]]] = {}
        # Those that wait for their time, and the first that is lost.
        self._late: set[int] = set()
        self._first_lost: int | None = None
        # How many are passed, and not confirmed.
        self.passed_count = 0

    def add(self, number: int, delay_ms: int | None, is_nack: bool, counts: tuple[PublishCounts, ...]) -> None:
        self._ahead[number] = delay_ms, is_nack, counts

    def pass_over(self, channel: Channel, until: int) -> list[int]:
        """All up to `until` is about to be confirmed: what must be left out, and the first that was before."""
        passed = [number for number in self._ahead if number <= until]
        left_out = {*passed, *self._late}
        if self._first_lost is not None:
            left_out.add(self._first_lost)
        timers, now = channel.session.broker.timers, channel.session.broker.now
        for number in passed:
            delay_ms, is_nack, counts = self._ahead.pop(number)
            self.passed_count += 1
            if delay_ms is None:
                self._first_lost = min(number, self._first_lost or number)
            else:
                self._late.add(number)
                timers.at(now + delay_ms, _LateConfirm(self, channel, number, None if is_nack else counts))
        return sorted(left_out)

    def release(self, channel: Channel, number: int, acked: tuple[PublishCounts, ...] | None) -> None:
        """A late confirm leaves, if anybody is there who waits for it: an ack for these to count, or (None) a nack."""
        self._late.discard(number)
        self.passed_count -= 1
        session = channel.session
        if session.channels.get(channel.number) is channel and not session.is_deaf:
            make_frame = wire.nack_frame if acked is None else wire.ack_frame
            session.send_bytes(make_frame(channel.number, number, False))
            for counts in acked or ():
                counts.confirm += 1


class _LateConfirm:
    __slots__ = ("_acked", "_channel", "_number", "_withheld")

    def __init__(
        self, withheld: Withheld, channel: Channel, number: int, acked: tuple[PublishCounts, ...] | None
    ) -> None:
        self._withheld, self._channel, self._number, self._acked = withheld, channel, number, acked

    def __call__(self, now: int) -> None:
        self._channel.session.broker.now = now
        self._withheld.release(self._channel, self._number, self._acked)


# Settling


def heard_acks(channel: Channel, deliveries: list[tuple[int, Delivery]]) -> list[tuple[int, Delivery]]:
    """Those of the acks that no rule drops; what the others are of stays unacked. Of a deleted queue nothing is."""
    faults, session = channel.session.broker.faults, channel.session
    if not faults.on_ack:
        return deliveries
    heard: list[tuple[int, Delivery]] = []
    lost: list[tuple[int, Delivery]] = []
    for tag, delivery in deliveries:
        queue, message = delivery[0], delivery[3]
        if queue.is_deleted:
            # What is not in the vhost any more does not follow its rules.
            heard.append((tag, delivery))
            continue
        rules = faults.of_message(faults.on_ack, session, message, lambda queue=queue: [queue.name])  # type: ignore[misc]
        (lost if rules else heard).append((tag, delivery))
    if lost:
        channel.unacked = dict(sorted([*channel.unacked.items(), *lost], key=lambda item: item[0]))
    return heard


# What happens to a connection


def _raise(session: Session, rule: Rule) -> None:
    """Do what a rule says to the peer that is being heard; what ends that is raised for `Session._run`."""
    if rule.action == "close_channel":
        raise channel_error(rule)
    if rule.action == "close_connection":
        raise connection_error(rule)
    if rule.action in ("cut", "reset"):
        _prepare_cut(session, rule)
        raise Disconnect(CAUSE)
    suffer(session, rule, None)
    if rule.action == "black_hole":
        raise Silenced


def suffer(session: Session, rule: Rule, channel: int | None) -> None:
    """Do what a rule says to a connection, or to one of its channels (None: to all of them)."""
    if session.is_deaf or session.state is not RUNNING:
        return
    if rule.action == "close_channel":
        for number in [channel] if channel is not None else list(session.channels):
            if number in session.channels:
                session.close_channel(number, channel_error(rule))
    elif rule.action == "close_connection":
        session.close(connection_error(rule))
    elif rule.action in ("cut", "reset"):
        _prepare_cut(session, rule)
        session.cause = CAUSE
        session.drop()
    elif rule.action == "unblock":
        for other in [one for one in session.lasting_faults if one.action == "block"]:
            recover(session, other)
    else:
        _afflict(session, rule)


def _prepare_cut(session: Session, rule: Rule) -> None:
    """What was published before is confirmed, and where a rule says so a frame begins that never ends."""
    session.note_all_publishes()
    session.is_reset = rule.action == "reset"
    if rule.is_mid_frame:
        session.send_bytes(TORN_FRAME)


def _afflict(session: Session, rule: Rule) -> None:
    """What lasts as long as its rule."""
    if rule in session.lasting_faults:
        return
    session.lasting_faults += (rule,)
    rule.afflicted[session] = None
    if rule.action == "block":
        session.follow_alarms()
        if rule.duration_ms:
            end_ms = session.broker.now + rule.duration_ms
            rule.afflicted[session] = session.broker.timers.at(end_ms, partial(_end_block, session, rule))
    elif rule.action == "stop_heartbeats" and session.heartbeats is not None:
        session.heartbeats.is_mute = True
    elif rule.action == "latency":
        session.lag = Lag(session, rule)
    elif rule.action == "black_hole":
        session.pause()
        session.is_deaf = session.is_blocked = True
        session.held_until = FOREVER
        session.dirty.append(session)


def _end_block(session: Session, rule: Rule, now: int) -> None:
    session.broker.now = now
    recover(session, rule)


def recover(session: Session, rule: Rule) -> None:
    """What lasts is over; a black hole ends as a reset socket."""
    if rule not in session.lasting_faults:
        return
    session.lasting_faults = tuple(other for other in session.lasting_faults if other is not rule)
    rule.leave(session)
    if rule.action == "block":
        session.follow_alarms()
    elif rule.action == "stop_heartbeats" and session.heartbeats is not None:
        session.heartbeats.is_mute = any(other.action == rule.action for other in session.lasting_faults)
    elif rule.action == "latency" and session.lag is not None and session.lag.rule is rule:
        session.lag.end()
    elif rule.action == "black_hole":
        session.held_until = 0
        session.outbox.clear()
        session.is_reset, session.cause = True, session.cause or CAUSE
        session.drop()
        session.dirty.append(session)


def blocked_by(session: Session) -> str | None:
    """What the peer is told by the first rule that blocks it; None if none does."""
    return next((rule.text or "low on memory" for rule in session.lasting_faults if rule.action == "block"), None)


class Lag:
    """Output on its way: each flush of the session arrives later, and never before an earlier one."""

    def __init__(self, session: Session, rule: Rule) -> None:
        self.rule = rule
        self._session = session
        self._on_its_way: deque[tuple[int, list[bytes]]] = deque()
        self._bytes = 0
        self._last_due_ms = 0
        self._has_paused = False
        self._is_over = False

    def pass_on(self, output: list[bytes]) -> list[bytes]:
        """What arrives now, where this is sent now. What a connection says at its end is not held back."""
        session, rule, now = self._session, self.rule, self._session.broker.now
        if output:
            jitter_ms = rule.random(rule.jitter_ms + 1) if rule.jitter_ms else 0
            due = max(self._last_due_ms, now + rule.delay_ms + jitter_ms)
            self._last_due_ms = due
            self._on_its_way.append((due, output))
            self._bytes += sum(map(len, output))
            session.broker.timers.at(due, self._on_due)
            if self._bytes > LAG_BYTES_MAX and not session.is_paused:
                self._has_paused = True
                session.pause()
        arrived: list[bytes] = []
        while self._on_its_way and (self._on_its_way[0][0] <= now or session.is_over or self._is_over):
            _, pieces = self._on_its_way.popleft()
            self._bytes -= sum(map(len, pieces))
            arrived += pieces
        if self._is_over:
            session.lag = None
        elif self._has_paused and self._bytes <= LAG_BYTES_MAX // 2:
            self._has_paused = False
            session.resume(now)
        return arrived

    def end(self) -> None:
        """What is on its way arrives with the next flush."""
        self._is_over = True
        self._session.dirty.append(self._session)
        if self._has_paused:
            self._has_paused = False
            self._session.resume(self._session.broker.now)

    def _on_due(self, now: int) -> None:
        self._session.broker.now = now
        self._session.dirty.append(self._session)


# How they are told


def channel_error(rule: Rule) -> ChannelError:
    """An error that closes a channel with the rule's code and text."""
    name, _, explanation = rule.text.partition(" - ")
    error: ChannelError = type("ChannelFault", (ChannelError,), {"code": rule.code, "name": name})(explanation)
    return error


def connection_error(rule: Rule) -> ConnectionError_:
    """An error that closes a connection with the rule's code and text."""
    name, _, explanation = rule.text.partition(" - ")
    error: ConnectionError_ = type("ConnectionFault", (ConnectionError_,), {"code": rule.code, "name": name})(
        explanation
    )
    return error
