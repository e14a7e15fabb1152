"""The reader: it cuts the bytes of each read into frames and acts on them. `FrameReader._run` is the hot path."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.connection_states import CONNECTED, Input
from amqp_broker.amqp.content import ContentAssembly
from amqp_broker.amqp.errors import AMQPError
from amqp_broker.amqp.frames import (
    ACK_FRAME_BYTES,
    ACK_HEAD_BYTES,
    FRAME_OVERHEAD,
    FRAME_SIZE_FUDGE,
    FRAME_START_BYTES,
    SETTLE_BYTES,
    unpack_ack_rest,
    unpack_frame,
    unpack_header_frame,
    unpack_settle,
)
from amqp_broker.amqp.message import FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_METHOD, HEADER_START_BYTES
from amqp_broker.session.connection import handshake
from amqp_broker.session.methods.basic_publish import NO_PROPERTIES, publish, read_traits
from amqp_broker.session.wire.dispatch import on_frame, on_method

if TYPE_CHECKING:
    from amqp_broker.session.session import Session

logger = logging.getLogger("amqp_broker.session")

# Most bytes of an incomplete frame that `take_partial_frame` gives out.
PARTIAL_FRAME_BYTES_MAX: Final = 256 * 1024

# `_needed_bytes` while reading is on hold: more than can ever be pending.
HELD_BYTES: Final = 1 << 62

FRAMES: Final = Input.FRAMES
NOTHING: Final = Input.NOTHING

_PUBLISH_START: Final = wire.METHOD_ID.pack(wire.PUBLISH)
_ACK_START: Final = wire.METHOD_ID.pack(wire.ACK)
# A content header without any properties: its frame, and the payload of that.
_HEADER_FRAME_BYTES_MIN: Final = HEADER_START_BYTES + 2 + 1
_HEADER_BYTES_MIN: Final = _HEADER_FRAME_BYTES_MIN - FRAME_OVERHEAD


class FrameReader:
    """Reads for one session. It keeps the start of a frame whose rest has not arrived."""

    __slots__ = ("_needed_bytes", "_pending", "_pending_bytes", "_session")
    # For the compiler.
    __deletable__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        # A frame is not complete before this many bytes are pending.
        self._needed_bytes = len(wire.PROTOCOL_HEADER)

    @property
    def pending_bytes(self) -> int:
        """Number of bytes that wait for the rest of their frame."""
        return self._pending_bytes if self._pending else 0

    def receive(self, data: bytes, now: int) -> None:
        """Act on one read of the socket."""
        session = self._session
        broker = session.broker
        broker.now = now
        session.received_bytes += len(data)
        session.received_count += 1
        reads = session.state.reads
        if reads is NOTHING:
            return
        if self._pending:
            if data:
                self._pending.append(data)
            self._pending_bytes += len(data)
            if self._pending_bytes < self._needed_bytes:
                return
            data = b"".join(self._pending)
            self._pending.clear()
        journal, gate = broker.journal, session.gate
        gate.journal_bytes_before, definitions = journal.journal_bytes, journal.definitions
        if session.retry is not None and self._retry(session):
            at = 0
        else:
            at = self._run(session, data, 0) if reads is FRAMES else self._read_header(session, data)
        if session.freed_consumers:
            broker.resume_freed_consumers()
        if gate.confirming:
            gate.confirm_all()
        if journal.definitions != definitions:
            gate.hold(journal.batch)
        if (at < len(data) or session.is_working) and not session.state.ignores_input:
            rest = data[at:]
            self._pending.append(rest)
            self._pending_bytes = len(rest)

    def take_partial_frame(self) -> bytes:
        """Return the incomplete frame of the last read, or b"" if it stays here. The shell puts it before the next."""
        if (
            len(self._pending) != 1
            or self._pending_bytes > PARTIAL_FRAME_BYTES_MAX
            or self._session.blocking.is_by_alarm
            or self._session.is_working
            or self._session.input_delay is not None
        ):
            return b""
        # It is counted again with the next read.
        self._session.received_bytes -= self._pending_bytes
        self._pending_bytes = 0
        return self._pending.pop()

    def discard(self) -> None:
        """Forget the incomplete frame."""
        self._pending.clear()

    def release(self) -> None:
        """Forget the session, which has ended: nothing is read any more."""
        del self._session

    def end_hold(self) -> None:
        """Let the next read act on what was held."""
        self._needed_bytes = 0

    def _retry(self, session: Session) -> bool:
        """Repeat a check that has got an answer; return whether it waits for another one."""
        retry, session.retry = session.retry, None
        assert retry is not None
        try:
            retry.call()
        except Exception as error:
            own = error.method_id if isinstance(error, AMQPError) else None
            session.end_by(error, retry.method_id if own is None else own, retry.number)
        if session.is_working:
            self._needed_bytes = HELD_BYTES
        else:
            session.answers.forget_refusals()
        return session.is_working

    def _read_header(self, session: Session, data: bytes) -> int:
        """Act on the protocol header and what follows it; return the offset behind the last complete frame."""
        if session.state is CONNECTED:
            session.accept()
        if len(data) < len(wire.PROTOCOL_HEADER):
            return 0
        handshake.on_protocol_header(session, data[:8])
        return self._run(session, data, 8)

    def _run(self, session: Session, data: bytes, at: int) -> int:
        """Act on all complete frames in `data` from offset `at` on; return the offset behind the last of them.

        A publish whose frames are all in `data` is taken out as a whole, and acks are decoded by hand.
        """
        end = len(data)
        channels = session.channels
        kind = number = 0
        payload = b""
        while session.state.reads is FRAMES:
            try:
                routes = session.routes
                payload_max = session.frame_max - FRAME_OVERHEAD + FRAME_SIZE_FUDGE
                # `publish` checks and refuses a larger body.
                body_max = min(payload_max, session.broker.settings.message_bytes_max)
                # Of the last publish: the size of its frames, and of its content. `alike` is how its content begins, if
                # the one before it had the same size.
                last_step = content_bytes = body_bytes = alike_number = 0
                alike, traits, property_list = b"", NO_PROPERTIES, b""
                while end - at >= FRAME_OVERHEAD:
                    kind, number, size = unpack_frame(data, at)
                    if size > payload_max:
                        raise wire.frame_too_large(kind, size, session.frame_max)
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
                        on_frame(session, kind, number, payload)
                        if session.is_working:
                            self._needed_bytes = HELD_BYTES
                            return at
                        if number == 0:
                            break  # Limits, routes or the state may have changed.
                        continue
                    route = routes.get(payload)
                    if route is None and not payload.startswith(_PUBLISH_START):
                        if size == SETTLE_BYTES and payload.startswith(_ACK_START):
                            _, tag, bits = unpack_settle(payload)
                            channel.ack(tag, bits & 1 == 1)
                            # Acks often come in sequence, and their frames begin alike.
                            head = data[start : start + ACK_HEAD_BYTES]
                            while bits & 1 == 0 and end - at >= ACK_FRAME_BYTES and data.startswith(head, at):
                                tag, bits, last = unpack_ack_rest(data, at + ACK_HEAD_BYTES)
                                if last != FRAME_END:
                                    break
                                at += ACK_FRAME_BYTES
                                channel.ack(tag, bits & 1 == 1)
                        else:
                            on_method(channel, payload)
                        if session.is_working:
                            self._needed_bytes = HELD_BYTES
                            return at
                        continue
                    if route is None and session.broker.alarms:
                        session.blocking.block_by_alarm()
                        self._needed_bytes = HELD_BYTES
                        return start
                    # The content follows. If it is incomplete, the whole publish waits for the next read.
                    tail = 0
                    if number == alike_number and data.startswith(alike, at):
                        tail = at + content_bytes
                        if tail > end:
                            self._needed_bytes = tail - start
                            return start
                        if data[tail - 1] != FRAME_END:
                            tail = 0
                    elif end - at < _HEADER_FRAME_BYTES_MIN:
                        if end - at < FRAME_START_BYTES or end - at < FRAME_OVERHEAD + unpack_frame(data, at)[2]:
                            self._needed_bytes = end - start + 1
                            return start
                    else:
                        kind2, number2, size2, class_id, weight, body_bytes = unpack_header_frame(data, at)
                        body = at + FRAME_OVERHEAD + size2
                        if (
                            kind2 == FRAME_HEADER
                            and number2 == number
                            and class_id == 60
                            and weight == 0
                            and _HEADER_BYTES_MIN <= size2 <= payload_max
                            and 0 < body_bytes <= body_max
                        ):
                            stop = body + FRAME_OVERHEAD + body_bytes
                            if stop > end and body + FRAME_START_BYTES > end:
                                # Only the start of a frame: it may belong to another channel, and need an answer.
                                self._needed_bytes = body + FRAME_START_BYTES - start
                                return start
                            kind3, number3, size3 = unpack_frame(data, body)
                            if kind3 == FRAME_BODY and number3 == number and size3 == body_bytes:
                                if stop > end:
                                    self._needed_bytes = stop - start
                                    return start
                                if data[stop - 1] == FRAME_END == data[body - 1]:
                                    tail = stop
                                    found = data[at + HEADER_START_BYTES : body - 1]
                                    if found != property_list:
                                        property_list, traits = found, read_traits(channel, found)
                                    if tail - at == content_bytes:
                                        # Contents of one size often begin alike, also where the routing keys differ.
                                        alike, alike_number = data[at : body + FRAME_START_BYTES], number
                                    else:
                                        content_bytes, alike_number = tail - at, 0
                    if not tail:
                        channel.assembly = ContentAssembly(payload)
                        continue
                    content = data[at:tail]
                    head_bytes = at - start
                    at = tail
                    if route is None or not route.is_plain or not traits.is_plain or channel.transaction is not None:
                        publish(channel, payload, traits, content, body_bytes)
                        if session.is_working:
                            self._needed_bytes = HELD_BYTES
                            return at
                        continue
                    sorter = traits.sorter
                    channel.publish(route, content if sorter is None else sorter.sort(content), traits)
                    is_narrow = route.is_narrow
                    step = tail - start
                    if (
                        step == last_step
                        and number == alike_number
                        and data.startswith(payload, at + FRAME_START_BYTES)
                    ):
                        # Publishes often come in runs, whose frames are alike up to their bodies.
                        head = data[start : start + head_bytes] + alike
                        while (
                            end - at >= step
                            and data.startswith(head, at)
                            and data[at + step - 1] == FRAME_END
                            and routes.get(payload) is route
                            and (is_narrow or not session.is_working)
                        ):
                            at += step
                            content = data[at - content_bytes : at]
                            channel.publish(route, content if sorter is None else sorter.sort(content), traits)
                    if not is_narrow and session.is_working:
                        self._needed_bytes = HELD_BYTES
                        return at
                    last_step = step
                else:
                    self._needed_bytes = FRAME_OVERHEAD
                    return at
            except Exception as error:
                session.end_by(error, _offender(error, kind, payload), number)
        return end


def _offender(error: Exception, kind: int, payload: bytes) -> int:
    """Return the id of the method that an error is about: content frames belong to a basic.publish."""
    if isinstance(error, AMQPError) and error.method_id is not None:
        return error.method_id
    return int.from_bytes(payload[:4], "big") if kind == FRAME_METHOD else wire.PUBLISH
