"""The states of a connection, and which method on channel 0 leads from one to the next.

Rule: every transition stands in `TRANSITIONS`, whoever sends the method. A method that a state does not list is a
CHANNEL_ERROR (504); the names are those RabbitMQ's texts print. Not in the table, because no method of the peer
causes it: an error leads from any state to CLOSING, and a lost socket to CLOSED.
"""

from __future__ import annotations

from typing import Final

from pamqp import base, commands

from amqp_broker.errors import ChannelNumberError

AWAITING_HEADER: Final = "pre_init"
STARTING: Final = "starting"
SECURING: Final = "securing"
TUNING: Final = "tuning"
OPENING: Final = "opening"
RUNNING: Final = "running"
CLOSING: Final = "closing"
CLOSED: Final = "closed"

TRANSITIONS: Final[dict[str, dict[type[base.Frame], str]]] = {
    AWAITING_HEADER: {commands.Connection.Start: STARTING},
    STARTING: {
        commands.Connection.StartOk: STARTING,
        commands.Connection.Secure: SECURING,
        commands.Connection.Tune: TUNING,
    },
    SECURING: {
        commands.Connection.SecureOk: SECURING,
        commands.Connection.Secure: SECURING,
        commands.Connection.Tune: TUNING,
    },
    TUNING: {commands.Connection.TuneOk: OPENING},
    OPENING: {
        commands.Connection.Open: OPENING,
        commands.Connection.OpenOk: RUNNING,
        commands.Connection.Close: CLOSING,
    },
    RUNNING: {
        commands.Connection.UpdateSecret: RUNNING,
        commands.Connection.UpdateSecretOk: RUNNING,
        commands.Connection.Blocked: RUNNING,
        commands.Connection.Unblocked: RUNNING,
        commands.Connection.Close: CLOSING,
    },
    CLOSING: {
        commands.Connection.Close: CLOSING,
        commands.Connection.CloseOk: CLOSED,
    },
    CLOSED: {},
}


def advance(state: str, method: base.Frame) -> str:
    """The state after `method`. Raises ChannelNumberError where `state` does not expect it."""
    try:
        return TRANSITIONS[state][type(method)]
    except KeyError:
        raise ChannelNumberError(f"unexpected method in connection state {state}") from None
