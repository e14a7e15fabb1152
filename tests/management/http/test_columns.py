from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.http.columns import selected
from amqp_broker.management.http.listing import Paged

ROWS = [{"vhost": "/", "name": "b", "n": {"m": 2}}, {"vhost": "/", "name": "a", "n": {"m": 10}}]


@pytest.mark.parametrize(
    ("columns", "value", "expected"),
    [
        ("name", ROWS[0], {"name": "b"}),
        ("name,n.m", ROWS[0], {"name": "b", "n": {"m": 2}}),
        ("n.zork", ROWS[0], {"n": {}}),
        ("n,n.m", ROWS[0], {"n": {"m": 2}}),
        ("n.m,n", ROWS[0], {"n": {"m": 2}}),
        ("name.x", ROWS[0], {"name": "b"}),
        ("", ROWS[0], {}),
        (",.,", ROWS[0], {}),
        ("name", ROWS[:1], [{"name": "b"}]),
        ("name", Paged(page=1, items=ROWS[:1]), {"page": 1, "items": [{"name": "b"}]}),
        ("a", [], []),
    ],
)
def test_columns_are_selected_in_lists_and_objects(columns: str, value: Any, expected: Any) -> None:
    assert finished(selected({"columns": columns}, value)) == expected


def test_without_the_parameter_all_columns_are_answered() -> None:
    assert finished(selected({}, ROWS)) is ROWS


def test_the_rows_of_a_disposable_list_are_freed_when_their_columns_are_selected() -> None:
    rows = Disposable(ROWS)
    assert finished(selected({"columns": "name"}, rows)) == [{"name": "b"}, {"name": "a"}]
    assert rows == []
