"""Reply codes as exceptions, in the two families of AMQP, and the errors that have no reply code.

    AMQPError
      ChannelError       soft: closes the channel (spec 1.2, "soft-error")
      ConnectionError_   hard: closes the connection (spec 1.2, "hard-error")
    Disconnect           the socket is dropped; no frame tells the peer why
    InvalidParameter, DoesNotExist
                         for administrators; no AMQP client causes one

The core and the session raise, and `FrameReader._run` turns the error into a close. A timer or a fault has no frame to
answer: it passes its error to `Session.close_channel` or `Session.close`. The code is on the class, the explanation is
RabbitMQ's text.
"""

from __future__ import annotations

from typing import ClassVar

# A reply-text is a shortstr: 255 octets at most.
REPLY_TEXT_BYTES_MAX = 255


class AMQPError(Exception):
    """An error with a reply code of AMQP 0-9-1. Only subclasses of the two families are raised."""

    code: ClassVar[int]
    name: ClassVar[str]
    # Set where ` - ` follows the name even if the explanation is empty.
    has_explanation: ClassVar[bool] = False

    def __init__(self, explanation: str, *, method_id: int | None = None) -> None:
        """`method_id` is the offender's class and method id, if not those of the current method; 0 means no method."""
        super().__init__(explanation)
        self.method_id = method_id

    @property
    def reply_text(self) -> str:
        """`NAME - explanation`, cut to the length of a shortstr; without an explanation, the name alone."""
        text = (f"{self.name} - {self}" if str(self) or self.has_explanation else self.name).encode("utf-8", "replace")
        if len(text) > REPLY_TEXT_BYTES_MAX:
            text = text[: REPLY_TEXT_BYTES_MAX - 3] + b"..."
        return text.decode("utf-8", "ignore")


class ChannelError(AMQPError):
    """Closes the channel on which it happened."""


class ConnectionError_(AMQPError):
    """Closes the connection on which it happened."""


class AccessRefused(ChannelError):
    code, name = 403, "ACCESS_REFUSED"


class NotFound(ChannelError):
    code, name = 404, "NOT_FOUND"


class ResourceLocked(ChannelError):
    code, name = 405, "RESOURCE_LOCKED"


class PreconditionFailed(ChannelError):
    code, name = 406, "PRECONDITION_FAILED"


class ProtectedFromDeletion(PreconditionFailed):
    """A vhost that must not be deleted. Management answers 412."""


class ConnectionForced(ConnectionError_):
    code, name = 320, "CONNECTION_FORCED"
    has_explanation = True


class LoginRefused(ConnectionError_):
    """403 on the connection: the one hard error that shares its code with a soft one."""

    code, name = 403, "ACCESS_REFUSED"


class FrameError(ConnectionError_):
    code, name = 501, "FRAME_ERROR"


class UnreadableFrame(FrameError):
    """The start of the next frame is unknown, so nothing that follows can be read."""


class SyntaxError_(ConnectionError_):
    code, name = 502, "SYNTAX_ERROR"


class CommandInvalid(ConnectionError_):
    code, name = 503, "COMMAND_INVALID"


class ChannelNumberError(ConnectionError_):
    """504: a method that the channel, or the state of the connection, does not expect."""

    code, name = 504, "CHANNEL_ERROR"


class UnexpectedFrame(ConnectionError_):
    code, name = 505, "UNEXPECTED_FRAME"


class ResourceError(ConnectionError_):
    code, name = 506, "RESOURCE_ERROR"


class NotAllowed(ConnectionError_):
    code, name = 530, "NOT_ALLOWED"


class NegotiationFailed(NotAllowed):
    """Limits of connection.tune-ok that are out of range. RabbitMQ sends no reason, and closes the socket late."""


class NotImplemented_(ConnectionError_):
    code, name = 540, "NOT_IMPLEMENTED"


class InternalError(ConnectionError_):
    code, name = 541, "INTERNAL_ERROR"


class Disconnect(Exception):
    """Drop the socket without a closing frame, as RabbitMQ does with peers that do not speak AMQP."""


class InvalidParameter(ValueError):
    """An invalid policy, limit, permission or name. Management answers 400 with its text."""


class DoesNotExist(LookupError):
    """The object to change or remove does not exist. Management answers 404."""


class BadCredentials(Exception):
    """A refused login. The text is for the log and for events; the client learns only that it is refused.

    `is_remote` says that the user may log in from this machine only, which RabbitMQ's HTTP API reports.
    """

    def __init__(self, text: str, *, is_remote: bool = False) -> None:
        super().__init__(text)
        self.is_remote = is_remote
