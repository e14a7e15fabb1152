"""A connection's session: bytes come in, the broker acts, bytes wait in the outbox.

The shell's part of the contract: call `receive` with every read, `connection_lost` once; flush every session that
shows up in the `dirty` list (`take_output`), and close the socket of one that `is_over` when it has been flushed;
call `pause` and `resume` as the socket fills and empties. Nothing here raises, whatever a peer sends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pamqp import base, commands

from amqp_broker.broker.access import User
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.connection import Connection
from amqp_broker.broker.consumer import Consumer
from amqp_broker.broker.definitions import Definition
from amqp_broker.broker.events import INTERNAL_USER
from amqp_broker.broker.fault_rules import Rule
from amqp_broker.broker.route import Route
from amqp_broker.broker.timers import Timer
from amqp_broker.errors import (
    AMQPError,
    ChannelError,
    ChannelNumberError,
    ConnectionError_,
    ConnectionForced,
    Disconnect,
    InternalError,
    LoginRefused,
    UnreadableFrame,
)
from amqp_broker.message import (
    FRAME,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    HEADER_START_BYTES,
    Traits,
)
from amqp_broker.protocol import wire
from amqp_broker.protocol.connection import (
    AWAITING_HEADER,
    CLOSED,
    CLOSING,
    OPENING,
    RUNNING,
    advance,
)
from amqp_broker.protocol.content import ContentAssembly
from amqp_broker.protocol.methods import decode_method, encode_method
from amqp_broker.protocol.wire import (
    ACK_FRAME_BYTES,
    ACK_HEAD_BYTES,
    ACK_REST,
    FRAME_OVERHEAD,
    FRAME_SIZE_FUDGE,
    HEADER_FRAME,
    NACK,
    SETTLE,
)
from amqp_broker.session import connection_log, faults, handshake
from amqp_broker.session.ack_timeouts import AckTimeouts
from amqp_broker.session.channel import Channel
from amqp_broker.session.heartbeats import Heartbeats
from amqp_broker.session.methods import CHANNEL_METHODS, CONNECTION_METHODS
from amqp_broker.session.publishing import publish, read_traits

logger = logging.getLogger("amqp_broker.session")

# How long a peer that does not speak AMQP, or cannot log in, waits for the socket to close (SILENT_CLOSE_DELAY).
SILENCE_MS: Final = 3000
# How long we wait for connection.close-ok (CLOSING_TIMEOUT).
CLOSE_OK_TIMEOUT_MS: Final = 30_000
# How long a peer whose close has been answered may take to close its socket; a shorter heartbeat shortens it.
END_TIMEOUT_MS: Final = 30_000

# The most that `take_rest` gives out.
REST_BYTES_MAX: Final = 256 * 1024

_PUBLISH_START: Final = wire.METHOD_ID.pack(wire.PUBLISH)
_ACK_START: Final = wire.METHOD_ID.pack(wire.ACK)
_NACK_START: Final = wire.METHOD_ID.pack(wire.NACK)
_REJECT_START: Final = wire.METHOD_ID.pack(wire.REJECT)
# A content header without any properties: its frame, and the payload of that.
_HEADER_FRAME_BYTES_MIN: Final = HEADER_START_BYTES + 2 + 1
_HEADER_BYTES_MIN: Final = _HEADER_FRAME_BYTES_MIN - FRAME_OVERHEAD


class Session(Connection):
    """One client's connection, from its protocol header to its end."""

    # What faults do to it: rules that last, output that is on its way, and whether its socket ends without a FIN.
    lasting_faults: tuple[Rule, ...] = ()
    lag: faults.Lag | None = None
    is_reset = False

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
        self.state = AWAITING_HEADER
        self.channels: dict[int, Channel] = {}
        # Numbers of channels that we closed and whose close-ok is still to come.
        self.closing_channels: set[int] = set()
        self.routes: dict[bytes, Route] = {}
        self.traits: dict[bytes, Traits] = {}
        # Channels that owe their publisher confirms at the end of this read.
        self.confirming: list[Channel] = []
        # Channels whose confirms wait for a commit of the journal, and the batch that all output waits for.
        self.awaiting_commit: dict[Channel, None] = {}
        self.held_until = 0
        # What the journal was told before this read.
        self.told_before = 0
        # Consumers that may take again since one of their messages was settled in this read.
        self.freed: list[Consumer] = []
        self.dirty = dirty
        self.outbox: list[bytes] = []
        self.is_over = False
        # For the log: its number, whether the client has said anything, and why it ends if not as it should.
        self.number = next(broker.connection_numbers)
        self.is_accepted = False
        self.cause = ""
        self.is_paused = False
        # Whether a message was published here yet; who has not is not blocked by an alarm.
        self.has_published = False
        # While this is set the shell does not read the socket.
        self.is_blocked = False
        self.ack_timeouts: AckTimeouts | None = None
        self.heartbeats: Heartbeats | None = None
        # Set where nothing that the peer says can matter any more.
        self.is_deaf = False
        # Before a login nobody needs larger frames.
        self.frame_max = broker.config.initial_frame_max
        self.channel_max = broker.config.channel_max
        self.heartbeat_s = 0
        self.mechanism = ""
        # Who is at the other end of a connection from inside of the process: nobody needs to log in there.
        self.insider: User | None = None
        # Who answers a challenge (SASL mechanisms of more than one step).
        self.login_name = b""
        self.has_received = False
        # How often output was taken to be written.
        self.flush_count = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._needed_bytes = len(wire.PROTOCOL_HEADER)
        self.handshake_timer = self._after(broker.config.handshake_timeout_ms, self._on_handshake_timeout)

    # Bytes in

    def receive(self, data: bytes, now: int) -> None:
        """Act on what one read of the socket brought."""
        self.broker.now = now
        self.has_received = True
        self.received_bytes += len(data)
        self.received_count += 1
        if self.is_deaf:
            return
        if self._pending:
            self._pending.append(data)
            self._pending_bytes += len(data)
            if self._pending_bytes < self._needed_bytes:
                return
            data = b"".join(self._pending)
            self._pending.clear()
        journal = self.broker.journal
        self.told_before, definitions = journal.told, journal.definitions
        at = self._run(data)
        if self.freed:
            self._resume_freed()
        if self.confirming:
            self.note_all_publishes()
        if journal.definitions != definitions:
            self.hold(journal.batch)
        if at < len(data) and not self.is_deaf:
            rest = data[at:]
            self._pending.append(rest)
            self._pending_bytes = len(rest)

    def take_rest(self) -> bytes:
        """What is left of the last read, for a shell that puts the next read right behind it; b"" if it stays here."""
        if len(self._pending) != 1 or self._pending_bytes > REST_BYTES_MAX:
            return b""
        # It comes again, with the next read.
        self.received_bytes -= self._pending_bytes
        self._pending_bytes = 0
        return self._pending.pop()

    def _run(self, data: bytes) -> int:
        """Act on all whole frames in `data`; returns the offset behind them.

        This is the hot path: a publish whose frames are all in `data` is taken out whole, an ack is decoded by hand.
        """
        if self.state is AWAITING_HEADER:
            if not self.is_accepted:
                connection_log.accepted(self)
            if len(data) < len(wire.PROTOCOL_HEADER):
                return 0
            handshake.on_protocol_header(self, data[:8])
            at = 8
        else:
            at = 0
        end = len(data)
        unpack_frame, unpack_header, unpack_settle = FRAME.unpack_from, HEADER_FRAME.unpack_from, SETTLE.unpack
        unpack_ack_rest = ACK_REST.unpack_from
        channels = self.channels
        kind = number = 0
        payload = b""
        while not self.is_deaf:
            try:
                routes, traits_cache = self.routes, self.traits
                payload_max = self.frame_max - FRAME_OVERHEAD + FRAME_SIZE_FUDGE
                # A larger body takes the slow way, where it is checked and refused.
                body_max = min(payload_max, self.broker.config.message_bytes_max)
                while end - at >= FRAME_OVERHEAD:
                    kind, number, size = unpack_frame(data, at)
                    if size > payload_max:
                        raise wire.frame_too_large(kind, size, self.frame_max)
                    start, stop = at, at + 7 + size
                    if stop >= end:
                        self._needed_bytes = size + FRAME_OVERHEAD
                        return at
                    payload = data[at + 7 : stop]
                    if data[stop] != FRAME_END:
                        raise wire.bad_frame_end(kind, payload, data[stop])
                    at = stop + 1
                    channel = channels.get(number)
                    if kind != FRAME_METHOD or channel is None or channel.assembly is not None:
                        self._on_frame(kind, number, payload)
                        if number == 0:
                            break  # limits and routes may be others now, or this the end
                        continue
                    route = routes.get(payload)
                    if route is None and not payload.startswith(_PUBLISH_START):
                        if size == SETTLE.size and payload.startswith(_ACK_START):
                            _, tag, bits = unpack_settle(payload)
                            channel.ack(tag, bits & 1 == 1)
                            # Acks come in crowds, whose frames all begin alike.
                            head = data[start : start + ACK_HEAD_BYTES]
                            while end - at >= ACK_FRAME_BYTES and data.startswith(head, at):
                                tag, bits, last = unpack_ack_rest(data, at + ACK_HEAD_BYTES)
                                if last != FRAME_END:
                                    break
                                at += ACK_FRAME_BYTES
                                channel.ack(tag, bits & 1 == 1)
                        else:
                            self._on_method(channel, payload)
                        continue
                    # The content follows; if it is not all here yet, the whole publish waits for the next read.
                    if end - at < _HEADER_FRAME_BYTES_MIN:
                        if end - at < FRAME.size or end - at < FRAME_OVERHEAD + unpack_frame(data, at)[2]:
                            self._needed_bytes = end - start + 1
                            return start
                        channel.assembly = ContentAssembly(payload)
                        continue
                    kind2, number2, size2, class_id, weight, body_bytes = unpack_header(data, at)
                    body = at + FRAME_OVERHEAD + size2
                    if (
                        kind2 == FRAME_HEADER
                        and number2 == number
                        and class_id == 60
                        and weight == 0
                        and _HEADER_BYTES_MIN <= size2 <= payload_max
                        and 0 < body_bytes <= body_max
                    ):
                        tail = body + FRAME_OVERHEAD + body_bytes
                        if tail > end and body + FRAME.size > end:
                            # No more than the start of the next frame: it may be another channel's, and want an answer.
                            self._needed_bytes = body + FRAME.size - start
                            return start
                        kind3, number3, size3 = unpack_frame(data, body)
                        if kind3 == FRAME_BODY and number3 == number and size3 == body_bytes:
                            if tail > end:
                                self._needed_bytes = tail - start
                                return start
                            if data[tail - 1] == FRAME_END == data[body - 1]:
                                property_list = data[at + HEADER_START_BYTES : body - 1]
                                content = data[at:tail]
                                at = tail
                                traits = traits_cache.get(property_list)
                                if traits is None:
                                    traits = read_traits(channel, property_list)
                                if (
                                    route is not None
                                    and route.is_plain
                                    and traits.is_plain
                                    and channel.transaction is None
                                ):
                                    channel.publish(route, content, traits)
                                else:
                                    publish(channel, payload, traits, content, body_bytes)
                                continue
                    channel.assembly = ContentAssembly(payload)
                else:
                    self._needed_bytes = FRAME_OVERHEAD
                    return at
            except ChannelError as error:
                self.close_channel(number, error, _offender(error, kind, payload))
            except ConnectionError_ as error:
                self._close(error, _offender(error, kind, payload), number)
            except faults.Silenced:
                # Nothing more is heard, and nobody learns why.
                pass
            except Disconnect as reason:
                self.cause = str(reason)
                self.drop()
            except Exception:
                logger.exception("%s: internal error", self.name)
                self._close(InternalError(""), 0, number)
        return end

    def _on_frame(self, kind: int, number: int, payload: bytes) -> None:
        """Act on a frame that is not on the hot path."""
        if self.state is CLOSING:
            if number == 0 and kind == FRAME_METHOD:
                self._on_method_while_closing(payload)
        elif number == 0:
            self._on_channel_0(kind, payload)
        elif self.state is not RUNNING or kind == FRAME_HEARTBEAT:
            raise wire.unexpected_frame(kind, payload)
        elif kind not in (FRAME_METHOD, FRAME_HEADER, FRAME_BODY):
            raise wire.unknown_frame(kind, payload)
        elif number in self.closing_channels:
            self._on_closing_channel(kind, number, payload)
        elif (channel := self.channels.get(number)) is None:
            self._on_unopened_channel(kind, number, payload)
        elif channel.assembly is not None:
            self._on_content(channel, channel.assembly, kind, payload)
        else:
            assert kind != FRAME_METHOD, "a method for an open channel that awaits no content is for _on_method"
            raise wire.unexpected_content()

    def _on_method(self, channel: Channel, payload: bytes) -> None:
        """Act on a method for an open channel that is not on the hot path."""
        if payload.startswith((_NACK_START, _REJECT_START)) and len(payload) == SETTLE.size:
            method_id, tag, bits = SETTLE.unpack(payload)
            if method_id == NACK:
                channel.reject(tag, multiple=bool(bits & 1), requeue=bool(bits & 2))
            else:
                channel.reject(tag, multiple=False, requeue=bool(bits & 1), has_failed=True)
            return
        method = decode_method(payload)
        handler = CHANNEL_METHODS.get(type(method))
        if handler is None:
            raise handshake.unimplemented(method)
        events = self.broker.events
        events.actor = self.user.name if self.user is not None else INTERNAL_USER
        try:
            handler(channel, method)
        finally:
            events.actor = INTERNAL_USER

    def _on_content(self, channel: Channel, assembly: ContentAssembly, kind: int, payload: bytes) -> None:
        if assembly.add(kind, payload, self.broker.config.message_bytes_max):
            channel.assembly = None
            traits = read_traits(channel, assembly.property_list)
            content = assembly.content(channel.number, self.broker.config.frame_max)
            publish(channel, assembly.method, traits, content, assembly.body_bytes)

    def _on_channel_0(self, kind: int, payload: bytes) -> None:
        if kind == FRAME_HEARTBEAT and not payload:
            return
        if kind != FRAME_METHOD:
            known = kind in (FRAME_HEADER, FRAME_BODY)
            raise wire.unexpected_frame(kind, payload) if known else wire.unknown_frame(kind, payload)
        method = decode_method(payload)
        handler = CONNECTION_METHODS.get(type(method))
        if handler is None:
            raise ChannelNumberError(f"unexpected method in connection state {self.state}")
        self.state = advance(self.state, method)
        handler(self, method)

    def _on_method_while_closing(self, payload: bytes) -> None:
        method = decode_method(payload)
        if isinstance(method, commands.Connection.CloseOk):
            self.state = CLOSED
            self.drop()
        elif isinstance(method, commands.Connection.Close):
            self.send(0, commands.Connection.CloseOk())
            self.drop()

    def _on_closing_channel(self, kind: int, number: int, payload: bytes) -> None:
        """After channel.close all is ignored but its like: the peer sent it before it knew (spec 1.5.2.5)."""
        if kind == FRAME_METHOD:
            method = decode_method(payload)
            if isinstance(method, commands.Channel.CloseOk):
                self.closing_channels.discard(number)
            elif isinstance(method, commands.Channel.Close):
                self.send(number, commands.Channel.CloseOk())
            elif isinstance(method, commands.Channel.Open):
                raise handshake.unimplemented(method)

    def _on_unopened_channel(self, kind: int, number: int, payload: bytes) -> None:
        if kind != FRAME_METHOD:
            raise wire.unexpected_content()
        method = decode_method(payload)
        if not isinstance(method, commands.Channel.Open):
            raise ChannelNumberError("expected 'channel.open'")
        handshake.check_channel_limits(self)
        self.channels[number] = Channel(self, number)
        self.broker.counters.channels_created += 1
        self.broker.events.channel_created(self, number)
        ok = commands.Channel.OpenOk()
        ok.channel_id = ""  # RabbitMQ says nothing here, pamqp "0"
        self.send(number, ok)

    # Bytes out

    def send(self, number: int, method: base.Frame) -> None:
        """Put a method into the outbox; one of class connection also moves the connection's state."""
        if number == 0:
            self.state = advance(self.state, method)
        self.send_bytes(wire.method_frame(number, encode_method(method)))

    def send_bytes(self, *pieces: bytes) -> None:
        """Put frames into the outbox."""
        if not self.outbox:
            self.dirty.append(self)
        self.outbox += pieces

    def take_output(self) -> list[bytes]:
        """What is to be written now, in pieces; the outbox is empty afterwards."""
        output, self.outbox = self.outbox, []
        self.flush_count += 1
        return output if self.lag is None else self.lag.pass_on(output)

    def note_all_publishes(self) -> None:
        channels, self.confirming = self.confirming, []
        for channel in channels:
            self.note_publishes(channel)

    def note_publishes(self, channel: Channel) -> None:
        """The read is over, or the channel: what it published is confirmed as soon as it is safe."""
        channel.note_publishes(self.broker.journal.told != self.told_before)
        if channel.uncommitted:
            self.awaiting_commit[channel] = None
            self.broker.awaiting_commit[self] = None

    def hold(self, batch: int) -> None:
        """Say nothing more until this batch of the journal is safe: replies must not promise what a crash forgets."""
        if batch > self.held_until and batch > self.broker.journal.committed:
            self.held_until = batch
            self.broker.awaiting_commit[self] = None

    def hold_for(self, definition: Definition) -> None:
        """Hold a reply that says that this object is there, though it may have been another who declared it."""
        self.hold(self.broker.journal.unsafe_in(definition[0]))

    def hold_for_work(self) -> None:
        """Hold a reply that says that messages are there, or are not there any more."""
        self.hold(self.broker.journal.last_told)

    def on_committed(self, committed: int) -> bool:
        for channel in list(self.awaiting_commit):
            channel.confirm_committed(committed)
            if not channel.uncommitted:
                del self.awaiting_commit[channel]
        if self.held_until and self.held_until <= committed:
            self.held_until = 0
            self.dirty.append(self)
        return bool(self.awaiting_commit or self.held_until)

    def _resume_freed(self) -> None:
        """Deliver once for all that was settled in this read, not once for each."""
        consumers, self.freed = self.freed, []
        for consumer in consumers:
            if not consumer.is_taking and (consumer.can_take() or consumer.queue.is_quiescing):
                consumer.queue.resume(consumer)

    # Backpressure

    def pause(self) -> None:
        """The socket is full: nothing is delivered here until `resume`."""
        self.is_paused = True
        for channel in self.channels.values():
            channel.suspend_consumers()
            for consumer in channel.consumers.values():
                consumer.queue.clogged.add(consumer)

    def resume(self, now: int) -> None:
        """The socket takes more."""
        self.broker.now = now
        if self.is_deaf:
            return
        self.is_paused = False
        for channel in self.channels.values():
            for consumer in channel.consumers.values():
                consumer.queue.clogged.discard(consumer)
        for channel in list(self.channels.values()):
            channel.resume_consumers()

    def follow_alarms(self) -> None:
        by_fault = faults.blocked_by(self)
        is_blocked = (self.has_published and bool(self.broker.alarms)) or by_fault is not None
        if is_blocked is self.is_blocked or self.state is not RUNNING or self.is_deaf:
            return
        self.is_blocked = is_blocked
        low = " & ".join(sorted(self.broker.alarms, reverse=True))
        if is_blocked:
            self.last_blocked_ms = self.broker.now
            self.last_blocked_by = low or "fault"
        self.dirty.append(self)
        if handshake.has_capability(self, "connection.blocked"):
            reason = f"low on {low}" if by_fault is None else by_fault
            self.send(0, commands.Connection.Blocked(reason) if is_blocked else commands.Connection.Unblocked())

    @property
    def status(self) -> str:
        if self.state is not RUNNING or not (self.broker.alarms or self.is_blocked):
            return self.state
        return "blocked" if self.is_blocked else "blocking"

    def start_ack_timeouts(self) -> None:
        """The connection is open: deliveries will have to be settled in time."""
        self.ack_timeouts = AckTimeouts(self)

    def before_advance(self, now: int) -> None:
        if self.ack_timeouts is not None:
            self.ack_timeouts.mark(now)

    # Faults

    def suffer(self, rule: Rule, channel: int | None = None) -> None:
        faults.suffer(self, rule, channel)

    def recover(self, rule: Rule) -> None:
        faults.recover(self, rule)

    # Ends

    def connection_lost(self, now: int) -> None:
        """The socket is gone, for whatever reason."""
        self.broker.now = now
        if self.state not in (CLOSING, CLOSED) and not self.is_deaf:
            self.cause = connection_log.LOST
        self.drop()
        for rule in self.lasting_faults:
            rule.leave(self)

    def force_close(self, explanation: str, now: int) -> None:
        self.broker.now = now
        if self.state is RUNNING:
            self._close(ConnectionForced(explanation), 0)
        elif self.state is not CLOSING:
            self.drop()

    def drop(self) -> None:
        """Nothing more is said or heard; the socket closes as soon as the outbox is written."""
        self.is_deaf = True
        self._pending.clear()
        if not self.is_over:
            self.is_over = True
            connection_log.ended(self)
            if not self.outbox:
                self.dirty.append(self)
        if self.heartbeats is not None:
            self.heartbeats.stop()
        self.teardown()

    def teardown(self) -> None:
        """Give everything back to the broker: consumers, unacked messages, exclusive queues."""
        self.handshake_timer.cancel()
        if self.ack_timeouts is not None:
            self.ack_timeouts.stop()
        # Its close-ok must be read.
        self.is_blocked = False
        channels = list(self.channels.values())
        self.channels.clear()
        self.confirming.clear()
        self.awaiting_commit.clear()
        for channel in channels:
            channel.remove_consumers()
        for channel in channels:
            channel.give_back()
        for channel in channels:
            channel.end()
        self.broker.dismiss(self)

    def close_channel(self, number: int, error: ChannelError, method_id: int = 0) -> None:
        """Close a channel with an error."""
        channel = self.channels.pop(number, None)
        if channel is None:
            # A soft error outside a channel cannot be told on one.
            self._close(InternalError(str(error)), method_id, number)
            return
        connection_log.channel_failed(self, number, error, method_id)
        if channel in self.confirming:
            self.confirming.remove(channel)
            self.note_publishes(channel)
        channel.close()
        self.closing_channels.add(number)
        close = commands.Channel.Close(error.code, error.reply_text, method_id >> 16, method_id & 0xFFFF)
        self.send(number, close)

    def close(self, error: ConnectionError_) -> None:
        """Close the connection with an error that no method of the peer's has caused."""
        self._close(error, 0)

    def _close(self, error: AMQPError, method_id: int, number: int = 0) -> None:
        """Close the connection with an error, which happened on channel `number`."""
        if self.state is CLOSING:
            self.drop()
            return
        if self.state not in (OPENING, RUNNING) and not (
            isinstance(error, LoginRefused) and handshake.has_capability(self, "authentication_failure_close")
        ):
            # Whoever has not got so far learns nothing, and slowly (RabbitMQ does so against guessing).
            self.cause = connection_log.of_handshake(self, error, method_id)
            self.go_silent()
            return
        connection_log.failed(self, number, error, method_id)
        self.note_all_publishes()
        self.teardown()
        close = commands.Connection.Close(error.code, error.reply_text, method_id >> 16, method_id & 0xFFFF)
        self.state = CLOSING
        self.send_bytes(wire.method_frame(0, encode_method(close)))
        if isinstance(error, UnreadableFrame):
            self.cause = connection_log.FATAL_FRAME
            self.go_silent()
        else:
            # Who cannot log in is not waited for any longer than others that have not got so far.
            wait_ms = SILENCE_MS if isinstance(error, LoginRefused) else CLOSE_OK_TIMEOUT_MS
            self._after(wait_ms, self._on_silence_over)

    def go_silent(self) -> None:
        """Hear nothing more, and close the socket a while later."""
        self.is_deaf = True
        self.handshake_timer.cancel()
        self._after(SILENCE_MS, self._on_silence_over)

    def await_end(self) -> None:
        """Leave it to the peer to close the socket (RabbitMQ's rabbit_reader, `close_connection`).

        What it writes until it has read the close-ok is not answered by a reset, which could cost it the close-ok.
        """
        self.is_deaf = True
        self._pending.clear()
        if self.heartbeats is not None:
            self.heartbeats.stop()
        wait_ms = min(self.heartbeat_s * 1000 or END_TIMEOUT_MS, END_TIMEOUT_MS)
        # Whatever ends the session stops this timer.
        self.handshake_timer = self._after(wait_ms, self._on_silence_over)

    def _after(self, delay_ms: int, callback: Callable[[int], None]) -> Timer:
        """Call back when so much time has really passed: nobody lives through what a clock is advanced by."""
        return self.broker.real_timers.at(self.broker.real_now() + delay_ms, callback)

    def _on_silence_over(self, now: int) -> None:
        if not self.is_over:
            self.drop()

    def _on_handshake_timeout(self, now: int) -> None:
        if not self.is_accepted:
            connection_log.accepted(self)
        self.cause = connection_log.of_timeout(self)
        self.drop()


def _offender(error: AMQPError, kind: int, payload: bytes) -> int:
    """The id of the method that an error is about: content frames belong to a basic.publish."""
    if error.method_id is not None:
        return error.method_id
    return int.from_bytes(payload[:4], "big") if kind == FRAME_METHOD else wire.PUBLISH
