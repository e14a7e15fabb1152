"""The log of connections, in RabbitMQ's words, which tools search for.

A function whose level is not logged does almost nothing. A name that a client has chosen cannot begin a line of its
own, and no text quotes octets of a frame, which may contain a secret.
Source: rabbit_reader.erl of RabbitMQ 4 (`log_connection_exception`, `log_hard_error`), rabbit_channel.erl.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.connection_states import AWAITING_HEADER, CONNECTED, OPENING, TUNING
from amqp_broker.amqp.errors import AMQPError, ConnectionForced, LoginRefused, NotAllowed
from amqp_broker.amqp.fields import printable
from amqp_broker.amqp.methods import METHODS, name_of

if TYPE_CHECKING:
    from amqp_broker.session.session import Session

logger = logging.getLogger("amqp_broker.connection")
channel_logger = logging.getLogger("amqp_broker.channel")

# Causes of an end without a close.
LOST: Final = "client unexpectedly closed TCP connection"
FATAL_FRAME: Final = "fatal_frame_error"
# Causes of an end before the handshake: these texts contain nothing else.
_CHECK_PORT: Final = "Ensure the client is connecting to the correct port."
HTTP_CLIENT: Final = f"HTTP GET request detected on AMQP port. {_CHECK_PORT}"
TLS_CLIENT: Final = f"TLS client detected on non-TLS AMQP port. {_CHECK_PORT}"
_NO_AMQP: Final = "client did not start with AMQP protocol header: "
# First bytes of a TLS handshake.
_TLS_HANDSHAKE: Final = b"\x16\x03"

# Octets of frames, and of a login, that texts quote.
_OCTETS: Final = re.compile(r"<<[\d,]+(?:>>|\.\.\.)?")
_RESPONSE: Final = re.compile(r"<<.*>>")


def accepted(session: Session, level: int = logging.INFO) -> None:
    """Log a connection whose client has sent something. RabbitMQ logs nothing of port scans."""
    if logger.isEnabledFor(level):
        logger.log(level, "accepting AMQP connection %s", session.name, extra=_pid(session))


def named(session: Session) -> None:
    """Log the name that the client gives itself in its properties, if it does."""
    if (name := session.given_name) and logger.isEnabledFor(logging.INFO):
        logger.info("connection %s has a client-provided name: %s", session.name, printable(name), extra=_pid(session))


def granted(session: Session) -> None:
    """Log that the client has opened its vhost."""
    if logger.isEnabledFor(logging.INFO):
        logger.info(
            "connection %s: user '%s' authenticated and granted access to vhost '%s'",
            *(_name(session), _user(session), _vhost(session)),
            extra=_pid(session),
        )


def login_refused(session: Session, reason: str) -> None:
    """Log why a login is refused. The client learns only that it is."""
    logger.error(
        "Error on AMQP connection %s (%s, state: starting):\n%s login refused: %s",
        *(pid(session), _name(session), session.mechanism, printable(reason)),
        extra=_pid(session),
    )


def failed(session: Session, number: int, error: AMQPError, method_id: int) -> None:
    """Log an error that closes the connection, and happened on channel `number`."""
    if isinstance(error, LoginRefused):
        return  # `login_refused` has logged it.
    # A close by an administrator, or by a broker that stops, is not an error.
    level = logging.INFO if isinstance(error, ConnectionForced) else logging.ERROR
    if not logger.isEnabledFor(level):
        return
    who, user = (pid(session), _name(session)), _user(session)
    parts: tuple[str | int, ...]
    if session.state is OPENING and isinstance(error, NotAllowed):
        text, parts = "user: '%s', state: opening):\n%s", (user, _explanation(error))
    else:
        text = "vhost: '%s', user: '%s', state: %s), channel %d:\n operation %s caused a connection exception %s: %s"
        explanation = fields.erlang_string(_explanation(error))
        parts = (_vhost(session), user, session.state.text, number)
        parts += (_operation(method_id), error.name.lower(), explanation)
    logger.log(level, f"Error on AMQP connection %s (%s, {text}", *who, *parts, extra=_pid(session))


def channel_failed(session: Session, number: int, error: AMQPError, method_id: int) -> None:
    """Log an error that closes a channel."""
    if channel_logger.isEnabledFor(logging.ERROR):
        channel_logger.error(
            "Channel error on connection %s (%s, vhost: '%s', user: '%s'), channel %d:\n"
            "operation %s caused a channel exception %s: %s",
            *(pid(session), session.name, _vhost(session), _user(session), number),
            *(_operation(method_id), error.name.lower(), _explanation(error)),
            extra=_pid(session),
        )


def ended(session: Session) -> None:
    """Log the end of the connection: its last line."""
    cause = session.cause
    if session.state is CONNECTED:
        level = logging.DEBUG
    elif not cause:
        level = logging.INFO
    else:
        level = logging.WARNING if cause == LOST else logging.ERROR
    if not logger.isEnabledFor(level):
        return
    name, lasted = _name(session), duration(session.broker.now - session.connected_at_ms)
    who = f"vhost: '{_vhost(session)}', user: '{_user(session)}', " if session.user is not None else ""
    if not cause:
        text = f"({name}, {who}duration: '{lasted}')"
    elif cause in (HTTP_CLIENT, TLS_CLIENT) or cause.startswith(_NO_AMQP):
        text = f"{name} (duration: '{lasted}'):\n{cause}"
    else:
        text = f"{pid(session)} ({name}, {who if cause == LOST else ''}duration: '{lasted}'):\n{cause}"
    logger.log(level, "closing AMQP connection %s", text, extra=_pid(session))


def pid(session: Session) -> str:
    """Return the number of the connection in the form of an Erlang process."""
    return f"<0.{session.number}.0>"


def duration(ms: int) -> str:
    """Return a duration as `12ms`, `3s`, `2M, 3s`, `1H, 2M, 3s` or `4D, 1H, 2M, 3s`."""
    if ms < 1000:
        return f"{max(0, ms)}ms"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{days}D", f"{hours}H", f"{minutes}M", f"{seconds}s"]
    first = next(index for index, value in enumerate((days, hours, minutes, 1)) if value)
    return ", ".join(parts[first:])


# Causes


def of_header(header: bytes) -> str:
    """Return why a connection ends that begins with these eight octets."""
    if header.startswith(b"GET "):
        return HTTP_CLIENT
    if header.startswith(_TLS_HANDSHAKE):
        return TLS_CLIENT
    if header.startswith(wire.PROTOCOL_HEADER[:4]):
        return f"{{bad_version,{{{','.join(map(str, header[4:]))}}}}}"
    return _NO_AMQP + fields.erlang_term(header)


def of_handshake(session: Session, error: AMQPError, method_id: int) -> str:
    """Return why a connection ends before its client can be sent a reason."""
    if isinstance(error, LoginRefused):
        return ""  # `login_refused` has logged it.
    if session.state in (TUNING, OPENING) and isinstance(error, NotAllowed):
        return f"failed to negotiate connection parameters: {_explanation(error)}"
    text = fields.erlang_string(_RESPONSE.sub("<<...>>", _explanation(error)))
    operation = _operation(method_id)
    return f"{{handshake_error,{session.state},0,{{amqp_error,{error.name.lower()},{text},'{operation}'}}}}"


def of_timeout(session: Session) -> str:
    """Return why a connection ends whose handshake takes too long."""
    return f"{{handshake_timeout,{'handshake' if session.state is AWAITING_HEADER else 'frame_header'}}}"


def of_many(session: Session) -> str:
    """Return why a connection ends for one that has just come."""
    return "too many connections have not logged in, and this was silent for longest"


# Parts


def _pid(session: Session) -> dict[str, str]:
    return {"pid": pid(session)}


def _name(session: Session) -> str:
    given = session.given_name
    return f"{session.name} - {printable(given)}" if given else session.name


def _user(session: Session) -> str:
    return printable(session.user.name) if session.user is not None else "none"


def _vhost(session: Session) -> str:
    return printable(session.vhost.name) if session.vhost is not None else "none"


def _explanation(error: AMQPError) -> str:
    return _OCTETS.sub("<<...>>", printable(str(error)))


def _operation(method_id: int) -> str:
    """Return a method's name as `basic.recover_async`, or `none` if no method has caused the error."""
    kind = METHODS.get(method_id)
    return name_of(kind).replace("-", "_") if kind is not None else "none"
