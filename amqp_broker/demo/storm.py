"""A storm: what the broker does wrong while messages are published, and at which of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

SEED_MAX: Final = 2**63 - 1
# How long a publisher waits for a confirm before it publishes again.
PATIENCE_MS: Final = 500
LATE_MS: Final = 200
TOO_LATE_MS: Final = PATIENCE_MS + 250
BLOCK_MS: Final = 600


@dataclass(frozen=True)
class Gust:
    """What happens at one message. `rule` are the fields of a fault (docs/faults.md); None: kill and restart."""

    at: int
    sentence: str
    rule: Mapping[str, Any] | None

    @property
    def times(self) -> int:
        """How often it strikes."""
        return int(self.rule["times"]) if self.rule is not None else 1


# What may happen, given how often it is to happen where that can be more than once.
KINDS: Final[tuple[Callable[[int], tuple[str, Mapping[str, Any] | None]], ...]] = (
    lambda times: (f"nacks {times} messages", {"action": "confirm_nack", "times": times}),
    lambda times: (
        f"confirms {times} messages {LATE_MS} ms late",
        {"action": "confirm_delay", "delay_ms": LATE_MS, "times": times},
    ),
    lambda times: (
        f"confirms {times} messages {TOO_LATE_MS} ms late, when nobody waits for it any more",
        {"action": "confirm_delay", "delay_ms": TOO_LATE_MS, "times": times},
    ),
    lambda times: (f"loses {times} confirms", {"action": "confirm_drop", "times": times}),
    lambda times: (f"returns {times} messages as unroutable", {"action": "return", "times": times}),
    lambda times: (
        f"blocks the connection for {BLOCK_MS} ms",
        {"action": "block", "on": "publish", "duration_ms": BLOCK_MS, "times": 1},
    ),
    lambda times: (
        "cuts the connection in the middle of a frame",
        {"action": "cut", "on": "publish", "is_mid_frame": True, "times": 1},
    ),
    lambda times: (
        "resets the connection when it has a message and has not confirmed it",
        {"action": "reset", "on": "confirm", "times": 1},
    ),
    lambda times: ("closes the channel", {"action": "close_channel", "on": "publish", "times": 1}),
    lambda times: ("is killed, and starts again with what is on its disk", None),
)


def storm(messages: int, seed: int) -> list[Gust]:
    """The gusts that so many messages meet, in the order in which they come: each kind once. The seed decides all."""
    dice = random.Random(seed)
    kinds = list(KINDS)
    dice.shuffle(kinds)
    gusts = []
    for place, kind in enumerate(kinds):
        # Somewhere in its own part of the messages, but not at the very end, where nobody would be in it.
        at = 1 + int(messages * 0.95 * (place + dice.random()) / len(kinds))
        sentence, rule = kind(dice.randint(3, 8))
        gusts.append(Gust(at, sentence, None if rule is None else {**rule, "seed": dice.randint(0, SEED_MAX)}))
    return gusts
