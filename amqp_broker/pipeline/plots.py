"""Line charts over time as self-contained SVG, without scripts, fonts or links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from html import escape
from typing import Final

from amqp_broker.pipeline.intervals import DAY_MS, MINUTE_MS, SECOND_MS

WIDTH: Final = 720
HEIGHT: Final = 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 14, 26
# Number of classes in the page's style sheet, which has colours for light and dark mode.
COLOURS: Final = 8
RADIUS: Final = 4

# Value by the start of its interval (in ms since the epoch).
Series = Mapping[int, float]


class Without(Enum):
    """The look of an interval without a value."""

    GAP = "a gap"
    ZERO = "zero"
    LAST = "the value before, or zero"


@dataclass(frozen=True)
class Chart:
    """Lines by name over the same intervals, and what is shown where one has no value."""

    title: str
    unit: str
    step_ms: int
    lines: Mapping[str, Series]
    without: Without = Without.GAP

    def svg(self) -> str:
        """Return the chart, or a sentence if there are no values."""
        starts = {start_ms for line in self.lines.values() for start_ms in line}
        if not starts:
            return f'<figure><figcaption>{escape(self.title)}</figcaption><p class="none">nothing</p></figure>'
        places = range(min(starts), max(starts) + 1, self.step_ms)
        lines = {name: values_of(line, places, self.without) for name, line in self.lines.items()}
        top = nice(max((value for line in lines.values() for value in line if value is not None), default=1.0))
        parts = [self._grid(top, places), *self._lines(lines, top)]
        legend = "".join(f'<span class="c{index % COLOURS}">{escape(name)}</span>' for index, name in enumerate(lines))
        return (
            f"<figure><figcaption>{escape(self.title)} <small>{escape(self.unit)}</small></figcaption>"
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">{"".join(parts)}</svg>'
            f'<div class="legend">{legend}</div></figure>'
        )

    def _grid(self, top: float, places: range) -> str:
        parts = []
        for quarter in range(5):
            value = top * quarter / 4
            height = y_of(value, top)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{shown(value)}</text>')
        for index in sorted({0, len(places) // 3, 2 * len(places) // 3, len(places) - 1}):
            at = time_text(places[index], self.step_ms, places[-1] - places[0])
            place = x_of(index, len(places))
            anchor = "end" if place > WIDTH - 40 else "middle"
            parts.append(f'<text x="{place:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{at}</text>')
        return "".join(parts)

    def _lines(self, lines: Mapping[str, Sequence[float | None]], top: float) -> list[str]:
        parts = []
        for number, (name, values) in enumerate(lines.items()):
            colour, title = f"c{number % COLOURS}", f"<title>{escape(name)}</title>"
            if path := path_of(values, top):
                parts.append(f'<path class="{colour}" d="{path}">{title}</path>')
            parts += [
                f'<circle class="{colour}" cx="{x_of(index, len(values)):.1f}" cy="{y_of(value, top):.1f}" '
                f'r="{RADIUS}"><title>{escape(name)}: {shown(value)}</title></circle>'
                for index, value in lone(values)
            ]
        return parts


def values_of(line: Series, places: Iterable[int], without: Without) -> list[float | None]:
    """Return the values at all places."""
    values: list[float | None] = []
    last = None if without is Without.GAP else 0.0
    for place in places:
        value = line.get(place, last)
        if without is Without.LAST:
            last = value
        values.append(value)
    return values


def time_text(at_ms: int, step_ms: int, span_ms: int) -> str:
    """Return a time (UTC) as exactly as an axis of this step and span needs it."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    if step_ms >= DAY_MS:
        return at.strftime("%Y-%m-%d")
    if span_ms >= DAY_MS:
        return at.strftime("%m-%d %H:%M")
    if step_ms >= MINUTE_MS:
        return at.strftime("%H:%M")
    return at.strftime("%H:%M:%S") + (f".{at_ms % SECOND_MS // 100}" if step_ms < SECOND_MS else "")


def path_of(values: Sequence[float | None], top: float) -> str:
    """Return a line through all values, with gaps for None; a value between gaps has no line."""
    parts: list[str] = []
    alone = {index for index, _ in lone(values)}
    is_drawing = False
    for index, value in enumerate(values):
        if value is None or index in alone:
            is_drawing = False
            continue
        place = f"{x_of(index, len(values)):.1f},{y_of(value, top):.1f}"
        parts.append(f"{'L' if is_drawing else 'M'}{place}")
        is_drawing = True
    return "".join(parts)


def lone(values: Sequence[float | None]) -> list[tuple[int, float]]:
    """Return the values between gaps, with their places: no line leads to them."""
    around = [None, *values, None]
    return [
        (index, value)
        for index, value in enumerate(values)
        if value is not None and around[index] is None and around[index + 2] is None
    ]


def x_of(index: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (index / (count - 1) if count > 1 else 0.5)


def y_of(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def nice(value: float) -> float:
    """Return the next number that is 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value)


def shown(value: float) -> str:
    """Return a number with its significant digits."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.4g}M"
    if value >= 10_000:
        return f"{value / 1000:.4g}k"
    return f"{value:.4g}"
