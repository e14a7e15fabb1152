"""Every method of AMQP has its place: what clients send is handled somewhere, the rest is the broker's to send."""

from __future__ import annotations

from pamqp import base, commands

from amqp_broker.protocol.connection import TRANSITIONS
from amqp_broker.protocol.methods import METHODS, AccessRequest, AccessRequestOk
from amqp_broker.session.methods import CHANNEL_METHODS, CONNECTION_METHODS

TABLES = {*CHANNEL_METHODS, *CONNECTION_METHODS}

# Recognised in the frame loop itself (`Session._run`).
HOT = {commands.Basic.Publish, commands.Basic.Ack, commands.Basic.Nack, commands.Basic.Reject}

# They change which states and channels there are, so the session looks at them before it looks into the tables.
BEFORE_THE_TABLES = {commands.Channel.Open, commands.Channel.CloseOk, commands.Connection.CloseOk}

# A client may send them only in answer to what we never ask: 503, as RabbitMQ has it.
UNASKED = {commands.Channel.FlowOk, commands.Basic.CancelOk}

FROM_THE_BROKER = {
    AccessRequestOk,
    commands.Connection.Start,
    commands.Connection.Secure,
    commands.Connection.Tune,
    commands.Connection.OpenOk,
    commands.Connection.Blocked,
    commands.Connection.Unblocked,
    commands.Connection.UpdateSecretOk,
    commands.Channel.OpenOk,
    commands.Exchange.DeclareOk,
    commands.Exchange.DeleteOk,
    commands.Exchange.BindOk,
    commands.Exchange.UnbindOk,
    commands.Queue.DeclareOk,
    commands.Queue.BindOk,
    commands.Queue.UnbindOk,
    commands.Queue.PurgeOk,
    commands.Queue.DeleteOk,
    commands.Basic.QosOk,
    commands.Basic.ConsumeOk,
    commands.Basic.GetOk,
    commands.Basic.GetEmpty,
    commands.Basic.RecoverOk,
    commands.Basic.Deliver,
    commands.Basic.Return,
    commands.Confirm.SelectOk,
    commands.Tx.SelectOk,
    commands.Tx.CommitOk,
    commands.Tx.RollbackOk,
}

PLACES = (TABLES, HOT, BEFORE_THE_TABLES, UNASKED, FROM_THE_BROKER)


def names(methods: set[type[base.Frame]]) -> list[str]:
    return sorted(method.name for method in methods)


def test_every_method_has_a_place() -> None:
    assert names(set(METHODS.values()) - set().union(*PLACES)) == []


def test_no_method_has_two_places() -> None:
    assert sum(map(len, PLACES)) == len(METHODS)


def test_pamqp_knows_all_methods_but_those_of_class_access() -> None:
    assert set(METHODS.values()) - set(commands.INDEX_MAPPING.values()) == {AccessRequest, AccessRequestOk}


def test_no_method_is_handled_on_channel_0_and_on_others() -> None:
    assert not set(CHANNEL_METHODS) & set(CONNECTION_METHODS)


def test_the_methods_on_channel_0_are_those_of_class_connection() -> None:
    assert {method.name.partition(".")[0] for method in CONNECTION_METHODS} == {"Connection"}
    assert "Connection" not in {method.name.partition(".")[0] for method in CHANNEL_METHODS}


def test_every_method_on_channel_0_is_legal_in_some_state() -> None:
    legal = {method for row in TRANSITIONS.values() for method in row}
    assert names(set(CONNECTION_METHODS) - legal) == []


def test_what_a_synchronous_method_is_answered_with_is_the_brokers_to_send() -> None:
    answers = {answer for method in TABLES - {AccessRequest} if method.synchronous for answer in method.valid_responses}
    # These go in both directions.
    assert answers - set(names(FROM_THE_BROKER)) == {
        "Connection.CloseOk",
        "Channel.CloseOk",
        "Channel.FlowOk",
        "Basic.CancelOk",
    }
