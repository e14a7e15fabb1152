"""A progress bar on stderr for work of more than a second, if stderr is a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DELAY_S = 1.0
STEP_S = 0.1
WIDTH = 30


class Progress:
    """Steps that are done, of `total` steps; 0 if the total is unknown."""

    def __init__(self, total: int = 0) -> None:
        self.done = 0
        self.total = total

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
    if not sys.stderr.isatty():
        yield progress
        return
    over = threading.Event()

    def show() -> None:
        if over.wait(DELAY_S):
            return
        ticks = 0
        while not over.wait(STEP_S):
            ticks += 1
            print(f"\r{label} {bar(progress.done, progress.total, ticks)}", end="", file=sys.stderr, flush=True)
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield progress
    finally:
        over.set()
        shower.join()


def bar(done: int, total: int, ticks: int) -> str:
    """Return a bar; a moving mark if the total is unknown."""
    if total:
        full = WIDTH * min(done, total) // total
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {done}/{total}"
    at = ticks % WIDTH
    return f"[{'.' * at}#{'.' * (WIDTH - at - 1)}]"
