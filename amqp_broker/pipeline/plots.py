"""The plots of a report: lines over time, which uPlot draws in the browser (static/plots.js)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from html import escape

# Value by the start of its interval (in ms since the epoch).
Series = Mapping[int, float]


class Without(Enum):
    """The look of an interval without a value."""

    GAP = "a gap"
    ZERO = "zero"
    LAST = "the value before, or zero"


@dataclass(frozen=True)
class Chart:
    """Lines by name. All have the same intervals, given by their starts in ms."""

    title: str
    unit: str
    starts: range
    lines: Mapping[str, Series]
    without: Without = Without.GAP

    def html(self) -> str:
        """Return the chart, or a sentence if there are no values."""
        title = escape(self.title)
        if not any(self.lines.values()):
            return f'<figure><figcaption>{title}</figcaption><p class="none">nothing</p></figure>'
        lines = [(name, values_of(line, self.starts, self.without)) for name, line in self.lines.items()]
        values = {"start_ms": self.starts.start, "step_ms": self.starts.step, "lines": lines}
        return (
            f"<figure><figcaption>{title} <small>{escape(self.unit)}</small></figcaption>"
            f'<script type="application/json">{json_in_html(values)}</script>'
            f'<div class="plot" role="img" aria-label="{title}"></div></figure>'
        )


def values_of(line: Series, starts: Iterable[int], without: Without) -> list[float | None]:
    """Return the values of all intervals, with five digits."""
    values: list[float | None] = []
    last = None if without is Without.GAP else 0.0
    for start_ms in starts:
        value = line.get(start_ms, last)
        if without is Without.LAST:
            last = value
        values.append(value if value is None else brief(value))
    return values


def brief(value: float) -> float:
    """Return a number with five significant digits, without a fraction if it has none."""
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded


def json_in_html(value: object) -> str:
    """Return JSON that ends no element of HTML."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def shown(value: float) -> str:
    """Return a number: a whole one, and one from 1,000, without a fraction; others with four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"
