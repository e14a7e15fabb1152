from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.management.documents import nested_json
from amqp_broker.management.documents.nested_json import LEVELS_MAX, TooDeep

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_pythons_reader_reads_the_written_value(value: Any) -> None:
    assert json.loads(nested_json.write(value, json.dumps)) == value


@given(VALUES, st.sampled_from([None, 1]))
def test_the_text_of_pythons_writer_is_read(value: Any, indent: int | None) -> None:
    assert nested_json.read(json.dumps(value, indent=indent)) == value


@given(VALUES, st.data())
def test_a_text_that_was_damaged_is_read_as_pythons_reader_reads_it(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.text('[]{},:" 1', max_size=2)) + text[data.draw(st.integers(at, at + 1)) :]
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"line \d+ column \d+"):
            nested_json.read(text)
    else:
        assert nested_json.read(text) == expected


@pytest.mark.parametrize("text", ["[1,]", "{,}", '{"a"}', '{"a":1,}', "[1}", "[1", "{", "[] []", "", "{1:2}", "nul"])
def test_a_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        nested_json.read(text)


def test_of_a_key_that_occurs_twice_the_last_value_counts() -> None:
    assert nested_json.read('{"a": 1, "a": 2}') == {"a": 2}


def test_a_text_of_the_most_levels_is_read_and_written() -> None:
    text = "[" * (LEVELS_MAX - 1) + "]" * (LEVELS_MAX - 1)
    assert nested_json.write(nested_json.read(text), json.dumps) == text


def test_a_text_with_more_levels_is_refused() -> None:
    with pytest.raises(TooDeep, match="deeper than 100000 levels"):
        nested_json.read("[" * 1_000_000)
