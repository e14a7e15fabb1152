"""Durations as texts like 30m, by which a tester moves the clock."""

from __future__ import annotations

import re
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?:[0-9]{1,15}(?:ms|s|m|h|d)){1,5}")
_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h|d)")


def duration_ms(text: str) -> int:
    """Return a duration like 1h30m or 500ms in milliseconds. Raise ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"'{text[:40]}' is not a duration like 500ms, 30s, 30m, 1h30m or 2d")
    return sum(int(count) * _UNITS_MS[unit] for count, unit in _PART.findall(text))
