"""Waiting for a condition with a deadline; client programs here do not sleep in any other way."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 0.02


def wait_until(
    condition: Callable[[], object], timeout_s: float = 60.0, pause: Callable[[float], object] = time.sleep
) -> None:
    """Wait until the condition holds; `pause` runs a client's event loop for the given seconds.

    The time is for a condition that never holds: a busy machine may need many seconds for one that does.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} seconds"
        pause(STEP_S)
