"""Work without clocks: the lines of Python that run.

`LineCounter` counts each line that is run, each turn of a loop and each call, in this thread, by Python's tracing. A
call of C is one line, however long it takes: a sort, a copy of a list, a join of octets. Octets show a part of this:
the most that a turn has allocated at once (`tracemalloc`).
"""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """A turn of the loop: its lines, and the most octets that it had allocated at once."""

    lines: int
    octets: int


class LineCounter:
    """Counts the lines of what `run` calls, as one turn of `turns` per call."""

    def __init__(self, *, counts_lines: bool = True, counts_octets: bool = False, counts_places: bool = False) -> None:
        self.lines = 0
        # Lines by file and number, of the longest turn so far; and of the current one.
        self.places_of_longest: Counter[tuple[str, int]] = Counter()
        self._places: Counter[tuple[str, int]] | None = Counter() if counts_places else None
        self.turns: list[Turn] = []
        self.is_running = False
        # Tracing has octets of its own.
        self._counts_lines = counts_lines and not counts_octets
        self._counts_octets = counts_octets

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, and return its result. A call amid another belongs to its turn."""
        if self.is_running:
            return function(*arguments)
        before, octets_before, tracer = self.lines, 0, sys.gettrace()
        if self._counts_octets:
            tracemalloc.start()
            octets_before = tracemalloc.get_traced_memory()[0]
        self.is_running = True
        if self._counts_lines:
            sys.settrace(self._trace)
        try:
            return function(*arguments)
        finally:
            sys.settrace(tracer)
            self.is_running = False
            octets = 0
            if self._counts_octets:
                octets = tracemalloc.get_traced_memory()[1] - octets_before
                tracemalloc.stop()
            self._end_turn(Turn(self.lines - before, octets))

    def _end_turn(self, turn: Turn) -> None:
        if self._places is not None:
            if turn.lines > max((before.lines for before in self.turns), default=0):
                self.places_of_longest = self._places
            self._places = Counter()
        self.turns.append(turn)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        self.lines += 1
        if self._places is not None:
            self._places[frame.f_code.co_filename, frame.f_lineno] += 1
        return self._trace
