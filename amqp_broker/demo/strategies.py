"""The styles in which programs publish, and what each of them promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Strategy:
    """How a program publishes.

    `resends`: it looks at what the broker answers, and publishes again what was not confirmed. Then it has
    `window` messages unanswered at most (None: as many as it is told), and if it `is_batched`, publishes nothing more
    before all of them are answered.
    """

    name: str
    sentence: str
    promise: str
    resends: bool = True
    window: int | None = None
    is_batched: bool = False


AT_LEAST_ONCE: Final = "at least once, and exactly once by message id"

STRATEGIES: Final = {
    one.name: one
    for one in (
        Strategy("sync", "publishes a message and waits for its confirm", AT_LEAST_ONCE, window=1),
        Strategy("window", "publishes a window of messages and waits for all confirms", AT_LEAST_ONCE, is_batched=True),
        Strategy("async", "publishes on while confirms come, a window ahead of them", AT_LEAST_ONCE),
        Strategy("naive", "publishes, and never looks at what the broker answers", "at most once", resends=False),
    )
}
