"""Narrow a value that is None by type only, as most fields of a method that pamqp decodes."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value; AssertionError if there is none."""
    assert value is not None
    return value
