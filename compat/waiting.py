"""Wait for a condition with a deadline; the only way a client program here lets time pass."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 0.02


def wait_until(
    condition: Callable[[], object], timeout_s: float = 15.0, pause: Callable[[float], object] = time.sleep
) -> None:
    """Return when the condition holds; `pause` is what runs a client's event loop for the seconds given."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} seconds"
        pause(STEP_S)
