r"""Globs: patterns for routing keys and names, in which `*` stands for any characters and `?` for one.

Every other character stands for itself, brackets included. A backslash takes the `*`, `?` or `\` after it literally;
before any other character it stands for itself.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

DEFAULT_EXCHANGE_NAME: Final = "amq.default"
TRANSLATED_MAX: Final = 1024
_ESCAPED: Final = frozenset("*?\\")


def matches(glob: str, text: str) -> bool:
    """Return whether a glob matches the whole of a text, upper and lower case told apart."""
    return fnmatchcase(text, _translated(glob))


def exchange_name(name: str) -> str:
    """Return the name of an exchange that a filter names: `amq.default` stands for the default exchange."""
    return "" if name == DEFAULT_EXCHANGE_NAME else name


@lru_cache(maxsize=TRANSLATED_MAX)
def _translated(glob: str) -> str:
    """Return the pattern of fnmatch, which knows classes of characters, but no backslash."""
    parts: list[str] = []
    characters = iter(glob)
    previous_is_backslash = False
    for character in characters:
        if previous_is_backslash:
            previous_is_backslash = False
            if character in _ESCAPED:
                parts[-1] = f"[{character}]"
                continue
        previous_is_backslash = character == "\\"
        parts.append("[[]" if character == "[" else character)
    return "".join(parts)
