"""A glob has two wildcards, and every text has a glob that matches it alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.broker.admin import globs

CHARACTERS = st.text(st.sampled_from("a*?[]!\\-^\n.é\udcff"), max_size=8)


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("order.*", ["order.", "order.paid.eu", "order.\n"], ["order", "Order.paid", "my order.paid"]),
        ("order.?", ["order.1", "order.*"], ["order.", "order.12"]),
        ("items[0]", ["items[0]"], ["items0", "items"]),
        ("[!a]*", ["[!a]", "[!a]b"], ["b", "a"]),
        (r"a\*", ["a*"], ["a", "ab", r"a\b"]),
        (r"a\?", ["a?"], ["ab", r"a\b"]),
        (r"a\\*", ["a\\", r"a\b"], ["a", "ab"]),
        (r"C:\temp\[1]", [r"C:\temp\[1]"], ["C:temp[1]"]),
        ("a\\", ["a\\"], ["a"]),
        ("", [""], ["a"]),
    ],
)
def test_only_the_star_and_the_question_mark_are_wildcards(glob: str, matching: list[str], others: list[str]) -> None:
    assert [text for text in [*matching, *others] if globs.matches(glob, text)] == matching


@given(CHARACTERS, CHARACTERS)
def test_a_text_whose_wildcards_and_backslashes_are_escaped_matches_itself_alone(text: str, other: str) -> None:
    glob = re.sub(r"[*?\\]", r"\\\g<0>", text)
    assert globs.matches(glob, text)
    assert globs.matches(glob, other) is (text == other)


@given(st.text(st.sampled_from("ab[]!-^.\\\n"), max_size=8).filter(lambda text: "\\\\" not in text))
def test_a_text_without_wildcards_matches_itself(text: str) -> None:
    assert globs.matches(text, text)
