"""Walks of dicts and lists that are nested in each other, with a stack of their own.

A frame holds tables of 26 000 levels, which RabbitMQ takes. Python's stack holds a thousand calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def mapped(value: Any, key: Callable[[str], str], leaf: Callable[[Any], Any]) -> Any:
    """Return a copy of a value in which `key` has converted each key of a dict, and `leaf` what is no dict or list."""
    if not isinstance(value, (dict, list)):
        return leaf(value)
    outermost: Any = {} if isinstance(value, dict) else []
    rest = [(value, outermost)]

    def copied(item: Any) -> Any:
        if not isinstance(item, (dict, list)):
            return leaf(item)
        copy: Any = {} if isinstance(item, dict) else []
        rest.append((item, copy))
        return copy

    while rest:
        source, copy = rest.pop()
        if isinstance(source, dict):
            for name, item in source.items():
                copy[key(name)] = copied(item)
        else:
            copy.extend(map(copied, source))
    return outermost


def cut(value: Any, levels_max: int, instead: str) -> Any:
    """Return a value with `instead` in place of each dict and list that is inside of more than `levels_max` others."""
    if not isinstance(value, (dict, list)):
        return value
    if not levels_max:
        return instead
    if isinstance(value, dict):
        return {key: cut(item, levels_max - 1, instead) for key, item in value.items()}
    return [cut(item, levels_max - 1, instead) for item in value]


def levels(value: Any) -> int:
    """Return how many dicts and lists are around the innermost value; 0 for a value that is none."""
    depth, outer = 0, [value]
    while outer := [item for item in outer if isinstance(item, (dict, list))]:
        depth += 1
        outer = [item for block in outer for item in (block.values() if isinstance(block, dict) else block)]
    return depth


def joined(value: Any, parts: Callable[[Any], Iterator[Any]]) -> str:
    """Return the text of a nested value; `parts` yields texts, and inner values that it takes apart in their turn."""
    pieces: list[str] = []
    stack = [parts(value)]
    while stack:
        for part in stack[-1]:
            if not isinstance(part, str):
                stack.append(parts(part))
                break
            pieces.append(part)
        else:
            stack.pop()
    return "".join(pieces)
