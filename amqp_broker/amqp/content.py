"""Assembly of a message from its frames: method, header, then bodies (spec 4.2.6).

Only messages that arrive in several reads need this. Texts of errors are those of rabbit_command_assembler; every
error names basic.publish as its method.
"""

from __future__ import annotations

from amqp_broker.amqp.errors import FrameError, UnexpectedFrame
from amqp_broker.amqp.frames import BODY_BYTES_LIMIT, FRAME_OVERHEAD, PUBLISH
from amqp_broker.amqp.message import CONTENT, FRAME, FRAME_BODY, FRAME_END_BYTE, FRAME_HEADER, content_frames


class ContentAssembly:
    """The content that a basic.publish announced: complete when `add` returns True.

    `method` is the payload of the method frame. A body above the limit is read to its end, but not kept.
    """

    __slots__ = ("_bytes_left", "_pieces", "body_bytes", "header", "method")

    def __init__(self, method: bytes) -> None:
        self.method = method
        self.header = b""
        self.body_bytes = 0
        self._pieces: list[bytes] = []
        self._bytes_left = 0

    @property
    def property_list(self) -> bytes:
        """The header's property flags and properties."""
        return self.header[CONTENT.size :]

    def add(self, kind: int, payload: bytes, body_bytes_max: int) -> bool:
        """Add the next frame; return whether the content is complete. Raise FrameError and UnexpectedFrame."""
        if not self.header:
            self._add_header(kind, payload)
        elif kind != FRAME_BODY:
            raise UnexpectedFrame("expected content body, got non content body frame instead", method_id=PUBLISH)
        else:
            self._bytes_left -= len(payload)
            if self._bytes_left < 0:
                raise FrameError("content body frame exceeds remaining content size", method_id=PUBLISH)
            if payload and self.body_bytes <= body_bytes_max:
                self._pieces.append(payload)
        return self._bytes_left == 0

    def _add_header(self, kind: int, payload: bytes) -> None:
        if kind != FRAME_HEADER or len(payload) < CONTENT.size + 2 or payload[2:4] != b"\0\0":
            # RabbitMQ does not accept a content header with a weight.
            raise UnexpectedFrame(
                "expected content header for class 60, got non content header frame instead", method_id=PUBLISH
            )
        class_id, _, body_bytes = CONTENT.unpack_from(payload)
        if class_id != 60:
            raise UnexpectedFrame(
                f"expected content header for class 60, got one for class {class_id} instead", method_id=PUBLISH
            )
        if body_bytes > BODY_BYTES_LIMIT:
            raise FrameError(
                f"content body size {body_bytes} exceeds maximum allowed size {BODY_BYTES_LIMIT}", method_id=PUBLISH
            )
        self.header = payload
        self.body_bytes = self._bytes_left = body_bytes

    def content(self, channel: int, frame_max: int) -> bytes:
        """Return the content in frames of at most `frame_max` octets."""
        step = frame_max - FRAME_OVERHEAD
        pieces = self._pieces
        if any(len(piece) != step for piece in pieces[:-1]) or (pieces and len(pieces[-1]) > step):
            return content_frames(channel, self.header, b"".join(pieces), frame_max)
        frames = [FRAME.pack(FRAME_HEADER, channel, len(self.header)), self.header, FRAME_END_BYTE]
        for piece in pieces:
            frames += (FRAME.pack(FRAME_BODY, channel, len(piece)), piece, FRAME_END_BYTE)
        return b"".join(frames)
