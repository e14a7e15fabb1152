"""Faults of one connection: refused, closed, cut, blocked, delayed or swallowed.

An error that ends the connection while its input is read is raised, for the reader to act on; the rest is done at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.connection_states import CLOSING, RUNNING
from amqp_broker.amqp.errors import ChannelError, ConnectionError_, Disconnect
from amqp_broker.broker.lab.input_delay import InputDelay
from amqp_broker.broker.lab.output_delay import OutputDelay

if TYPE_CHECKING:
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.session.session import Session

# Start of a frame that is never finished: type, channel, and half of the size.
TORN_FRAME: Final = wire.HEARTBEAT_FRAME[:5]
# Reason for the end of a connection, as the log has it.
CAUSE: Final = "a fault"
# Actions that make a direction of a connection a slow link.
SLOWING: Final = ("latency", "bandwidth")


class BlackHoled(Exception):
    """A fault swallows the connection from now on: nothing more is read or written."""


class ConnectionFaults:
    """Faults of one session.

    `active` are the rules whose effect lasts. `resets_socket` says that the socket ends with a reset (RST) instead of
    an orderly close.
    """

    __slots__ = ("_answer_close", "_session", "active", "resets_socket")
    # For the compiler.
    __deletable__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session
        self.active: tuple[Rule, ...] = ()
        self.resets_socket = False
        # Answers a connection.close that is answered late.
        self._answer_close: Callable[[], None] | None = None

    def forget_session(self) -> None:
        """Forget the session, which has ended."""
        del self._session

    # While the connection opens

    def on_connect(self) -> None:
        """Reset the socket that has just connected, if a rule says so."""
        session, injector = self._session, self._session.broker.faults
        if injector.hits_of_connection(injector.on_connect, session):
            self.resets_socket, session.cause = True, CAUSE
            session.drop()

    def on_login(self, user: str) -> bool:
        """Return whether a rule refuses the login of `user`. Raise what another rule says."""
        session, injector = self._session, self._session.broker.faults
        rules = injector.hits_of_connection(injector.on_login, session, user)
        for rule in rules:
            if rule.action != "refuse_login":
                self.raise_for(rule)
        return bool(rules)

    def on_open(self) -> None:
        """Act on the rules for a connection that has opened a vhost. Raise what they say."""
        session, injector = self._session, self._session.broker.faults
        for rule in injector.hits_of_connection(injector.on_open, session):
            self.raise_for(rule)

    # Acting

    def can_show(self, rule: Rule) -> bool:
        """Return whether a rule would have an effect on the open connection."""
        session = self._session
        if session.state is not RUNNING:
            return False
        if rule.action == "unblock":
            return self.blocking_reason is not None
        if rule.action == "close_channel":
            return bool(session.channels)
        return rule.action != "stop_heartbeats" or session.heartbeats is not None

    def raise_for(self, rule: Rule) -> None:
        """Carry out a rule while the reader runs. Raise what ends the channel or the connection."""
        if rule.action == "close_channel":
            raise channel_error(rule)
        if rule.action == "close_connection":
            raise connection_error(rule)
        if rule.action in ("cut", "reset"):
            self._prepare_cut(rule)
            raise Disconnect(CAUSE)
        self.apply(rule, None)
        if rule.action == "black_hole":
            raise BlackHoled

    def apply(self, rule: Rule, channel: int | None) -> None:
        """Carry out a rule now, on one channel or (None) on all."""
        session = self._session
        if session.state is not RUNNING:
            return
        if rule.action == "close_channel":
            for number in [channel] if channel is not None else list(session.channels):
                if number in session.channels:
                    session.close_channel(number, channel_error(rule))
        elif rule.action == "close_connection":
            session.close(connection_error(rule))
        elif rule.action in ("cut", "reset"):
            self._prepare_cut(rule)
            session.cause = CAUSE
            session.drop()
        elif rule.action == "unblock":
            for other in [one for one in self.active if one.action == "block"]:
                self.end(other)
        elif rule not in self.active:
            self._begin(rule)

    def _prepare_cut(self, rule: Rule) -> None:
        """Confirm what was published so far; where the rule says so, begin a frame that never ends."""
        self._session.gate.confirm_all()
        self.resets_socket = rule.action == "reset"
        if rule.is_mid_frame:
            self._session.outbox.append(TORN_FRAME)

    # Rules whose effect lasts

    def _begin(self, rule: Rule) -> None:
        session = self._session
        self.active += (rule,)
        rule.affected[session] = None
        if rule.action == "block":
            session.blocking.update()
            if rule.duration_ms:
                end_ms = session.broker.now + rule.duration_ms
                rule.affected[session] = session.broker.timers.at(end_ms, partial(end_fault, session, rule))
        elif rule.action == "stop_heartbeats" and session.heartbeats is not None:
            session.heartbeats.is_suppressed = True
        elif rule.action in SLOWING:
            if rule.is_on_input:
                session.input_delay = session.input_delay or InputDelay(session)
            else:
                session.outbox.delay = session.outbox.delay or OutputDelay(session)
            self._follow_slowing(rule)
        elif rule.action == "black_hole":
            session.enter_black_hole()

    def end(self, rule: Rule) -> None:
        """End the effect of a rule; a connection in a black hole ends with a reset socket."""
        if rule not in self.active:
            return
        session = self._session
        self.active = tuple(other for other in self.active if other is not rule)
        rule.release(session)
        if rule.action == "block":
            session.blocking.update()
        elif rule.action == "stop_heartbeats" and session.heartbeats is not None:
            session.heartbeats.is_suppressed = any(other.action == rule.action for other in self.active)
        elif rule.action in SLOWING:
            self._follow_slowing(rule)
        elif rule.action == "slow_close":
            self._end_wait_for_close()
        elif rule.action == "black_hole":
            self.resets_socket, session.cause = True, session.cause or CAUSE
            session.leave_black_hole()

    def _follow_slowing(self, rule: Rule) -> None:
        """Follow the rules that slow the direction of a rule, which has just begun or ended."""
        rules = [one for one in self.active if one.action in SLOWING and one.is_on_input is rule.is_on_input]
        delay = self._session.input_delay if rule.is_on_input else self._session.outbox.delay
        if delay is not None:
            delay.follow(rules)

    def delays_close(self, answer: Callable[[], None]) -> bool:
        """Return whether a rule has connection.close answered later; `answer` does that."""
        session = self._session
        rule = next((one for one in reversed(self.active) if one.action == "slow_close"), None)
        if rule is None:
            return False
        self._answer_close = answer
        end_ms = session.broker.now + rule.delay_ms
        rule.affected[session] = session.broker.timers.at(end_ms, partial(end_fault, session, rule))
        return True

    def _end_wait_for_close(self) -> None:
        answer, self._answer_close = self._answer_close, None
        if answer is not None and self._session.state is CLOSING:
            answer()

    def release(self) -> None:
        """Have all rules forget the session: its socket is gone."""
        for rule in self.active:
            rule.release(self._session)

    @property
    def blocking_reason(self) -> str | None:
        """Reason that the client is given by the first rule that blocks it; None if none does."""
        return next((rule.text or "low on memory" for rule in self.active if rule.action == "block"), None)


def end_fault(session: Session, rule: Rule, now: int) -> None:
    """End the effect of a rule whose time is over."""
    session.broker.now = now
    session.faults.end(rule)


def channel_error(rule: Rule) -> ChannelError:
    """Return an error that closes a channel with the rule's code and text."""
    name, _, explanation = rule.text.partition(" - ")
    error: ChannelError = type("ChannelFault", (ChannelError,), {"code": rule.code, "name": name})(explanation)
    return error


def connection_error(rule: Rule) -> ConnectionError_:
    """Return an error that closes a connection with the rule's code and text."""
    name, _, explanation = rule.text.partition(" - ")
    error: ConnectionError_ = type("ConnectionFault", (ConnectionError_,), {"code": rule.code, "name": name})(
        explanation
    )
    return error
