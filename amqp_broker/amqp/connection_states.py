"""The life of a connection: its states, and every change from one state to the next.

A change is caused by a method of class connection, whichever side sends it, or by an `Event`. `after_method` and
`after_event` return the next state; `TRANSITIONS` is the table of both. All changes are in this file: a session assigns
to its `state` only values that these two functions return.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from pamqp import base, commands

from amqp_broker.amqp.errors import ChannelNumberError


class Input(Enum):
    """How a session treats the bytes it receives."""

    HEADER = "They are the protocol header."
    FRAMES = "They are frames."
    NOTHING = "They are ignored."


class State(Enum):
    """A state of a connection. `str(state)` is its name in RabbitMQ's messages."""

    CONNECTED = "pre_init", Input.HEADER, "The socket is open; the client has sent nothing."
    AWAITING_HEADER = "pre_init", Input.HEADER, "Part of the protocol header may have arrived."
    STARTING = "starting", Input.FRAMES, "The broker has sent connection.start."
    SECURING = "securing", Input.FRAMES, "The broker has sent a challenge."
    TUNING = "tuning", Input.FRAMES, "The client has logged in; the broker has sent connection.tune."
    OPENING = "opening", Input.FRAMES, "The client has to open a vhost."
    RUNNING = "running", Input.FRAMES, "The connection is open."
    BLACK_HOLE = "running", Input.NOTHING, "A fault swallows what either side sends."
    CLOSING = "closing", Input.FRAMES, "One side has sent connection.close."
    SILENT = "closing", Input.NOTHING, "The broker closes the socket after a delay."
    CLOSED = "closed", Input.NOTHING, "close-ok was exchanged; the client is expected to close the socket."
    ENDED = "closed", Input.NOTHING, "The socket is closed, or closes as soon as the outbox is written."

    def __init__(self, text: str, reads: Input, meaning: str) -> None:
        self.text = text
        self.reads = reads
        self.meaning = meaning
        self.ignores_input = reads is Input.NOTHING

    def __str__(self) -> str:
        return self.text


class Event(Enum):
    """A cause of a change of state that is not a method."""

    ACCEPT = "The first bytes have arrived, or the time for the handshake is over."
    ERROR = "The broker has sent connection.close."
    SILENCE = "The broker stops reading and closes the socket after a delay."
    SWALLOW = "A fault begins to swallow everything."
    END = "The socket is lost, or nothing remains but to write the outbox and close it."


Trigger: TypeAlias = "type[base.Frame] | Event"

CONNECTED: Final = State.CONNECTED
AWAITING_HEADER: Final = State.AWAITING_HEADER
STARTING: Final = State.STARTING
SECURING: Final = State.SECURING
TUNING: Final = State.TUNING
OPENING: Final = State.OPENING
RUNNING: Final = State.RUNNING
BLACK_HOLE: Final = State.BLACK_HOLE
CLOSING: Final = State.CLOSING
SILENT: Final = State.SILENT
CLOSED: Final = State.CLOSED
ENDED: Final = State.ENDED

TRANSITIONS: Final[dict[State, dict[Trigger, State]]] = {
    CONNECTED: {Event.ACCEPT: AWAITING_HEADER, Event.END: ENDED},
    AWAITING_HEADER: {
        commands.Connection.Start: STARTING,
        Event.SILENCE: SILENT,
        Event.END: ENDED,
    },
    STARTING: {
        commands.Connection.StartOk: STARTING,
        commands.Connection.Secure: SECURING,
        commands.Connection.Tune: TUNING,
        Event.ERROR: CLOSING,
        Event.SILENCE: SILENT,
        Event.END: ENDED,
    },
    SECURING: {
        commands.Connection.SecureOk: SECURING,
        commands.Connection.Secure: SECURING,
        commands.Connection.Tune: TUNING,
        Event.ERROR: CLOSING,
        Event.SILENCE: SILENT,
        Event.END: ENDED,
    },
    TUNING: {
        commands.Connection.TuneOk: OPENING,
        Event.SILENCE: SILENT,
        Event.END: ENDED,
    },
    OPENING: {
        commands.Connection.Open: OPENING,
        commands.Connection.OpenOk: RUNNING,
        commands.Connection.Close: CLOSING,
        Event.ERROR: CLOSING,
        # The limits of connection.tune-ok were out of range.
        Event.SILENCE: SILENT,
        Event.END: ENDED,
    },
    RUNNING: {
        commands.Connection.UpdateSecret: RUNNING,
        commands.Connection.UpdateSecretOk: RUNNING,
        commands.Connection.Blocked: RUNNING,
        commands.Connection.Unblocked: RUNNING,
        commands.Connection.Close: CLOSING,
        Event.ERROR: CLOSING,
        Event.SWALLOW: BLACK_HOLE,
        Event.END: ENDED,
    },
    BLACK_HOLE: {Event.SILENCE: SILENT, Event.END: ENDED},
    CLOSING: {
        commands.Connection.Close: CLOSING,
        commands.Connection.CloseOk: CLOSED,
        Event.SILENCE: SILENT,
        Event.END: ENDED,
    },
    SILENT: {Event.END: ENDED},
    CLOSED: {Event.END: ENDED},
    ENDED: {},
}


def after_method(state: State, method: base.Frame) -> State:
    """Return the state after `method`. Raise ChannelNumberError where `state` does not expect it."""
    try:
        return TRANSITIONS[state][type(method)]
    except KeyError:
        raise ChannelNumberError(f"unexpected method in connection state {state}") from None


def after_event(state: State, event: Event) -> State:
    """Return the state after `event`. An event that `state` does not list is a bug of the broker, and a KeyError."""
    return TRANSITIONS[state][event]
