"""Planting bugs: each is a function that replaces a method or function of the broker by one that is wrong.

They are planted by replacing attributes, so this needs the interpreted code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amqp_broker.broker import window

# Room for one or two small messages, so that windows page at every chance.
WINDOW_BYTES = 700

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__] = function
    return function


def with_small_windows(patch: pytest.MonkeyPatch) -> None:
    for name in ("PORTION_BYTES", "WINDOW_BYTES_MAX", "WINDOWS_BYTES_MAX"):
        patch.setattr(window, name, WINDOW_BYTES)


def replace(patch: pytest.MonkeyPatch, owner: object, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a method, or a module's function, by what `make` makes of it."""
    patch.setattr(owner, name, make(getattr(owner, name)))
