"""Figures of a run as the screens are given them."""

from __future__ import annotations

from typing import Any, Final

EVENTS: Final[list[dict[str, Any]]] = [
    {"at": 10, "sentence": "is killed", "hits": 1, "times": 1, "state": "over", "began_ms": 50.0},
    {"at": 20, "sentence": "nacks 6 publishes", "hits": 2, "times": 6, "state": "now", "began_ms": 310.0},
    {"at": 30, "sentence": "loses 3 confirms", "hits": 0, "times": 3, "state": "to come", "began_ms": None},
]
RESULT: Final[dict[str, Any]] = {
    "strategy": "naive",
    "promise": "at most once",
    "promises_delivery": False,
    "messages": 10,
    "sent": 10,
    "confirmed": 7,
    "queued": 8,
    "distinct": 8,
    "duplicates": 0,
    "lost": {"nacked": 2},
    "breaches": (),
    "is_held": True,
    "retries": 0,
    "median_ms": 1.0,
    "p99_ms": None,
    "elapsed_ms": 4200.0,
}
