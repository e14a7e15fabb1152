"""Planted bugs: functions that replace a method or function of the broker by a wrong one.

They are planted by replacing attributes, so this needs the interpreted code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amqp_broker.broker.durability import paged_buffer as buffer

# Room for one or two small messages, so that buffers page at every chance.
BUFFER_BYTES = 700

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__] = function
    return function


def with_small_buffers(patch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE_BYTES", "BUFFER_BYTES_MAX", "BUFFERS_BYTES_MAX"):
        patch.setattr(buffer, name, BUFFER_BYTES)
    patch.setattr(buffer, "DISCARDED_MIN", 2)


def replace(patch: pytest.MonkeyPatch, owner: object, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a method or a module's function by the result of `make`."""
    patch.setattr(owner, name, make(getattr(owner, name)))
