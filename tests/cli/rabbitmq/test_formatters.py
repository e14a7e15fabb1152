"""Texts that RabbitMQ 3.10.8 printed for the same values (compat/ctl compares more of them)."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.cli.rabbitmq.columns import Atom, Table
from amqp_broker.cli.rabbitmq.formatters import FORMATTERS, amqp_type, bold, erlang, format_rows, heading, plain

ARGUMENTS = Table({"x-max-length": 5, "x-message-ttl": 1000000, "x-dead-letter-exchange": "amq.direct"})
ROWS = [["q2", 0, ARGUMENTS], ["q1", 5, Table()], ["qq", 0, Table({"x-queue-type": "quorum"})]]
NAMES = ["name", "messages", "arguments"]


def test_a_table_has_tabs_and_a_header() -> None:
    text = format_rows(NAMES, ROWS[1:], "table", has_header=True)
    assert text == 'name\tmessages\targuments\nq1\t5\t[]\nqq\t0\t[{"x-queue-type","quorum"}]\n'
    assert format_rows(NAMES, ROWS[1:2], "", has_header=False) == "q1\t5\t[]\n"
    assert format_rows(NAMES, [], "", has_header=True) == ""


def test_json_has_a_line_for_each_row_and_types_of_fields() -> None:
    assert format_rows(NAMES, ROWS, "json", has_header=True) == (
        '[\n{"name":"q2","messages":0,"arguments":[["x-max-length","signedint",5],'
        '["x-message-ttl","signedint",1000000],["x-dead-letter-exchange","longstr","amq.direct"]]}\n'
        ',{"name":"q1","messages":5,"arguments":[]}\n'
        ',{"name":"qq","messages":0,"arguments":[["x-queue-type","longstr","quorum"]]}\n]\n'
    )
    assert format_rows(NAMES, [], "json", has_header=True) == "[\n]\n"


def test_csv_quotes_everything() -> None:
    assert format_rows(NAMES, ROWS[2:], "csv", has_header=True) == (
        '"name","messages","arguments"\n"qq","0","[{""x-queue-type"",""quorum""}]"\n'
    )


def test_erlang_terms_are_wrapped_as_by_erlang() -> None:
    assert format_rows(NAMES, ROWS, "erlang", has_header=True) == (
        '[[{name,<<"q2">>},\n'
        "  {messages,0},\n"
        '  {arguments,[{<<"x-max-length">>,signedint,5},\n'
        '              {<<"x-message-ttl">>,signedint,1000000},\n'
        '              {<<"x-dead-letter-exchange">>,longstr,<<"amq.direct">>}]}],\n'
        ' [{name,<<"q1">>},{messages,5},{arguments,[]}],\n'
        ' [{name,<<"qq">>},\n'
        "  {messages,0},\n"
        '  {arguments,[{<<"x-queue-type">>,longstr,<<"quorum">>}]}]]\n'
    )


def test_a_pretty_table_is_drawn_with_the_terminals_lines() -> None:
    rows: list[list[Any]] = [["bob", []], ["alice", [Atom("management"), Atom("custom")]]]
    assert format_rows(["user", "tags"], rows, "pretty_table", has_header=True) == (
        "\x1b(0lqqqqqqqwqqqqqqqqqqqqqqqqqqk\x1b(B\n"
        "\x1b(0x\x1b(B \x1b[1muser\x1b[0m  \x1b(0x\x1b(B \x1b[1mtags\x1b[0m             \x1b(0x\x1b(B\n"
        "\x1b(0tqqqqqqqnqqqqqqqqqqqqqqqqqqu\x1b(B\n"
        "\x1b(0x\x1b(B bob   \x1b(0x\x1b(B                  \x1b(0x\x1b(B\n"
        "\x1b(0tqqqqqqqnqqqqqqqqqqqqqqqqqqu\x1b(B\n"
        "\x1b(0x\x1b(B alice \x1b(0x\x1b(B managementcustom \x1b(0x\x1b(B\n"
        "\x1b(0mqqqqqqqvqqqqqqqqqqqqqqqqqqj\x1b(B\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.5, "0.5"),
        ([Atom("a"), Atom("b")], "[a, b]"),
        (Table({"a": {"b": True}, "c": [1, "d"]}), '[{"a",[{"b",true}]},{"c",[1,"d"]}]'),
    ],
)
def test_values_of_all_kinds_are_shown_in_a_table(value: object, text: str) -> None:
    assert plain(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "<<>>"),
        ('a"b', '<<"a\\"b">>'),
        ("ü", '<<"ü"/utf8>>'),
        (Atom("a_b"), "a_b"),
        (Atom("éa"), "éa"),
        (Atom("д"), "'д'"),
        (Atom("A b"), "'A b'"),
        (Atom(""), "''"),
        (Atom("it's \\"), r"'it\'s \\'"),
        (1e-5, "1.0e-05"),
        (1.5e300, "1.5e+300"),
        (0.6, "0.6"),
    ],
)
def test_values_of_all_kinds_are_written_as_erlang_terms(value: object, text: str) -> None:
    assert erlang(value) == text


@pytest.mark.parametrize(
    ("value", "name"),
    [(1, "signedint"), (2**40, "long"), (True, "bool"), ("", "longstr"), (1.5, "double"), (None, "void")],
)
def test_json_values_have_types_of_amqp(value: object, name: str) -> None:
    assert amqp_type(value) == name


def test_no_color_disables_bold_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bold("Usage") == "\x1b[1mUsage\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert bold("Usage") == "Usage"


def test_headings_are_bold_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heading("Usage") == "Usage"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert heading("Usage") == bold("Usage")


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_values_of_any_depth_are_shown(formatter: str) -> None:
    deep: Any = "end"
    for _ in range(2000):
        deep = {"x": [deep]}
    text = format_rows(["arguments"], [[Table(deep)]], formatter, has_header=True)
    assert text.count("x") >= 2000
    assert "end" in text
