from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from amqp_broker.amqp.deduplication_key import HEADER, KEY_BYTES_MAX, header_name, key_of
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Byte, Long, Timestamp


def key(value: Any) -> bytes | None:
    return key_of({"h": value}, "h")


@pytest.mark.parametrize(("one", "other"), [(1, Long(1)), (Byte(1), Timestamp(1)), ("a", b"a"), (1.5, 1.5)])
def test_equal_values_of_related_types_have_one_key(one: Any, other: Any) -> None:
    assert key(one) == key(other)


def test_values_of_different_types_have_different_keys() -> None:
    values = [1, 1.0, "1", True, None, "true", "", 0, False, "v", "i1", -1]
    assert len({key(value) for value in values}) == len(values)


@pytest.mark.parametrize("value", [{"a": 1}, ["a"], Decimal(1)])
def test_a_value_with_parts_is_no_key(value: Any) -> None:
    assert key(value) is None


def test_a_message_without_the_header_has_no_key() -> None:
    assert key_of({}, "h") is None


def test_long_values_have_short_keys_that_differ() -> None:
    keys = {key("x" * size) for size in range(20, 2000)}
    assert len(keys) == 1980
    assert max(len(one) for one in keys if one is not None) == KEY_BYTES_MAX


def test_an_argument_names_another_header() -> None:
    assert header_name({}) == HEADER
    assert header_name({HEADER: "id"}) == "id"


@pytest.mark.parametrize("value", ["", 1, True, None, ["id"]])
def test_the_name_of_the_header_is_a_text(value: Any) -> None:
    with pytest.raises(PreconditionFailed, match="must be the name of a header"):
        header_name({HEADER: value})
