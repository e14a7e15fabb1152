"""A message whose timestamp the broker has set."""

from __future__ import annotations

from amqp_broker.amqp.message import Message, SpecialMessage, with_property_list


class StampedMessage(SpecialMessage):
    """A message with a timestamp from the broker, which streams do not keep.

    RabbitMQ loses it as it converts the message to AMQP 1.0. `stream_list` is the property list without it.
    """

    __slots__ = ("stream_list",)

    stream_list: bytes

    @classmethod
    def with_list(cls, message: Message, stream_list: bytes) -> StampedMessage:
        """Return a copy of a message, with its property list in streams."""
        stamped = cls.of(message)
        stamped.stream_list = stream_list
        return stamped

    def for_streams(self) -> Message:
        """Return the message as a stream keeps it."""
        message = SpecialMessage.of(self)
        message.content = with_property_list(self.content, self.stream_list)
        return message


def special_copy(message: Message) -> SpecialMessage:
    """Return a copy of a message that can carry more, with all that the message carries."""
    if isinstance(message, StampedMessage):
        return StampedMessage.with_list(message, message.stream_list)
    return SpecialMessage.of(message)
