"""The list of methods is complete: each method of AMQP is handled, or refused with RabbitMQ's words."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import base
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue, Tx

from amqp_broker.amqp.frames import method_frame
from amqp_broker.amqp.methods import AccessRequest, AccessRequestOk, encode_method
from amqp_broker.session.wire.dispatch import CHANNEL_METHODS, CONNECTION_METHODS
from tests.peer import Lab, Peer, blamed

EMPTY: dict[str, Any] = {"bit": False, "shortstr": "", "longstr": b"", "table": {}}

# Recognised on the hot path, and not by the list.
HOT: set[type[base.Frame]] = {Basic.Publish, Basic.Ack, Basic.Nack, Basic.Reject}
# AMQP 0-9-1, 1.4 to 1.9: what a client may send, and RabbitMQ's extensions.
OF_CLIENTS_ON_CHANNEL_0 = {
    Connection.StartOk,
    Connection.SecureOk,
    Connection.TuneOk,
    Connection.Open,
    Connection.Close,
    Connection.CloseOk,
    Connection.UpdateSecret,
}
OF_CLIENTS_ON_CHANNELS: set[type[base.Frame]] = {
    AccessRequest,
    Channel.Open,
    Channel.Flow,
    Channel.Close,
    Channel.CloseOk,
    Exchange.Declare,
    Exchange.Delete,
    Exchange.Bind,
    Exchange.Unbind,
    Queue.Declare,
    Queue.Bind,
    Queue.Unbind,
    Queue.Purge,
    Queue.Delete,
    Basic.Qos,
    Basic.Consume,
    Basic.Cancel,
    Basic.Get,
    Basic.Recover,
    Basic.RecoverAsync,
    Confirm.Select,
    Tx.Select,
    Tx.Commit,
    Tx.Rollback,
    *HOT,
}
BY_NAME = sorted(OF_CLIENTS_ON_CHANNELS, key=lambda kind: kind.name)
# Legal only where the session itself waits for them: to open a channel, and to answer our close.
OF_THE_SESSION = {Channel.Open, Channel.CloseOk, Connection.CloseOk}


def empty(kind: type[base.Frame]) -> bytes:
    """The payload of a method with all its fields empty."""
    method = kind.__new__(kind)
    for name in kind.attributes():
        setattr(method, name, EMPTY.get(kind.amqp_type(name), 0))
    return encode_method(method)


def test_every_method_of_a_client_has_a_handler() -> None:
    assert set(CONNECTION_METHODS) == OF_CLIENTS_ON_CHANNEL_0 - OF_THE_SESSION
    assert set(CHANNEL_METHODS) == OF_CLIENTS_ON_CHANNELS - OF_THE_SESSION - HOT


@pytest.mark.parametrize(
    "kind",
    [Connection.Start, Connection.Close, Channel.OpenOk, Queue.DeclareOk, Basic.Deliver, AccessRequestOk],
    ids=lambda kind: kind.name,
)
def test_a_method_that_is_not_for_channels_is_not_implemented(peer: Peer, kind: type[base.Frame]) -> None:
    peer.send_bytes(method_frame(1, empty(kind)))
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (503, "COMMAND_INVALID - unimplemented method")
    assert blamed(close) == kind.index


@pytest.mark.parametrize(
    "kind",
    [
        *(Connection.Start, Connection.StartOk, Connection.TuneOk, Connection.Open, Connection.CloseOk),
        *(Channel.Open, Queue.Declare, Basic.Deliver, *sorted(HOT, key=lambda kind: kind.name)),
    ],
    ids=lambda kind: kind.name,
)
def test_channel_0_of_an_open_connection_expects_few_methods(peer: Peer, kind: type[base.Frame]) -> None:
    peer.send_bytes(method_frame(0, empty(kind)))
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (
        504,
        "CHANNEL_ERROR - unexpected method in connection state running",
    )
    assert blamed(close) == kind.index


@pytest.mark.parametrize(
    "kind",
    [Connection.Close, Channel.CloseOk, Queue.Declare, Basic.Deliver, *sorted(HOT, key=lambda kind: kind.name)],
    ids=lambda kind: kind.name,
)
def test_a_channel_begins_with_open(peer: Peer, kind: type[base.Frame]) -> None:
    peer.send_bytes(method_frame(2, empty(kind)))
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (504, "CHANNEL_ERROR - expected 'channel.open'")
    assert blamed(close) == kind.index


@pytest.mark.parametrize("kind", [kind for kind in BY_NAME if kind is not Channel.Open])
def test_a_method_with_empty_fields_is_answered_or_refused(lab: Lab, peer: Peer, kind: type[base.Frame]) -> None:
    control = lab.connect()
    peer.send_bytes(method_frame(1, empty(kind)))
    assert b"INTERNAL_ERROR" not in b"".join(peer.session.outbox.take())
    control.declare("control")


@pytest.mark.parametrize(
    "kind", [Channel.Open, Queue.Declare, Tx.Select, AccessRequest, *sorted(HOT, key=lambda kind: kind.name)]
)
def test_a_method_that_is_cut_short_closes_the_connection(peer: Peer, kind: type[base.Frame]) -> None:
    payload = empty(kind)
    if len(payload) == 4:
        payload += b"!"  # one without fields cannot be cut
    else:
        payload = payload[:-1]
    header = b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c" + bytes(12) + b"\xce"
    peer.send_bytes(method_frame(1, payload) + (header if kind is Basic.Publish else b""))
    assert peer.session.outbox.pieces or peer.is_dropped
    if not peer.is_dropped:
        assert peer.expect_connection_close(501).startswith("FRAME_ERROR - cannot decode <<")
