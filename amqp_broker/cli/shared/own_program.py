"""Commands that start this program once more: for a process, and for a user to copy."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

# Set by PyInstaller, which makes the single executable (packages/executable).
IS_FROZEN = bool(getattr(sys, "frozen", False))


def own_program(*words: str) -> list[str]:
    """Return the command that runs this program with these words."""
    return [sys.executable, *words] if IS_FROZEN else [sys.executable, "-m", "amqp_broker", *words]


def same_command(options: Mapping[str, str]) -> str:
    """Return the command line of this process, for a shell, with these values of options."""
    import shlex

    program = os.path.basename(sys.argv[0])  # noqa: PTH119
    if program == "__main__.py":
        program = "amqp-broker"
    return shlex.join([program, *_with(sys.argv[1:], options)])


def commands_for(nodes: Sequence[str]) -> str:
    """Return a line per broker with the command of this process for it."""
    return "".join(f"\n  {same_command({'--node': node})}" for node in nodes)


def _with(words: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the words of a command with these values of options."""
    kept: list[str] = []
    for word in words:
        before = "--node" if kept and kept[-1] == "-n" else kept[-1] if kept else ""
        if before in options:
            kept.pop()
        elif word.partition("=")[0] not in options or "=" not in word:
            kept.append(word)
    return kept + [word for option in options.items() for word in option]
