"""A connection's session: bytes come in, the broker acts, bytes wait in the outbox.

The shell calls `receive` with every read and `connection_lost` once. It flushes every session that shows up in the
`dirty` list (`outbox.take`), and closes the socket of one that has `ENDED` when it has been flushed. It calls `pause`
and `resume` as the socket fills and empties. Nothing here raises, whatever a client sends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pamqp import base, commands

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.connection_states import (
    BLACK_HOLE,
    CLOSING,
    CONNECTED,
    ENDED,
    OPENING,
    RUNNING,
    Event,
    State,
    after_event,
    after_method,
)
from amqp_broker.amqp.errors import (
    AMQPError,
    ChannelError,
    ConnectionError_,
    ConnectionForced,
    Disconnect,
    InternalError,
    LoginRefused,
    NegotiationFailed,
    UnreadableFrame,
)
from amqp_broker.amqp.methods import encode_method
from amqp_broker.amqp.property_shapes import PropertyShapes
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.client_connection import ClientConnection, ConsumerTimeout
from amqp_broker.broker.durability.journal import JournalBroken
from amqp_broker.broker.lab.connection_faults import BlackHoled, ConnectionFaults
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.lab.input_delay import InputDelay
from amqp_broker.broker.queues.consumer import Consumer
from amqp_broker.broker.routing.route import Route
from amqp_broker.broker.scheduling.portions import WORK_MAX, Steps
from amqp_broker.broker.scheduling.timers import Timer
from amqp_broker.session.channel import remote_checks
from amqp_broker.session.channel.channel import Channel
from amqp_broker.session.channel.leaving_consumers import ending, withdraw
from amqp_broker.session.connection import connection_log
from amqp_broker.session.connection.ack_timeouts import AckTimeouts
from amqp_broker.session.connection.blocking import Blocking
from amqp_broker.session.connection.commit_gate import CommitGate
from amqp_broker.session.connection.heartbeats import Heartbeats
from amqp_broker.session.wire.outbox import Outbox
from amqp_broker.session.wire.reader import FrameReader

logger = logging.getLogger("amqp_broker.session")

# Time for which a client that does not speak AMQP, or cannot log in, waits for the socket to close (RabbitMQ's
# SILENT_CLOSE_DELAY).
SILENCE_MS: Final = 3000
# Time that a client has to send connection.close-ok (CLOSING_TIMEOUT).
CLOSE_OK_TIMEOUT_MS: Final = 30_000
# Time that a client has to close its socket after close-ok; a shorter heartbeat shortens it.
END_TIMEOUT_MS: Final = 30_000


class Session(ClientConnection[Channel]):
    """One client's connection, from its protocol header to its end.

    Its parts: the `reader` acts on what arrives, the `outbox` keeps what leaves, the `gate` holds confirms and replies
    until the journal has committed, `faults` is what rules do to it, and `blocking` has the reasons for which it is not
    read. `state` says how far the connection has come; the flags beside it do not depend on the state.
    """

    def __init__(
        self,
        broker: Broker,
        dirty: list[Session],
        peer_host: str,
        peer_port: int,
        host: str,
        port: int,
        now: int,
    ) -> None:
        super().__init__(peer_host, peer_port, host, port, now)
        self.broker = broker
        broker.now = now
        self.state: State = CONNECTED
        # Numbers of channels whose close the client has not answered yet.
        self.closing_channels: set[int] = set()
        self.routes: dict[bytes, Route] = {}
        self.shapes = PropertyShapes(broker.profile.normalizes_properties)
        self.outbox = Outbox(self, dirty)
        self.gate = CommitGate(broker, self.outbox)
        self.faults = ConnectionFaults(self)
        self.blocking = Blocking(self)
        self.reader = FrameReader(self)
        # The reader's own method, so that a read costs no call more; a fault that delays input puts its own here.
        self.receive = self.reader.receive
        self.input_delay: InputDelay | None = None
        # Too much of the client's input is on its way over a slow link; the socket is not read.
        self.is_link_full = False
        # The broker's: the end of each read looks at it.
        self.freed_consumers: list[Consumer] = broker.freed_consumers
        # The number of the connection in the log.
        self.number = next(broker.connection_numbers)
        # The socket is full: consumers of this connection get nothing.
        self.is_backpressured = False
        # A method is done in steps; nothing after it is read.
        self.is_working = False
        # Its first steps are done in the read that asks for it.
        self._is_beginning = False
        self.ack_timeouts: AckTimeouts | None = None
        self.heartbeats: Heartbeats | None = None
        # Larger frames are not needed before the login.
        self.frame_max = broker.settings.initial_frame_max
        self.channel_max = broker.settings.channel_max
        self.heartbeat_s = 0
        self.mechanism = ""
        # Answers of remote backends, and the check to repeat with the next one.
        self.answers = remote_checks.NO_ANSWERS
        self.retry: remote_checks.Retry | None = None
        # User of a connection from inside this process, which does not log in.
        self.internal_user: User | None = None
        # User name of a SASL mechanism that takes more than one step.
        self.login_name = b""
        self.deadline = self._after(
            broker.settings.handshake_timeout_ms, lambda now: self._give_up(connection_log.of_timeout)
        )
        broker.awaiting_login.add(self.number, broker.real_now(), lambda: self._give_up(connection_log.of_many))

    # Output

    def send(self, number: int, method: base.Frame) -> None:
        """Put a method into the outbox; one of class connection also changes the connection's state."""
        if number == 0:
            self.state = after_method(self.state, method)
        self.outbox.append(wire.method_frame(number, encode_method(method)))

    # Delivery and backpressure

    def pause(self) -> None:
        """Deliver nothing until `resume`: the socket is full."""
        self.is_backpressured = True
        for channel in self.channels.values():
            channel.suspend_consumers()
            for consumer in channel.consumers.values():
                consumer.queue.backpressured.add(consumer)

    def resume(self, now: int) -> None:
        """Deliver again: the socket takes more."""
        self.broker.now = now
        if self.state.ignores_input:
            return
        self.is_backpressured = False
        for channel in self.channels.values():
            for consumer in channel.consumers.values():
                consumer.queue.backpressured.discard(consumer)
        for channel in list(self.channels.values()):
            channel.resume_consumers()

    def find_routes(self) -> None:
        """Use the cached routes of the vhost.

        During an alarm there are none: the reader looks at the alarms only for a route that it does not know.
        """
        assert self.vhost is not None
        assert self.user is not None
        self.routes = {} if self.broker.alarms else self.vhost.route_cache.of(remote_checks.routes_key(self))

    def follow_alarms(self) -> None:
        if self.state is RUNNING:
            self.find_routes()
            self.blocking.follow_alarms()

    # Work in steps

    def work(self, steps: Steps[None], method_id: int = 0, number: int = 0) -> None:
        """Do the steps of a method of channel `number`. If they take more portions, nothing is read until the last."""
        # Already now, so that `spend` leaves it to the end of this work to read on.
        self.is_working = self._is_beginning = is_done = True
        try:
            is_done = self.broker.do_in_portions(self._guarded(steps, method_id, number), self._on_worked)
        finally:
            self.is_working, self._is_beginning = not is_done, False
        self.blocking.update()
        self.spend(0)

    def _guarded(self, steps: Steps[None], method_id: int, number: int) -> Steps[None]:
        """Do steps. An error in the first portion is the reader's; a later one is handled here in the same way."""
        try:
            yield from steps
        except Exception as error:
            if self._is_beginning:
                raise
            self.end_by(error, method_id, number)

    def spend(self, work: int, next_work: int = 0) -> None:
        """Count work of this read that its size does not tell. If `next_work` exceeds `WORK_MAX`, others are served.

        The reader looks at `is_working` after everything that may spend.
        """
        broker = self.broker
        broker.work += work
        if broker.work + next_work >= WORK_MAX and not self.is_working and self.state is RUNNING:
            self.is_working = True
            self.blocking.update()
            broker.undrained.append(self.read_on)

    def _on_worked(self) -> None:
        if self.is_working:
            # Later steps may have changed definitions.
            self.gate.hold(self.broker.journal.last_used_batch)
            self.read_on()

    def read_on(self) -> None:
        """Act on what was held while the session worked or waited."""
        if not self.is_working or (self.retry is not None and not self.retry.is_due):
            return  # the connection has ended meanwhile, or waits for an answer
        self.is_working = False
        remote_checks.end_wait(self)
        self.reader.end_hold()
        self.reader.receive(b"", self.broker.now)

    @property
    def status(self) -> str:
        # Work in steps, a rest for the sake of others, and a slow link are no blocks.
        is_blocked = self.blocking.is_blocked and not self.is_working and not self.is_link_full
        if self.state not in (RUNNING, BLACK_HOLE) or not (self.broker.alarms or is_blocked):
            return str(self.state)
        return "blocked" if is_blocked else "blocking"

    # Time

    def start_ack_timeouts(self) -> None:
        """Watch from now on that deliveries are settled in time."""
        self.ack_timeouts = AckTimeouts(self)

    def before_advance(self, now: int) -> None:
        if self.ack_timeouts is not None:
            self.ack_timeouts.mark(now)

    def next_timeouts(self) -> Steps[list[ConsumerTimeout]]:
        return [] if self.ack_timeouts is None else (yield from self.ack_timeouts.coming())

    def _after(self, delay_ms: int, callback: Callable[[int], None]) -> Timer:
        """Call back after a time that really passes: advancing the broker's clock does not shorten it."""
        return self.broker.real_timers.at(self.broker.real_now() + delay_ms, callback)

    # Faults

    def can_show(self, rule: Rule) -> bool:
        return self.faults.can_show(rule)

    def apply_fault(self, rule: Rule, channel: int | None = None) -> None:
        self.faults.apply(rule, channel)

    def end_fault(self, rule: Rule) -> None:
        self.faults.end(rule)

    def enter_black_hole(self) -> None:
        """Read, write and deliver nothing more until `leave_black_hole`."""
        self.pause()
        self.state = after_event(self.state, Event.SWALLOW)
        self.blocking.block()
        self.outbox.hold_forever()

    def leave_black_hole(self) -> None:
        """End the session; what it has not written is lost."""
        self.outbox.discard()
        self.drop()
        self.outbox.request_flush()

    # Begin and end

    def accept(self) -> None:
        """Log the connection: its first bytes have arrived, or the handshake took too long."""
        self.state = after_event(self.state, Event.ACCEPT)
        connection_log.accepted(self)

    def connection_lost(self, now: int) -> None:
        """The socket is gone, for whatever reason."""
        self.broker.now = now
        if self.input_delay is not None and self.input_delay.delays_end():
            return
        if self.state is not CLOSING and not self.state.ignores_input:
            self.cause = connection_log.LOST
        self.drop()
        self.faults.release()

    def release(self) -> None:
        """Free a session without a login, whose socket is closed, before Python collects garbage."""
        if self.user is None:
            self.reader.release()
            self.outbox.release()
            self.faults.forget_session()
            self.blocking.release()

    def force_close(self, explanation: str, now: int) -> None:
        self.broker.now = now
        if self.state in (RUNNING, BLACK_HOLE):
            self.fail(ConnectionForced(explanation), 0)
        elif self.state is not CLOSING:
            self.drop()

    def drop(self) -> None:
        """End the session: the socket closes as soon as the outbox is written."""
        self.reader.discard()
        if self.input_delay is not None:
            self.input_delay.discard()
        if self.state is not ENDED:
            # The log says less of a client that has sent nothing.
            connection_log.ended(self)
            self.state = after_event(self.state, Event.END)
            if not self.outbox.pieces:
                self.outbox.request_flush()
        if self.heartbeats is not None:
            self.heartbeats.stop()
        self.teardown()
        self.broker.awaiting_login.remove(self.number)

    def teardown(self) -> None:
        """Give everything back to the broker: consumers, unacked messages, exclusive queues."""
        self.deadline.cancel()
        if self.ack_timeouts is not None:
            self.ack_timeouts.stop()
        self.blocking.end()
        self.is_working, self.retry = False, None
        self.reader.end_hold()
        remote_checks.forget_routes(self)
        channels = list(self.channels.values())
        self.channels.clear()
        self.gate.discard()
        self.broker.do_in_portions(ending(self, channels, withdraw(channels)))

    def close_channel(self, number: int, error: ChannelError, method_id: int = 0) -> None:
        """Close a channel with an error."""
        channel = self.channels.pop(number, None)
        if channel is None:
            # A soft error outside of a channel closes the connection.
            self.fail(InternalError(str(error)), method_id, number)
            return
        connection_log.channel_failed(self, number, error, method_id)
        self.broker.incidents.on_channel_failed(self, error, method_id)
        self.gate.confirm_before_close(channel)
        channel.close()
        self.closing_channels.add(number)
        close = commands.Channel.Close(error.code, error.reply_text, method_id >> 16, method_id & 0xFFFF)
        self.send(number, close)

    def end_by(self, error: Exception, method_id: int, number: int) -> None:
        """End what an error of a method on channel `number` ends: the channel, or the connection."""
        if isinstance(error, ChannelError):
            self.close_channel(number, error, method_id)
        elif isinstance(error, ConnectionError_):
            self.fail(error, method_id, number)
        elif isinstance(error, Disconnect):
            self.cause = str(error)
            self.drop()
        elif isinstance(error, JournalBroken):
            logger.error("%s: internal error: %s", self.name, error)
            self.fail(InternalError(""), 0, number)
        elif not isinstance(error, BlackHoled):
            logger.error("%s: internal error", self.name, exc_info=error)
            self.fail(InternalError(""), 0, number)

    def close(self, error: ConnectionError_) -> None:
        """Close the connection with an error that no method of the client has caused."""
        self.fail(error, 0)

    def fail(self, error: AMQPError, method_id: int, number: int = 0) -> None:
        """Close the connection with an error that happened on channel `number`."""
        if self.state is CLOSING or (self.state.ignores_input and self.state is not BLACK_HOLE):
            self.drop()
            return
        is_logged_in = self.state in (OPENING, RUNNING, BLACK_HOLE) and not isinstance(error, NegotiationFailed)
        if not is_logged_in and not (
            isinstance(error, LoginRefused) and self.has_capability("authentication_failure_close")
        ):
            # RabbitMQ sends no reason before the login, and closes the socket late, against guessing.
            self.cause = connection_log.of_handshake(self, error, method_id)
            self._go_silent()
            return
        connection_log.failed(self, number, error, method_id)
        if not isinstance(error, ConnectionForced):
            self.error = error.reply_text
        if self.state is OPENING and self.user is not None:
            self.broker.incidents.on_refused(self, self.user.name, error.reply_text)
        self.gate.confirm_all()
        self.teardown()
        if self.state is BLACK_HOLE:
            self._go_silent()
            return
        close = commands.Connection.Close(error.code, error.reply_text, method_id >> 16, method_id & 0xFFFF)
        self.state = after_event(self.state, Event.ERROR)
        self.outbox.append(wire.method_frame(0, encode_method(close)))
        if isinstance(error, UnreadableFrame):
            self.cause = connection_log.FATAL_FRAME
            self._go_silent()
        else:
            # A client that cannot log in has no more time than one that has not got so far.
            wait_ms = SILENCE_MS if isinstance(error, LoginRefused) else CLOSE_OK_TIMEOUT_MS
            self.deadline = self._after(wait_ms, self._on_time_over)

    def _go_silent(self) -> None:
        """Read nothing more, and close the socket after a delay."""
        self.state = after_event(self.state, Event.SILENCE)
        self.deadline.cancel()
        self.deadline = self._after(SILENCE_MS, self._on_time_over)

    def await_end(self) -> None:
        """Leave it to the client to close the socket (RabbitMQ's rabbit_reader, `close_connection`).

        If the broker closed it first, what the client still writes would be answered with a reset, which could cost the
        client the close-ok.
        """
        self.reader.discard()
        if self.heartbeats is not None:
            self.heartbeats.stop()
        wait_ms = min(self.heartbeat_s * 1000 or END_TIMEOUT_MS, END_TIMEOUT_MS)
        # `teardown` cancels this timer.
        self.deadline = self._after(wait_ms, self._on_time_over)

    def _on_time_over(self, now: int) -> None:
        if self.state is not ENDED:
            self.drop()

    def _give_up(self, cause: Callable[[Session], str]) -> None:
        if self.state is CONNECTED:
            self.accept()
        self.cause = cause(self)
        self.drop()
