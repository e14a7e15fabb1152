"""Every method of AMQP is either handled by the session or sent by the broker."""

from __future__ import annotations

from pamqp import base, commands

from amqp_broker.amqp.connection_states import TRANSITIONS
from amqp_broker.amqp.methods import METHODS, AccessRequest, AccessRequestOk
from amqp_broker.session.wire.dispatch import CHANNEL_METHODS, CONNECTION_METHODS

TABLES = {*CHANNEL_METHODS, *CONNECTION_METHODS}

# Recognised in the frame loop itself (`FrameReader._run`).
HOT = {commands.Basic.Publish, commands.Basic.Ack, commands.Basic.Nack, commands.Basic.Reject}

# They change the state or the set of channels, so the session handles them before it consults the tables.
BEFORE_THE_TABLES = {commands.Channel.Open, commands.Channel.CloseOk, commands.Connection.CloseOk}

# Answers to requests that the broker never makes: error 503, as in RabbitMQ.
UNREQUESTED = {commands.Channel.FlowOk, commands.Basic.CancelOk}

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

GROUPS = (TABLES, HOT, BEFORE_THE_TABLES, UNREQUESTED, FROM_THE_BROKER)


def names(methods: set[type[base.Frame]]) -> list[str]:
    return sorted(method.name for method in methods)


def test_every_method_belongs_to_a_group() -> None:
    assert names(set(METHODS.values()) - set().union(*GROUPS)) == []


def test_no_method_belongs_to_two_groups() -> None:
    assert sum(map(len, GROUPS)) == len(METHODS)


def test_pamqp_lacks_only_the_methods_of_class_access() -> None:
    assert set(METHODS.values()) - set(commands.INDEX_MAPPING.values()) == {AccessRequest, AccessRequestOk}


def test_no_method_is_handled_on_channel_0_and_on_other_channels() -> None:
    assert not set(CHANNEL_METHODS) & set(CONNECTION_METHODS)


def test_the_methods_on_channel_0_are_those_of_class_connection() -> None:
    assert {method.name.partition(".")[0] for method in CONNECTION_METHODS} == {"Connection"}
    assert "Connection" not in {method.name.partition(".")[0] for method in CHANNEL_METHODS}


def test_every_method_on_channel_0_is_legal_in_some_state() -> None:
    legal = {method for row in TRANSITIONS.values() for method in row}
    assert names(set(CONNECTION_METHODS) - legal) == []


def test_the_broker_sends_the_answers_to_synchronous_methods() -> None:
    answers = {answer for method in TABLES - {AccessRequest} if method.synchronous for answer in method.valid_responses}
    # Both sides send these.
    assert answers - set(names(FROM_THE_BROKER)) == {
        "Connection.CloseOk",
        "Channel.CloseOk",
        "Channel.FlowOk",
        "Basic.CancelOk",
    }
