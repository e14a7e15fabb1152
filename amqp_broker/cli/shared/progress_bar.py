"""A progress bar on a terminal for work of more than a second, and the time that it took."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

DELAY_S = 1.0
STEP_S = 0.1


class Progress:
    """Steps that are done, of `total` steps (0 if the total is unknown), and a note to show beside them."""

    def __init__(self, total: int = 0) -> None:
        self.done = 0
        self.total = total
        self.note = ""

    def step(self, total: int | None = None) -> None:
        """Count a step; `total` replaces the known total."""
        self.move_to(self.done + 1, self.total if total is None else total)

    def move_to(self, done: int, total: int) -> None:
        """Set both counts."""
        self.done, self.total = done, total


@contextmanager
def showing_progress(label: str, total: int = 0) -> Iterator[Progress]:
    """Show the progress of the work in this context, which calls `step` or `move_to`."""
    progress = Progress(total)
    # Standard error may be closed.
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield progress
        return
    over = threading.Event()
    shower = threading.Thread(target=_show, args=(label, progress, over), daemon=True)
    shower.start()
    try:
        yield progress
    finally:
        over.set()
        shower.join()


def lasted(began: float) -> str:
    """Return the time since `began` (`time.monotonic`), such as `0.3 s` or `2 min 5 s`."""
    seconds = time.monotonic() - began
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if seconds >= 60 else f"{seconds:.1f} s"


def counted(count: int, what: str, began: float) -> str:
    """Return a count with its time and rate."""
    seconds = max(time.monotonic() - began, 0.001)
    return f"{count:,} {what}{'' if count == 1 else 's'} in {lasted(began)} ({count / seconds:,.0f}/s)"


def _show(label: str, progress: Progress, over: threading.Event) -> None:
    if over.wait(DELAY_S):
        return
    # Only work that takes long pays for the import.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    texts = (MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[note]}"))
    columns = (TextColumn("{task.description}"), BarColumn(), *texts)
    bars = Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    with bars:
        task = bars.add_task(label, total=None, note="")
        while not over.wait(STEP_S):
            bars.update(task, completed=progress.done, total=progress.total or None, note=progress.note)
