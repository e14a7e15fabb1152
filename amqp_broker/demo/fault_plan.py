"""The plan of faults: which faults the broker injects, and at which messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

SEED_MAX: Final = 2**63 - 1
# Time after which a publisher publishes an unconfirmed message again.
PATIENCE_MS: Final = 500
LATE_MS: Final = 200
TOO_LATE_MS: Final = PATIENCE_MS + 250
BLOCK_MS: Final = 600
# The kind of fault that ends the process of the broker.
RESTART: Final = "restart"


@dataclass(frozen=True)
class FaultEvent:
    """A fault that begins before message `at`, counted by first publishes.

    `rule` has the fields of its fault rule (docs/faults.md); None: kill and restart.
    """

    at: int
    sentence: str
    rule: Mapping[str, Any] | None

    @property
    def times(self) -> int:
        """The number of publishes or connections that the fault hits."""
        return int(self.rule["times"]) if self.rule is not None else 1


# The kinds of faults by name: a sentence and the fields of a rule, given the number of hits where there can be several.
KINDS: Final[Mapping[str, Callable[[int], tuple[str, Mapping[str, Any] | None]]]] = {
    "nack": lambda times: (f"nacks {times} publishes", {"action": "confirm_nack", "times": times}),
    "late": lambda times: (
        f"confirms {times} publishes {LATE_MS} ms late",
        {"action": "confirm_delay", "delay_ms": LATE_MS, "times": times},
    ),
    "too_late": lambda times: (
        f"confirms {times} publishes {TOO_LATE_MS} ms late, after the publisher has stopped waiting",
        {"action": "confirm_delay", "delay_ms": TOO_LATE_MS, "times": times},
    ),
    "drop": lambda times: (f"loses {times} confirms", {"action": "confirm_drop", "times": times}),
    "return": lambda times: (f"returns {times} publishes as unroutable", {"action": "return", "times": times}),
    "block": lambda times: (
        f"blocks the connection for {BLOCK_MS} ms",
        {"action": "block", "on": "publish", "duration_ms": BLOCK_MS, "times": 1},
    ),
    "cut": lambda times: (
        "cuts the connection in the middle of a frame",
        {"action": "cut", "on": "publish", "is_mid_frame": True, "times": 1},
    ),
    "reset": lambda times: (
        "resets the connection when it has a message and has not confirmed it",
        {"action": "reset", "on": "confirm", "times": 1},
    ),
    "close_channel": lambda times: (
        "closes the channel",
        {"action": "close_channel", "on": "publish", "times": 1},
    ),
    RESTART: lambda times: ("is killed, and starts again with what is on its disk", None),
}


def fault_plan(messages: int, seed: int, names: Collection[str] = tuple(KINDS)) -> list[FaultEvent]:
    """Return one event of each kind, in the order of their messages. The seed decides the order and the numbers."""
    dice = random.Random(seed)
    kinds = [kind for name, kind in KINDS.items() if name in names]
    dice.shuffle(kinds)
    events = []
    for place, kind in enumerate(kinds):
        # Each event has its own share of the messages; the last 5 % have none, so that every event is noticed.
        at = 1 + int(messages * 0.95 * (place + dice.random()) / len(kinds))
        sentence, rule = kind(dice.randint(3, 8))
        events.append(FaultEvent(at, sentence, None if rule is None else {**rule, "seed": dice.randint(0, SEED_MAX)}))
    return events
