"""A page of docs/ is short enough to be read in a few minutes; only generated pages may be longer."""

from __future__ import annotations

import re

from tests.docs.blocks import PROJECT

WORDS_MAX = 900

# Longer pages, each with the reason.
REASONS = {
    "commands.md": "generated: an entry for each command",
    "settings.md": "generated: a paragraph for each setting",
}


def prose_words(text: str) -> int:
    """Return the number of words outside blocks of code, tables and comments."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->|^\|[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return len(text.split())


def long_pages() -> dict[str, int]:
    """Return the pages with too many words, and the numbers of their words."""
    pages = sorted((PROJECT / "docs").glob("*.md"))
    counts = {page.name: prose_words(page.read_text("utf-8")) for page in pages}
    return {name: count for name, count in counts.items() if count > WORDS_MAX}


def test_no_page_is_too_long_without_a_reason() -> None:
    assert {name: count for name, count in long_pages().items() if name not in REASONS} == {}


def test_every_reason_is_still_needed() -> None:
    assert set(REASONS) <= set(long_pages())


def test_code_tables_and_comments_are_not_counted() -> None:
    page = "# One two\n\n<!-- not run: a b -->\n```sh\nthree four\n```\n\n| five | six |\n|---|---|\n\nSeven.\n"
    assert prose_words(page) == 4
