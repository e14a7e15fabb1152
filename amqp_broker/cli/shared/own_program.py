"""The command that starts this program once more: with Python, or the single executable alone."""

from __future__ import annotations

import sys

# Set by PyInstaller, which makes the single executable (packages/executable).
IS_FROZEN = bool(getattr(sys, "frozen", False))


def own_program(*words: str) -> list[str]:
    """Return the command that runs this program with these words."""
    return [sys.executable, *words] if IS_FROZEN else [sys.executable, "-m", "amqp_broker", *words]
