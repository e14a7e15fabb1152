"""The states of a connection, and what leads from one to the next."""

from __future__ import annotations

import pytest
from pamqp import base, commands

from amqp_broker.amqp.connection_states import (
    AWAITING_HEADER,
    BLACK_HOLE,
    CLOSED,
    CLOSING,
    CONNECTED,
    ENDED,
    OPENING,
    RUNNING,
    SECURING,
    SILENT,
    STARTING,
    TRANSITIONS,
    TUNING,
    Event,
    Input,
    State,
    after_event,
    after_method,
)
from amqp_broker.amqp.errors import ChannelNumberError

Connection = commands.Connection


def walk(state: State, *causes: base.Frame | Event) -> State:
    for cause in causes:
        state = after_event(state, cause) if isinstance(cause, Event) else after_method(state, cause)
    return state


def test_a_login_in_one_step_leads_to_running() -> None:
    start = walk(CONNECTED, Event.ACCEPT, Connection.Start(), Connection.StartOk(), Connection.Tune())
    assert start is TUNING
    assert walk(start, Connection.TuneOk(), Connection.Open(), Connection.OpenOk()) is RUNNING


def test_a_login_may_take_several_challenges() -> None:
    secured = walk(AWAITING_HEADER, Connection.Start(), Connection.StartOk(), Connection.Secure(""))
    assert secured is SECURING
    assert walk(secured, Connection.SecureOk(""), Connection.Secure(""), Connection.SecureOk("")) is SECURING
    assert walk(secured, Connection.SecureOk(""), Connection.Tune()) is TUNING


def test_closing_ends_with_close_ok() -> None:
    assert walk(RUNNING, Connection.Close(), Connection.CloseOk(), Event.END) is ENDED


def test_both_sides_may_close_at_once() -> None:
    assert walk(RUNNING, Connection.Close(), Connection.Close()) is CLOSING


def test_a_connection_may_be_closed_before_it_is_open() -> None:
    assert walk(OPENING, Connection.Close()) is CLOSING


@pytest.mark.parametrize("method", [Connection.Blocked(), Connection.Unblocked(), Connection.UpdateSecret("", "")])
def test_a_running_connection_goes_on_running(method: base.Frame) -> None:
    assert after_method(RUNNING, method) is RUNNING


@pytest.mark.parametrize("state", [STARTING, SECURING, OPENING, RUNNING])
def test_an_error_closes_a_connection_in_these_states(state: State) -> None:
    assert walk(state, Event.ERROR) is CLOSING


@pytest.mark.parametrize("state", [AWAITING_HEADER, STARTING, SECURING, TUNING, BLACK_HOLE, CLOSING])
def test_an_error_is_met_with_silence_in_these_states(state: State) -> None:
    assert walk(state, Event.SILENCE) is SILENT


@pytest.mark.parametrize("state", [state for state in State if state is not ENDED], ids=repr)
def test_every_state_can_end(state: State) -> None:
    assert after_event(state, Event.END) is ENDED


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (ENDED, Event.END),
        (CONNECTED, Event.ERROR),
        (OPENING, Event.SWALLOW),
        (SILENT, Event.ERROR),
        (RUNNING, Event.ACCEPT),
    ],
)
def test_an_event_that_a_state_does_not_list_is_a_bug(state: State, event: Event) -> None:
    with pytest.raises(KeyError):
        after_event(state, event)


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
def test_a_method_for_another_state_is_a_channel_error(state: State, method: base.Frame) -> None:
    with pytest.raises(ChannelNumberError) as caught:
        after_method(state, method)
    assert caught.value.reply_text == f"CHANNEL_ERROR - unexpected method in connection state {state.text}"


@pytest.mark.parametrize("state", State, ids=repr)
def test_no_state_expects_a_method_of_a_channel(state: State) -> None:
    with pytest.raises(ChannelNumberError):
        after_method(state, commands.Channel.Open())


def test_the_first_state_is_never_reached_and_the_last_never_left() -> None:
    reached = {after for before, row in TRANSITIONS.items() for after in row.values() if after is not before}
    assert reached == set(State) - {CONNECTED}
    assert {state for state in State if not TRANSITIONS[state]} == {ENDED}


def test_each_method_of_the_class_and_each_event_leads_somewhere() -> None:
    methods = {kind for name, kind in vars(Connection).items() if isinstance(kind, type)}
    assert methods | set(Event) == {cause for row in TRANSITIONS.values() for cause in row}


def test_a_state_that_ignores_input_expects_no_method() -> None:
    for state in State:
        assert state.ignores_input is (state.reads is Input.NOTHING)
        assert not state.ignores_input or all(isinstance(cause, Event) for cause in TRANSITIONS[state])
