"""Dispatch of frames that the reader does not handle itself, to the functions for their methods.

`CONNECTION_METHODS` and `CHANNEL_METHODS` list the methods that clients may send. Which of class connection are legal
in which state is in `amqp/connection_states.py`; a channel is open or does not exist. The reader recognizes
basic.publish and basic.ack itself; `on_method` decodes basic.nack and basic.reject by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pamqp import base, commands

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.connection_states import CLOSING, RUNNING, after_method
from amqp_broker.amqp.errors import ChannelNumberError, InternalError
from amqp_broker.amqp.frames import NACK, SETTLE_BYTES, unpack_settle
from amqp_broker.amqp.message import FRAME_BODY, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD
from amqp_broker.amqp.methods import AccessRequest, decode_method
from amqp_broker.broker.backends.questions import Unanswered
from amqp_broker.broker.lab.method_faults import before_method
from amqp_broker.broker.observe.events import INTERNAL_USER
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.session.channel import remote_checks
from amqp_broker.session.channel.channel import Channel
from amqp_broker.session.connection import handshake
from amqp_broker.session.methods import channel_methods, consuming, topology_methods, transactions
from amqp_broker.session.methods.basic_publish import publish, read_traits

if TYPE_CHECKING:
    from amqp_broker.amqp.content import ContentAssembly
    from amqp_broker.session.session import Session

# A handler of long work returns its steps.
Handler = Callable[[Any, Any], "Steps[None] | None"]

CONNECTION_METHODS: Final[dict[type[base.Frame], Handler]] = {
    commands.Connection.StartOk: handshake.start_ok,
    commands.Connection.SecureOk: handshake.secure_ok,
    commands.Connection.TuneOk: handshake.tune_ok,
    commands.Connection.Open: handshake.open_,
    commands.Connection.UpdateSecret: handshake.update_secret,
    commands.Connection.Close: handshake.close,
}

CHANNEL_METHODS: Final[dict[type[base.Frame], Handler]] = {
    AccessRequest: channel_methods.access_request,
    commands.Channel.Flow: channel_methods.flow,
    commands.Channel.Close: channel_methods.close,
    commands.Exchange.Declare: topology_methods.exchange_declare,
    commands.Exchange.Delete: topology_methods.exchange_delete,
    commands.Exchange.Bind: topology_methods.exchange_bind,
    commands.Exchange.Unbind: topology_methods.exchange_unbind,
    commands.Queue.Declare: topology_methods.queue_declare,
    commands.Queue.Bind: topology_methods.queue_bind,
    commands.Queue.Unbind: topology_methods.queue_unbind,
    commands.Queue.Purge: topology_methods.queue_purge,
    commands.Queue.Delete: topology_methods.queue_delete,
    commands.Basic.Qos: consuming.qos,
    commands.Basic.Consume: consuming.consume,
    commands.Basic.Cancel: consuming.cancel,
    commands.Basic.Get: consuming.get,
    commands.Basic.Recover: consuming.recover,
    commands.Basic.RecoverAsync: consuming.recover_async,
    commands.Confirm.Select: channel_methods.confirm_select,
    commands.Tx.Select: transactions.select,
    commands.Tx.Commit: transactions.commit,
    commands.Tx.Rollback: transactions.rollback,
}

# The work (`Session.spend`) of a method other than publish and settlements, and of a frame that is not a method.
METHOD_WORK: Final = 256
FRAME_WORK: Final = 8

_CLOSE_START: Final = wire.METHOD_ID.pack(commands.Channel.Close.index)
_SETTLE_STARTS: Final = (wire.METHOD_ID.pack(wire.NACK), wire.METHOD_ID.pack(wire.REJECT))


def on_frame(session: Session, kind: int, number: int, payload: bytes) -> None:
    """Act on a frame other than a method on an open channel that awaits no content."""
    session.spend(FRAME_WORK)
    if session.state is CLOSING:
        if number == 0 and kind == FRAME_METHOD:
            _on_method_while_closing(session, payload)
    elif number == 0:
        _on_channel_0(session, kind, payload)
    elif session.state is not RUNNING or kind == FRAME_HEARTBEAT:
        raise wire.unexpected_frame(kind, payload)
    elif kind not in (FRAME_METHOD, FRAME_HEADER, FRAME_BODY):
        raise wire.unknown_frame(kind, payload)
    elif number in session.closing_channels:
        _on_closing_channel(session, kind, number, payload)
    elif (channel := session.channels.get(number)) is None:
        _on_unopened_channel(session, kind, number, payload)
    elif channel.assembly is not None:
        _on_content(channel, channel.assembly, kind, payload)
    else:
        assert kind != FRAME_METHOD, "a method for an open channel that awaits no content is for on_method"
        raise wire.unexpected_content()


def on_method(channel: Channel, payload: bytes) -> None:
    """Act on a method other than publish and ack, on an open channel that awaits no content."""
    broker = channel.session.broker
    if broker.freed_consumers and not payload.startswith(_CLOSE_START):
        # In RabbitMQ they have taken their next messages by now, but the channel would not send these before it closes.
        broker.resume_freed_consumers()
    if payload.startswith(_SETTLE_STARTS) and len(payload) == SETTLE_BYTES:
        method_id, tag, bits = unpack_settle(payload)
        if method_id == NACK:
            channel.reject(tag, multiple=bool(bits & 1), requeue=bool(bits & 2))
        else:
            channel.reject(tag, multiple=False, requeue=bool(bits & 1), has_failed=True)
        return
    method = decode_method(payload)
    handler = CHANNEL_METHODS.get(type(method))
    session = channel.session
    if handler is None:
        if isinstance(method, commands.Basic.CancelOk) and session.broker.profile.crashes_channels:
            raise InternalError("", method_id=0)
        raise handshake.unimplemented(method)
    if session.broker.faults.on_method:
        before_method(channel, method)
    _call(channel, handler, method)
    session.spend(METHOD_WORK)


def _call(channel: Channel, handler: Handler, method: base.Frame) -> None:
    """Do a method, after the answers of remote backends."""
    session = channel.session
    events = session.broker.events
    events.actor = session.user.name if session.user is not None else INTERNAL_USER
    try:
        steps = handler(channel, method)
        if steps is not None:
            session.work(events.attributed(steps), method.index, channel.number)
    except Unanswered as question:
        remote_checks.ask(
            session, question, partial(_call_again, channel, handler, method), method.index, channel.number
        )
    finally:
        events.actor = INTERNAL_USER


def _call_again(channel: Channel, handler: Handler, method: base.Frame) -> None:
    if channel.session.channels.get(channel.number) is channel:
        _call(channel, handler, method)


def _on_content(channel: Channel, assembly: ContentAssembly, kind: int, payload: bytes) -> None:
    settings = channel.session.broker.settings
    if assembly.add(kind, payload, settings.message_bytes_max):
        channel.assembly = None
        traits = read_traits(channel, assembly.property_list)
        content = assembly.content(channel.number, settings.frame_max)
        publish(channel, assembly.method, traits, content, assembly.body_bytes)


def _on_channel_0(session: Session, kind: int, payload: bytes) -> None:
    if kind == FRAME_HEARTBEAT and not payload:
        return
    if kind != FRAME_METHOD:
        known = kind in (FRAME_HEADER, FRAME_BODY)
        raise wire.unexpected_frame(kind, payload) if known else wire.unknown_frame(kind, payload)
    method = decode_method(payload)
    handler = CONNECTION_METHODS.get(type(method))
    if handler is None:
        raise ChannelNumberError(f"unexpected method in connection state {session.state}")
    session.state = after_method(session.state, method)
    handler(session, method)


def _on_method_while_closing(session: Session, payload: bytes) -> None:
    method = decode_method(payload)
    if isinstance(method, commands.Connection.CloseOk):
        session.state = after_method(session.state, method)
        session.drop()
    elif isinstance(method, commands.Connection.Close):
        session.send(0, commands.Connection.CloseOk())
        session.drop()


def _on_closing_channel(session: Session, kind: int, number: int, payload: bytes) -> None:
    """Act on close and close-ok. The client sent all other frames before it knew of the close (spec 1.5.2.5)."""
    if kind == FRAME_METHOD:
        method = decode_method(payload)
        if isinstance(method, commands.Channel.CloseOk):
            session.closing_channels.discard(number)
        elif isinstance(method, commands.Channel.Close):
            session.send(number, commands.Channel.CloseOk())
        elif isinstance(method, commands.Channel.Open):
            raise handshake.unimplemented(method)


def _on_unopened_channel(session: Session, kind: int, number: int, payload: bytes) -> None:
    if kind != FRAME_METHOD:
        raise wire.unexpected_content()
    method = decode_method(payload)
    if not isinstance(method, commands.Channel.Open):
        raise ChannelNumberError("expected 'channel.open'")
    handshake.check_channel_limits(session)
    session.channels[number] = Channel(session, number)
    remote_checks.forget_answers(session)
    session.broker.counters.channels_created += 1
    session.broker.events.channel_created(session, number)
    ok = commands.Channel.OpenOk()
    ok.channel_id = ""  # RabbitMQ sends an empty id, pamqp "0".
    session.send(number, ok)
