"""Messages that the store cannot read any more."""

from __future__ import annotations

from typing import ClassVar

from amqp_broker.amqp.message import CONTENT, Address, Message, content_frames


class DamagedMessage(Message):
    """The place of a message whose record is damaged. Its queue gives it up as soon as it comes to the head."""

    __slots__ = ()
    is_damaged: ClassVar[bool] = True

    @classmethod
    def of(cls, body_bytes: int) -> DamagedMessage:
        """Return a placeholder without a body, which counts as having one of this size."""
        header = CONTENT.pack(60, 0, body_bytes) + b"\0\0"
        # The store counts it among the messages that survive a restart.
        return cls(Address("", ""), content_frames(1, header, b"", 131072), 1, True)
