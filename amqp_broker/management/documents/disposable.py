"""Lists whose items are freed as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


class Disposable(list[T]):
    """A list that was made for one reader, which empties it by `taken`.

    Freeing the thousands of rows of an answer takes milliseconds, so each is freed in the step that is done with it.
    """

    def taken(self) -> Iterator[T]:
        """Take out the items one by one, and yield each."""
        self.reverse()
        while self:
            yield self.pop()
