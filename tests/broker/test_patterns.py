from __future__ import annotations

import pytest

from amqp_broker.broker import patterns
from amqp_broker.errors import InvalidParameter


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (".*", "anything", True),
        ("", "anything", True),
        ("orders", "my-orders-2", True),
        ("^orders$", "orders2", False),
        ("^(?!amq\\.).*", "amq.topic", False),
        ("(?i)^ORDERS", "orders", True),
        ("^\\d+$", "12", True),
    ],
)
def test_a_pattern_matches_anywhere_in_a_text(pattern: str, text: str, expected: bool) -> None:
    assert patterns.matches(pattern, text) is expected


def test_classes_of_characters_are_those_of_ascii() -> None:
    assert not patterns.matches("^\\w$", "é")
    assert not patterns.matches("^\\d$", "٣")


def test_the_empty_pattern_of_a_permission_permits_the_empty_text_only() -> None:
    assert patterns.permits("", "")
    assert not patterns.permits("", "a")
    assert patterns.permits("a", "a")


def test_what_is_no_regular_expression_is_refused_with_a_reason() -> None:
    with pytest.raises(InvalidParameter) as caught:
        patterns.check("a[")
    assert str(caught.value) == "regular expression 'a[' is invalid: unterminated character set at position 1"


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="7 is no regular expression"):
        patterns.check(7)


def test_a_broken_pattern_matches_nothing() -> None:
    assert not patterns.matches("[", "[")
