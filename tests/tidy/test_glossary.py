"""Each word of the glossary is used, both in prose and in the code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
ROWS = re.findall(r"^\| ([a-z ]+) \| (.+) \| (`\w+`(?:, `\w+`)*) \|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)


@cache
def code() -> str:
    """Return all source of the broker."""
    return "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "amqp_broker").rglob("*.py")))


@cache
def prose() -> str:
    """Return the text of all pages but the glossary, and the sources, in which `_` separates words."""
    pages = [path for path in (*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))) if path != GLOSSARY]
    text = "\n".join([*(path.read_text("utf-8") for path in pages), code()])
    return re.sub(r"[\s_]+", " ", text).lower()


def test_the_rows_are_found_and_sorted() -> None:
    words = [word for word, _, _ in ROWS]
    assert len(words) == GLOSSARY.read_text("utf-8").count("\n|") - 2
    assert words == sorted(set(words))


@pytest.mark.parametrize(("word", "names"), [(word, names) for word, _, names in ROWS])
def test_a_word_is_used(word: str, names: str) -> None:
    is_a_class = f"`{word.title().replace(' ', '')}`" in names
    assert is_a_class or re.search(rf"\b{word}", prose())
    for name in re.findall(r"\w+", names):
        assert re.search(rf"\b{name}\b", code()), name


def test_the_glossary_is_in_the_navigation() -> None:
    assert ": glossary.md" in (ROOT / "mkdocs.yml").read_text("utf-8")
