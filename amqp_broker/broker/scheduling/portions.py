"""Long work in portions, between which other clients are served.

A walk over more than a few hundred objects or messages is a generator, `Steps`: it yields wherever others may be
served, and returns its result. The caller chooses: `finished` runs it at once, `Work` for a few milliseconds at a time.

Between two steps anything may change. So a walk goes over the objects that were there when it began, each as it is when
its turn comes; an object that was deleted meanwhile is left out. Definitions and snapshots must fit together, and have
everything as it was at their first step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]

# Work between two looks at the sockets.
BUDGET_S: Final = 0.001
# The work of one turn of the loop (`Broker.work`) after which others are served; it takes about 10 ms. A delivery of a
# message with several queues is 1, as is a binding that is looked at.
WORK_MAX: Final = 8192
# The work of giving up a message, of routing a dead letter, and of pushing it to a target; and octets that count as 1:
# of a message, of properties whose history is known, and of properties that are read.
GIVE_UP_WORK: Final = 4
DEAD_LETTER_WORK: Final = 8
TARGET_WORK: Final = 4
COPIED_BYTES: Final = 4096
KNOWN_BYTES: Final = 64
READ_BYTES: Final = 8
# Octets of dead letters of a vhost from which on they must not multiply in memory.
FLOOD_BYTES: Final = 16 * 1024 * 1024
# Octets of a message beside its content.
LETTER_BYTES: Final = 512
# Routing keys of a message that are matched in one step.
KEYS_AT_ONCE: Final = 4


def finished(steps: Steps[T]) -> T:
    """Run all steps at once, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def popping(items: deque[T]) -> Iterator[T]:
    """Take out the items one by one, and yield each.

    Freeing thousands of objects takes milliseconds, so each is freed in the step that is done with it.
    """
    while items:
        yield items.popleft()


class Work(Generic[T]):
    """Steps that run in portions. `clock` returns seconds; `result` is there when all steps are done."""

    result: T

    def __init__(self, steps: Steps[T], clock: Callable[[], float], budget_s: float = BUDGET_S) -> None:
        self._steps = steps
        self._clock = clock
        self._budget_s = budget_s

    def run_portion(self) -> bool:
        """Run steps until the budget is used up; return whether all are done."""
        steps, clock = self._steps, self._clock
        end_s = clock() + self._budget_s
        try:
            next(steps)
            while clock() < end_s:
                next(steps)
        except StopIteration as end:
            self.result = end.value
            return True
        return False

    def close(self) -> None:
        """End the steps, which may clean up after themselves."""
        self._steps.close()
