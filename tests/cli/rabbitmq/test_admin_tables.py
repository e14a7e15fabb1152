from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.cli.rabbitmq.admin_tables import flattened, print_list

ITEMS: list[dict[str, Any]] = [
    {"name": "q", "durable": True, "args": {"a": {"b": 1}}, "tags": ["x", "y"]},
    {"name": "qq", "durable": None},
]


def printed(capsys: pytest.CaptureFixture[str], style: str, *columns: str, is_quiet: bool = False) -> str:
    print_list(ITEMS, columns, style, 1, (), is_quiet)
    return capsys.readouterr().out


def test_a_table_has_borders(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "table", "name", "durable") == (
        "+------+---------+\n"
        "| name | durable |\n"
        "+------+---------+\n"
        "| q    | True    |\n"
        "| qq   |         |\n"
        "+------+---------+\n"
    )


def test_lists_are_printed_in_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "tsv", "name", "tags") == "name\ttags\nq\tx y\nqq\t\n"
    assert printed(capsys, "tsv", "name", is_quiet=True) == "q\nqq\n"
    assert printed(capsys, "kvp", "name") == 'name="q"\nname="qq"\n'
    assert printed(capsys, "bash", "name") == "q qq\n"
    assert printed(capsys, "long", "name").splitlines()[3] == "name: q"
    assert printed(capsys, "raw_json").startswith('[{"name":"q","durable":true,')


def test_an_empty_list_has_a_message_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    print_list([], ("name",), "table", 1, (), False)
    print_list([], ("name",), "table", 1, (), True)
    assert capsys.readouterr().out == "No items\n"


def test_nested_values_are_columns_up_to_a_depth() -> None:
    assert [name for name, _ in flattened(ITEMS[0], 1, ())] == ["name", "durable", "tags"]
    assert dict(flattened(ITEMS[0], 3, ()))["args.a.b"] == 1
    assert dict(flattened(ITEMS[0], 1, ("args",)))["args"] == '{"a": {"b": 1}}'
