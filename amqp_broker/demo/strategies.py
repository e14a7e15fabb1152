"""The strategies of publishers, and their promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Strategy:
    """A way to publish.

    A strategy that `resends` evaluates the answers of the broker and publishes unconfirmed messages again. It has at
    most `window` unanswered messages (None: the option --window); one that `is_batched` waits for all of their answers
    before it continues.
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
        Strategy("async", "publishes continuously, a window ahead of the confirms", AT_LEAST_ONCE),
        Strategy(
            "naive",
            "publishes and ignores the answers of the broker",
            "at most once; nothing about losses",
            resends=False,
        ),
    )
}
