"""Errors of commands: a sentence for the user, and an exit code."""

from __future__ import annotations

from amqp_broker.exit_codes import EX_NOPERM, EX_UNAVAILABLE


class CommandError(Exception):
    """A command failed; the message is a sentence for the user."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def refusal(text: str) -> CommandError:
    """Return the error for a refusal over AMQP, or for a broker that cannot be reached."""
    return CommandError(text, EX_NOPERM if "ACCESS_REFUSED" in text else EX_UNAVAILABLE)
