"""From protocol header to connection.open-ok, and the other methods of class connection (spec 1.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from pamqp import base, commands

from amqp_broker import __version__
from amqp_broker.amqp import fields
from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.errors import (
    BadCredentials,
    ChannelNumberError,
    CommandInvalid,
    LoginRefused,
    NegotiationFailed,
    NotAllowed,
    SyntaxError_,
)
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.admin.limits import MAX_CHANNELS
from amqp_broker.broker.backends.questions import Answers, Unanswered
from amqp_broker.session.channel import remote_checks
from amqp_broker.session.connection import connection_log
from amqp_broker.session.connection.heartbeats import Heartbeats

if TYPE_CHECKING:
    from amqp_broker.broker.clients.peer import Tls
    from amqp_broker.session.session import Session

PRODUCT: Final = "RabbitMQ"
CHANNEL_NUMBER_MAX: Final = 65_535
LOCALES: Final = "en_US"
EXTERNAL: Final = "EXTERNAL"
CHALLENGE: Final = "Please tell me your password"
CHALLENGE_ANSWER: Final = b"My password is "
CAPABILITIES: Final = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "direct_reply_to": True,
}


@cache
def server_properties(version: str, cluster_name: str) -> fields.Table:
    """Return the properties of connection.start, keys sorted. Clients choose code paths by product and version."""
    import platform

    return {
        "capabilities": CAPABILITIES,
        "cluster_name": cluster_name,
        "copyright": "Copyright (c) the authors of amqp-broker",
        "information": f"Licensed under Apache-2.0. amqp-broker {__version__}",
        "platform": f"{platform.python_implementation()} {platform.python_version()}",
        "product": PRODUCT,
        "version": version,
    }


def on_protocol_header(session: Session, header: bytes) -> None:
    if header not in (wire.PROTOCOL_HEADER, wire.PROTOCOL_HEADER_0_9):
        # The version to speak (spec 1.4.2.2). RabbitMQ 4 offers AMQP 1.0 here, which amqp-broker does not have.
        session.outbox.append(wire.PROTOCOL_HEADER)
        session.cause = connection_log.of_header(header)
        session.drop()
        return
    session.broker.awaiting_login.note_sign(session.number, session.broker.real_now())
    properties = server_properties(session.broker.profile.version, session.broker.cluster_name)
    session.send(0, commands.Connection.Start(0, 9, properties, " ".join(_mechanisms(session)), LOCALES))


def _mechanisms(session: Session) -> list[str]:
    """Return the mechanisms for this connection. EXTERNAL is offered over TLS alone.

    A client without a certificate is offered EXTERNAL as well: it learns that it is refused, instead of finding no
    mechanism (rabbit_auth_mechanism_ssl.erl).
    """
    configured = session.broker.settings.auth_mechanisms.split()
    return configured if session.tls is not None else [name for name in configured if name != EXTERNAL]


def start_ok(session: Session, method: commands.Connection.StartOk) -> None:
    session.client_properties = method.client_properties
    session.mechanism = method.mechanism
    connection_log.named(session)
    if session.internal_user is not None:
        _welcome(session, session.internal_user)
        return
    if method.mechanism not in _mechanisms(session):
        raise CommandInvalid(f"unknown authentication mechanism '{method.mechanism}'")
    response: Any = method.response  # bytes: our decoder leaves a longstr as it is
    settings = session.broker.settings
    if method.mechanism == "PLAIN":
        login(session, *_plain_credentials(response))
    elif method.mechanism == "AMQPLAIN":
        login(session, *_amqplain_credentials(response))
    elif method.mechanism == "RABBIT-CR-DEMO":
        session.login_name = response
        session.send(0, commands.Connection.Secure(CHALLENGE))
    elif method.mechanism == EXTERNAL and session.tls is not None:
        _login_by_certificate(session, session.tls)
    else:
        login(session, settings.anonymous_login_user.encode(), settings.anonymous_login_pass.encode())


def secure_ok(session: Session, method: commands.Connection.SecureOk) -> None:
    """Act on the answer to a challenge, which only RabbitMQ's demonstration mechanism sends."""
    response: Any = method.response
    if not response.startswith(CHALLENGE_ANSWER):
        raise SyntaxError_(f"response {fields.erlang_term(response)} invalid")
    login(session, session.login_name, response.removeprefix(CHALLENGE_ANSWER))


