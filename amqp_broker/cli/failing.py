"""What a command of ours cannot do, as a sentence and an exit code."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot do what it was asked; the text is a sentence for the user."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
