"""Which build runs: pure Python, or the one whose modules on a message's way are compiled (setup.py)."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Final

# A module that the compiled build compiles.
SAMPLE: Final = "amqp_broker.amqp.message"


@cache
def implementation() -> str:
    """Return "pure Python" or "compiled"."""
    spec = find_spec(SAMPLE)
    is_source = spec is not None and spec.origin is not None and spec.origin.endswith(".py")
    return "pure Python" if is_source else "compiled"