def login(session: Session, name: bytes, password: bytes) -> None:
    """Check the credentials and send connection.tune. Raise LoginRefused."""
    user_name = name.decode("utf-8", "surrogateescape")
    if session.broker.faults.on_login and session.faults.on_login(user_name):
        raise _refused(session, user_name, "a fault refuses the login")
    check = session.broker.logins.check
    _begin_login(session, user_name, lambda: check(user_name, password, session.peer_host, answers=session.answers))


def _begin_login(session: Session, name: str, check: Callable[[], User]) -> None:
    """Log in the user whom `check` returns, after the answers of remote backends. Raise LoginRefused."""
    if session.broker.logins.chain:
        session.answers = Answers()
    _try_login(session, name, check)


def _try_login(session: Session, name: str, check: Callable[[], User]) -> None:
    try:
        user = check()
    except Unanswered as question:
        remote_checks.ask(session, question, partial(_try_login, session, name, check))
        return
    except BadCredentials as refusal:
        raise _refused(session, name, str(refusal)) from None
    # The password is among the questions.
    session.answers.forget()
    _welcome(session, user)


def _login_by_certificate(session: Session, tls: Tls) -> None:
    """Log in by the certificate that the TLS handshake has verified (mechanism EXTERNAL)."""
    if not tls.peer_cert_subject and tls.login_name is None:
        raise _refused(session, "", "connection peer presented no TLS (x.509) certificate")
    if tls.login_name is None:
        raise _refused(session, "", "no name found")
    logins, name = session.broker.logins, tls.login_name
    _begin_login(session, name, lambda: logins.check_certificate(name, session.peer_host, answers=session.answers))


def _welcome(session: Session, user: User) -> None:
    settings = session.broker.settings
    session.user = user
    session.broker.awaiting_login.remove(session.number)
    session.broker.events.authenticated(session, user.name, session.mechanism)
    session.send(0, commands.Connection.Tune(settings.channel_max, settings.frame_max_offered, settings.heartbeat_s))


def _refused(session: Session, name: str, reason: str) -> LoginRefused:
    """Report a refused login with its reason to log and events. The client learns only that it is refused."""
    session.broker.events.authenticated(session, name, session.mechanism, reason)
    connection_log.login_refused(session, reason)
    session.broker.incidents.on_refused(session, name, reason)
    return LoginRefused(
        f"Login was refused using authentication mechanism {session.mechanism}. For details see the broker logfile.",
        method_id=0,
    )


def _plain_credentials(response: bytes) -> tuple[bytes, bytes]:
    """Return name and password of a PLAIN response (RFC 4616), whose authorization identity must be empty."""
    parts = response.split(b"\0")
    if len(parts) != 3 or parts[0]:
        raise SyntaxError_(f"response {fields.erlang_term(response)} invalid")
    return parts[1], parts[2]


def _amqplain_credentials(response: bytes) -> tuple[bytes, bytes]:
    """Return name and password of a field table without its length, as clients of AMQP 0-8 send it."""
    try:
        table, _ = fields.decode_table(len(response).to_bytes(4, "big") + response)
    except fields.MalformedTable:
        table = {}
    login_, password = table.get("LOGIN"), table.get("PASSWORD")
    if not isinstance(login_, str) or not isinstance(password, str):
        raise SyntaxError_("AMQPLAIN auth info is missing LOGIN or PASSWORD field")
    return login_.encode("utf-8", "surrogateescape"), password.encode("utf-8", "surrogateescape")


