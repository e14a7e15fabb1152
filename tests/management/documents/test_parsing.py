from __future__ import annotations

import pytest

from amqp_broker.management.documents.parsing import NotJSON, parse


def test_an_empty_file_is_an_empty_document_and_a_byte_order_mark_is_ignored() -> None:
    assert parse(b"") == {}
    assert parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"x", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"a": ', "not JSON: Expecting value: line 1 column 7 (char 6)"),
        (b"\xff", "not JSON: the text is not valid UTF-8"),
        (b'"\\ud800"', "not JSON: the text is not valid UTF-8"),
        (b"[" * 2000, "not JSON: Expecting value: line 1 column 2001 (char 2000)"),
        (b"[" * 100_000, "not JSON: the values are nested deeper than 100000 levels"),
        (b"[" * 2000 + b"NaN" + b"]" * 2000, "not JSON: NaN is not a JSON number"),
        (b"[" * 2000 + b'"\\ud800"' + b"]" * 2000, "not JSON: the text is not valid UTF-8"),
        (b"NaN", "not JSON: NaN is not a JSON number"),
        (b"-Infinity", "not JSON: -Infinity is not a JSON number"),
    ],
)
def test_an_invalid_document_is_refused_with_the_reason(octets: bytes, reason: str) -> None:
    with pytest.raises(NotJSON) as caught:
        parse(octets)
    assert str(caught.value) == reason


def test_a_document_deeper_than_pythons_stack_is_read() -> None:
    found = parse(b'{"a":' * 10_000 + b"7" + b"}" * 10_000)
    for _ in range(10_000):
        found = found["a"]
    assert found == 7


def test_a_number_of_ten_thousand_digits_is_refused() -> None:
    with pytest.raises(NotJSON):
        parse(b"9" * 10_000)


def test_escaped_characters_are_decoded() -> None:
    assert parse(b'"\\u00e9\\ud83d\\ude00"') == "é\U0001f600"
