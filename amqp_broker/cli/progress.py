"""A bar on stderr for what takes longer than a second, if a person looks at it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DELAY_S = 1.0
STEP_S = 0.1
WIDTH = 30


@contextmanager
def showing_progress(what: str, count: int = 0) -> Iterator[Callable[[], None]]:
    """Show how far something has come, of `count` steps or (0) of nobody knows how many.

    What is yielded is called after each step.
    """
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1

    if not sys.stderr.isatty():
        yield advance
        return
    over = threading.Event()

    def show() -> None:
        if over.wait(DELAY_S):
            return
        ticks = 0
        while not over.wait(STEP_S):
            ticks += 1
            print(f"\r{what} {bar(done, count, ticks)}", end="", file=sys.stderr, flush=True)
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield advance
    finally:
        over.set()
        shower.join()


def bar(done: int, count: int, ticks: int) -> str:
    """A bar; where the end is not known, something that moves."""
    if count:
        full = WIDTH * min(done, count) // count
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {done}/{count}"
    at = ticks % WIDTH
    return f"[{'.' * at}#{'.' * (WIDTH - at - 1)}]"