def tune_ok(session: Session, method: commands.Connection.TuneOk) -> None:
    settings = session.broker.settings
    _check_tuned("frame_max", method.frame_max, settings.profile.frame_max_lowest, settings.frame_max_offered)
    _check_tuned("channel_max", method.channel_max, 1, settings.channel_max)
    session.channel_max = method.channel_max or CHANNEL_NUMBER_MAX
    session.frame_max = method.frame_max or settings.frame_max
    # Unlike the limits, the heartbeat is the client's to decide; 0 disables it.
    session.heartbeat_s = method.heartbeat
    if method.heartbeat:
        session.heartbeats = Heartbeats(session, method.heartbeat)


def _check_tuned(name: str, value: int, lowest: int, highest: int) -> None:
    if highest and (value == 0 or value > highest):
        shown = "0 (no limit)" if value == 0 and name == "channel_max" else str(value)
        problem = f"{shown} is higher than the maximum allowed value ({highest})"
    elif 0 < value < lowest:
        problem = f"{value} is lower than the minimum allowed value ({lowest})"
    else:
        return
    # For the log, in which RabbitMQ names the method that it asked with, not the answer.
    raise NegotiationFailed(f"negotiated {name} = {problem}", method_id=commands.Connection.Tune.index)


def open_(session: Session, method: commands.Connection.Open) -> None:
    assert session.user is not None, "a vhost is opened only after a login"
    try:
        session.broker.admit(session, session.user, method.virtual_host)
    except Unanswered as question:
        remote_checks.ask(session, question, partial(open_, session, method), method.index)
        return
    session.find_routes()
    session.deadline.cancel()
    session.start_ack_timeouts()
    session.send(0, commands.Connection.OpenOk())
    connection_log.granted(session)
    session.broker.events.connection_created(
        session,
        auth_mechanism=session.mechanism,
        channel_max=session.channel_max,
        frame_max=session.frame_max,
        timeout=session.heartbeat_s,
    )
    if session.broker.faults.on_open:
        session.faults.on_open()


def update_secret(session: Session, method: commands.Connection.UpdateSecret) -> None:
    session.send(0, commands.Connection.UpdateSecretOk())


def close(session: Session, method: commands.Connection.Close) -> None:
    # Exclusive queues are deleted before the client receives close-ok.
    session.teardown()
    if not session.faults.active or not session.faults.delays_close(partial(_answer_close, session)):
        _answer_close(session)


def _answer_close(session: Session) -> None:
    session.send(0, commands.Connection.CloseOk())
    session.await_end()


def unimplemented(method: base.Frame) -> Exception:
    """Return the error for a method that no server, or no channel, expects."""
    if isinstance(method, commands.Channel.Open):
        return ChannelNumberError("second 'channel.open' seen")
    return CommandInvalid("unimplemented method")


def check_channel_limits(session: Session) -> None:
    """Raise NotAllowed if the connection, the node or the user has as many channels as allowed."""
    count = len(session.channels) + len(session.closing_channels)
    if count >= session.channel_max:
        raise NotAllowed(
            f"number of channels opened ({count}) has reached the negotiated channel_max ({session.channel_max})",
            method_id=0,
        )
    broker = session.broker
    node_limit = broker.settings.channel_max_per_node
    if node_limit is not None and sum(len(other.channels) for other in broker.connections) >= node_limit:
        raise NotAllowed(
            f"number of channels opened on node '{broker.node}' has reached the maximum allowed limit of {node_limit}",
            method_id=0,
        )
    user = session.user
    limit = user.limits[MAX_CHANNELS] if user is not None else None
    if user is not None and limit is not None:
        opened = sum(len(other.channels) for other in broker.connections if other.user is user)
        if opened >= limit:
            raise NotAllowed(
                f"number of channels opened for user '{user.name}' has reached "
                f"the maximum allowed user limit of {limit}",
                method_id=0,
            )
