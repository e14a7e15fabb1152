from __future__ import annotations

import pytest

from amqp_broker.cli.rabbitmq.words import is_number, path_of


@pytest.mark.parametrize(("text", "expected"), [("3", True), ("0.5", True), ("-1", False), ("1.2.3", False)])
def test_a_number_has_digits_and_one_point_at_most(text: str, expected: bool) -> None:
    assert is_number(text) is expected


def test_a_name_is_quoted_for_a_path() -> None:
    assert path_of("/a b.ü~") == "%2Fa%20b.%C3%BC~"
