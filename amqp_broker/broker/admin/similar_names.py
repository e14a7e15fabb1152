"""A question for a name that does not exist: whether a similar one is meant."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

# Names that are compared, and names in a question.
COMPARED_MAX: Final = 500
NAMED_MAX: Final = 3
# Likeness from which on a name is close, from 0 to 1 (difflib).
LIKENESS_MIN: Final = 0.75


def did_you_mean(name: str, names: Iterable[str], before: str = "") -> str:
    """Return a question that names the closest of `names`, after the text `before`; "" if none is close."""
    from difflib import get_close_matches  # only failures need it

    closest = get_close_matches(name, list(islice(names, COMPARED_MAX)), NAMED_MAX, LIKENESS_MIN)
    return f"{before}did you mean {' or '.join(map(repr, closest))}?" if closest else ""
