"""The formats of RabbitMQ's tools for lists and values: table, json, csv, pretty_table, erlang."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from amqp_broker.cli.rabbitmq.columns import Atom, Table

FORMATTERS = ("table", "json", "csv", "pretty_table", "erlang")
# Length at which Erlang breaks a line.
ERLANG_LINE_LENGTH = 80
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
# Switch a terminal to the character set of lines, and back to letters.
LINES, LETTERS = "\x1b(0", "\x1b(B"


def bold(text: str) -> str:
    """Return a text in bold, unless NO_COLOR is set (no-color.org)."""
    return text if os.environ.get("NO_COLOR") else f"{BOLD}{text}{PLAIN}"


def heading(text: str) -> str:
    """Return a heading: in bold at a terminal."""
    return bold(text) if sys.stdout.isatty() else text


def format_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], formatter: str, *, has_header: bool) -> str:
    """Return a list in one of the formats; each line ends with a line feed."""
    if formatter == "json":
        items = [json_line(dict(zip(names, map(jsonable, row), strict=True))) for row in rows]
        return "[\n" + "\n,".join(items) + ("\n" if items else "") + "]\n"
    if formatter == "erlang":
        terms = [[(Atom(name), value) for name, value in zip(names, row, strict=True)] for row in rows]
        return erlang(terms) + "\n"
    if not rows:
        return ""
    if formatter == "csv":
        lines = [",".join(map(_csv_cell, row)) for row in [list(names), *rows]]
    elif formatter == "pretty_table":
        lines = _pretty_lines(names, rows)
    else:
        lines = ["\t".join(map(plain, row)) for row in ([list(names)] if has_header else []) + list(rows)]
    return "\n".join(lines) + "\n"


def jsonable(value: Any) -> Any:
    """Return a value for the json formatter."""
    if isinstance(value, Table):
        return [[name, amqp_type(field), jsonable(_nested(field))] for name, field in value.items()]
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    return value


def json_line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> str:
    """Return a value for a table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Table):
        return "[" + ",".join(f'{{"{name}",{_plain_field(field)}}}' for name, field in value.items()) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(map(plain, value)) + "]"
    if isinstance(value, dict):
        return json_line(value)
    return str(value)


def _plain_field(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ",".join(map(_plain_field, value)) + "]"
    return plain(_nested(value))


def _nested(value: Any) -> Any:
    return Table(value) if isinstance(value, dict) else value


def amqp_type(value: Any) -> str:
    """Return RabbitMQ's name for the type of a field; for an integer, the type that clients choose."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    kinds: tuple[tuple[type, str], ...] = ((float, "double"), (dict, "table"), (list, "array"), (str, "longstr"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "void")


def _csv_cell(value: Any) -> str:
    return '"' + plain(value).replace('"', '""') + '"'


def _pretty_cell(value: Any) -> str:
    """Return a cell; lists are texts, as in Erlang."""
    if isinstance(value, Table):
        return "".join(map(erlang, _fields(value)))
    if isinstance(value, list):
        return "".join(str(item) if isinstance(item, Atom) else erlang(item) for item in value)
    return plain(value)


def _pretty_lines(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    cells = [[_pretty_cell(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    bar = f"{LINES}x{LETTERS}"

    def rule(left: str, middle: str, right: str) -> str:
        return LINES + left + middle.join("q" * (width + 2) for width in widths) + right + LETTERS

    def line(texts: Sequence[str], is_heading: bool = False) -> str:
        shown = [
            (bold(text) if is_heading else text) + " " * (width - len(text))
            for text, width in zip(texts, widths, strict=True)
        ]
        return f"{bar} " + f" {bar} ".join(shown) + f" {bar}"

    lines = [rule("l", "w", "k"), line(names, is_heading=True)]
    for row in cells:
        lines += [rule("t", "n", "u"), line(row)]
    return [*lines, rule("m", "v", "j")]


def _fields(table: Table) -> list[tuple[Any, ...]]:
    return [(name, Atom(amqp_type(field)), _nested(field)) for name, field in table.items()]


def erlang(value: Any, column: int = 0) -> str:
    """Return a value as Erlang prints terms, with line breaks for a term that begins at `column`."""
    if isinstance(value, Table):
        return erlang(_fields(value), column)
    if isinstance(value, dict):
        return erlang([(name, item) for name, item in value.items()], column)
    if not isinstance(value, (list, tuple)):
        return _erlang_simple(value)
    opening, closing = "[]" if isinstance(value, list) else "{}"
    flat = opening + ",".join(map(erlang, value)) + closing
    if "\n" not in flat and column + len(flat) < ERLANG_LINE_LENGTH:
        return flat
    if isinstance(value, tuple) and len(value) == 2:
        name = erlang(value[0])
        return opening + name + "," + erlang(value[1], column + len(name) + 2) + closing
    between = ",\n" + " " * (column + 1)
    return opening + between.join(erlang(item, column + 1) for item in value) + closing


def _erlang_simple(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Atom):
        is_bare = value[:1].islower() and value.replace("_", "a").replace("@", "a").isalnum()
        return str(value) if is_bare or value[:1] in "<{" else f"'{value}'"
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return "<<>>" if not value else f'<<"{text}">>' if value.isascii() else f'<<"{text}"/utf8>>'
    return "none" if value is None else str(value)
