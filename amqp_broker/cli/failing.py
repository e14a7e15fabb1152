"""What a command of ours cannot do, as a sentence and an exit code."""

from __future__ import annotations

from amqp_broker.exit_codes import EX_NOPERM, EX_UNAVAILABLE


class CommandError(Exception):
    """A command cannot do what it was asked; the text is a sentence for the user."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def refusal(text: str) -> CommandError:
    """What a broker says over AMQP that it does not do, or why it is not there."""
    return CommandError(text, EX_NOPERM if "ACCESS_REFUSED" in text else EX_UNAVAILABLE)
