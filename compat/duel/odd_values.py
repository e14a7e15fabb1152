"""Values that a client may send by mistake, and bodies that have some of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

Document = dict[str, Any]
# A key that is left out.
ABSENT: Final = object()
ODD: Final = st.sampled_from([None, "", "x", "é" * 200, 5, -1, 1.5, True, False, [], {}, ["x"], {"a": None}, ABSENT])
MISTAKES_MAX: Final = 2


@st.composite
def with_mistakes(draw: st.DrawFn, usual: Mapping[str, st.SearchStrategy[Any]]) -> Document:
    """Return a body with usual values, of which up to two become odd, and now and then an unknown key."""
    body = dict(draw(st.fixed_dictionaries(dict(usual))))
    for name, value in draw(st.lists(st.tuples(st.sampled_from(sorted(usual)), ODD), max_size=MISTAKES_MAX)):
        body[name] = value
    if draw(st.sampled_from([False, False, False, True])):
        body["unknown"] = 1
    return without_absent(body)


def without_absent(body: Document) -> Document:
    """Return a copy of a body without the keys that are left out."""
    return copy.deepcopy({name: value for name, value in body.items() if value is not ABSENT})
