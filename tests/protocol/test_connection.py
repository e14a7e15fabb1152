from __future__ import annotations

import pytest
from pamqp import base, commands

from amqp_broker.errors import ChannelNumberError
from amqp_broker.protocol.connection import (
    AWAITING_HEADER,
    CLOSED,
    CLOSING,
    OPENING,
    RUNNING,
    SECURING,
    STARTING,
    TRANSITIONS,
    TUNING,
    advance,
)

Connection = commands.Connection


def walk(state: str, *methods: base.Frame) -> str:
    for method in methods:
        state = advance(state, method)
    return state


def test_a_login_in_one_step_leads_to_running() -> None:
    start = walk(AWAITING_HEADER, Connection.Start(), Connection.StartOk(), Connection.Tune())
    assert start == TUNING
    assert walk(start, Connection.TuneOk(), Connection.Open(), Connection.OpenOk()) == RUNNING


def test_a_login_may_take_several_challenges() -> None:
    secured = walk(AWAITING_HEADER, Connection.Start(), Connection.StartOk(), Connection.Secure(""))
    assert secured == SECURING
    assert walk(secured, Connection.SecureOk(""), Connection.Secure(""), Connection.SecureOk("")) == SECURING
    assert walk(secured, Connection.SecureOk(""), Connection.Tune()) == TUNING


def test_closing_ends_with_close_ok() -> None:
    assert walk(RUNNING, Connection.Close(), Connection.CloseOk()) == CLOSED


def test_both_sides_may_close_at_once() -> None:
    assert walk(RUNNING, Connection.Close(), Connection.Close()) == CLOSING


def test_a_connection_may_be_closed_before_it_is_open() -> None:
    assert walk(OPENING, Connection.Close()) == CLOSING


@pytest.mark.parametrize("method", [Connection.Blocked(), Connection.Unblocked(), Connection.UpdateSecret("", "")])
def test_a_running_connection_goes_on_running(method: base.Frame) -> None:
    assert advance(RUNNING, method) == RUNNING


@pytest.mark.parametrize(
    ("state", "method"),
    [
        (AWAITING_HEADER, Connection.StartOk()),
        (STARTING, Connection.TuneOk()),
        (STARTING, Connection.SecureOk("")),
        (TUNING, Connection.Open()),
        (TUNING, Connection.Close()),
        (OPENING, Connection.TuneOk()),
        (RUNNING, Connection.Open()),
        (RUNNING, Connection.StartOk()),
        (RUNNING, Connection.CloseOk()),
        (CLOSED, Connection.Close()),
    ],
)
def test_a_method_for_another_state_is_a_channel_error(state: str, method: base.Frame) -> None:
    with pytest.raises(ChannelNumberError) as caught:
        advance(state, method)
    assert caught.value.reply_text == f"CHANNEL_ERROR - unexpected method in connection state {state}"


def test_a_method_of_a_channel_is_expected_in_no_state() -> None:
    for state in TRANSITIONS:
        with pytest.raises(ChannelNumberError):
            advance(state, commands.Channel.Open())


def test_each_state_can_be_reached_and_left_but_the_first_and_the_last() -> None:
    reached = {after for before, row in TRANSITIONS.items() for after in row.values() if after != before}
    assert reached == set(TRANSITIONS) - {AWAITING_HEADER}
    for state, row in TRANSITIONS.items():
        assert (set(row.values()) - {state} == set()) == (state == CLOSED)


def test_each_method_of_the_class_leads_somewhere() -> None:
    methods = {kind for name, kind in vars(Connection).items() if isinstance(kind, type)}
    assert methods == {method for row in TRANSITIONS.values() for method in row}
