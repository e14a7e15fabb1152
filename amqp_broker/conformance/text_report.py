"""The report on the terminal, and the line that shows the progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from amqp_broker.conformance.judging import Judged, Verdict
from amqp_broker.conformance.results import Results, sentence_of, side_by_side

# Rows of a difference that are shown; the HTML report has all.
ROWS_MAX = 3


class Progress:
    """A line that is written again and again, on a terminal only."""

    def __init__(self, count: int, stream: TextIO | None = None) -> None:
        self._count = count
        self._stream = stream or sys.stderr
        self._is_shown = self._stream.isatty()
        self._done = self._differing = 0

    def add(self, judged: Judged) -> None:
        self._done += 1
        self._differing += judged.verdict is Verdict.DIFFERS
        self._write(f"{self._done} of {self._count} scenarios, {self._differing} differ")

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self._is_shown:
            self._stream.write(f"\r\033[K{text}")
            self._stream.flush()


def text_report(results: Results) -> Iterator[str]:
    """Yield the lines: the differences, the reasons to skip, and a table of the chapters."""
    for chapter in results.chapters():
        for one in chapter.judged:
            if one.verdict is Verdict.DIFFERS:
                yield from _difference(chapter.title, one)
    if reasons := results.reasons_to_skip():
        yield "Skipped:"
        yield from (f"  {count:4}  {reason}" for reason, count in reasons)
        yield ""
    yield from _table(results)


def _difference(title: str, judged: Judged) -> Iterator[str]:
    yield f"{title}: {sentence_of(judged.scenario)}"
    yield f"  {'; '.join(judged.places)}"
    rows = [row for row in side_by_side(judged.expected, judged.seen) if row.differs]
    for row in rows[:ROWS_MAX]:
        yield f"    RabbitMQ    {row.expected if row.expected is not None else '(nothing)'}"
        yield f"    this broker {row.seen if row.seen is not None else '(nothing)'}"
    if len(rows) > ROWS_MAX:
        yield f"    … and {len(rows) - ROWS_MAX} more lines"
    yield ""


def _table(results: Results) -> Iterator[str]:
    chapters = results.chapters()
    width = max([len(chapter.title) for chapter in chapters] + [len("Chapter")])
    yield f"{'Chapter':{width}}  {'agree':>6} {'differ':>6} {'skipped':>7}"
    for chapter in chapters:
        yield f"{chapter.title:{width}}  " + _counts(chapter.count)
    yield f"{'All':{width}}  " + _counts(results.count)


def _counts(count: Callable[[Verdict], int]) -> str:
    return f"{count(Verdict.AGREES):6} {count(Verdict.DIFFERS):6} {count(Verdict.SKIPPED):7}"
