from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.management.documents.parsing import NotJSON, parse, parsing
from tests.management.documents.test_nested_json import VALUES
from tests.stepping import counted


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
        (b'{"queues": [{"arguments": {"a": 1e999}}]}', "not JSON: 1e999 is too large"),
        (b"[" * 2000 + b"-1.5e400" + b"]" * 2000, "not JSON: -1.5e400 is too large"),
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


def outcome(read: Callable[[], Any]) -> Any:
    """Return what is read, or the reason why it is not JSON."""
    try:
        return read()
    except ValueError as error:
        return ("not JSON", str(error).removeprefix("not JSON: "))


@given(
    st.dictionaries(st.text(max_size=3), st.lists(VALUES, max_size=4) | VALUES, max_size=4),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_an_object_with_lists_is_read_as_pythons_reader_reads_it(
    value: dict[str, Any], indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    assert parse(text.encode()) == json.loads(text)


@given(st.dictionaries(st.sampled_from("ab"), st.lists(st.integers(0, 3), max_size=3), max_size=2), st.data())
def test_an_object_that_was_damaged_is_refused_as_pythons_reader_refuses_it(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.text('[]{},:" 1\n', max_size=2)) + text[data.draw(st.integers(at, at + 1)) :]
    expected = outcome(lambda: json.loads(text) if text else {})
    assert outcome(lambda: parse(text.encode())) == expected


def test_the_lists_of_an_object_are_read_in_steps() -> None:
    text = json.dumps({"name": "x", "queues": [{"name": str(number)} for number in range(50)], "bindings": [1, 2]})
    assert sum(1 for _ in parsing(text.encode())) == 52


@pytest.mark.parametrize("text", [b'{"a": [1, "\\ud800"]}', b'{"a": {"\\udcff": 1}}'])
def test_a_lone_surrogate_in_an_object_is_refused(text: bytes) -> None:
    with pytest.raises(NotJSON, match="the text is not valid UTF-8"):
        parse(text)


@pytest.mark.parametrize("octets", [b"[" + b"{}," * 100_000 + b"{}]", b'{"\\u0061": ["' + b"x" * 200_000 + b'"]}'])
def test_another_long_document_is_read_in_steps(octets: bytes) -> None:
    _, document = counted(parsing(octets))
    assert document == json.loads(octets)


def test_a_long_document_that_is_no_definitions_has_a_limit_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqp_broker.management.documents.parsing.VALUES_MAX", 1000)
    with pytest.raises(NotJSON) as caught:
        parse(b"[" + b"{}," * 100_000 + b"{}]")
    assert str(caught.value) == "not JSON: the document has more than 1000 values"
