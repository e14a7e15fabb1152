"""Texts of clients and tests in HTML: what a reader cannot see is written out."""

from __future__ import annotations

import re
from html import escape
from typing import Final

# Colours of a terminal.
_COLOURS: Final = re.compile(r"\x1b\[[\d;]*m")
# Letters that are written from right to left, and what keeps them from turning others around.
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_ISOLATE: Final = "\u2068"
_END: Final = "\u2069"


def shown(text: str) -> str:
    """Return text for HTML, with characters that cannot be printed as `\\x00`; lines and tabs stay."""
    text = _COLOURS.sub("", text)
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() or letter in "\n\t" else _written(letter) for letter in text)
    if _RIGHT_TO_LEFT.search(text):
        text = f"{_ISOLATE}{text}{_END}"
    return escape(text)


def _written(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
