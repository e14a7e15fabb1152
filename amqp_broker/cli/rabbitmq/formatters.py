"""The formats of RabbitMQ's tools for lists and values: table, json, csv, pretty_table, erlang."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from amqp_broker.amqp import nested
from amqp_broker.cli.rabbitmq.columns import Atom, Characters, Table

FORMATTERS = ("table", "json", "csv", "pretty_table", "erlang")
# Length at which Erlang breaks a line.
ERLANG_LINE_LENGTH = 80
# Column from which deep terms are not broken any more.
ERLANG_COLUMN_MAX = 150
# An atom that needs no quotation marks: letters are those of Latin-1.
BARE_ATOM = re.compile("[a-zß-öø-ÿ][0-9A-Za-zÀ-ÖØ-öø-ÿ_@]*")
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
    whole = [value]
    places: list[tuple[list[Any], int]] = [(whole, 0)]
    while places:
        block, index = places.pop()
        item = block[index]
        if isinstance(item, Table):
            block[index] = entries = [[name, amqp_type(field), _nested(field)] for name, field in item.items()]
            places += [(entry, 2) for entry in entries]
        elif isinstance(item, list):
            block[index] = copy = list(item)
            places += [(copy, number) for number in range(len(copy))]
    return whole[0]


def json_line(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        # Few values are that deep, and health checks start without the module.
        from amqp_broker.management.documents import nested_json

        return nested_json.write(value, json_line)


def plain(value: Any) -> str:
    """Return a value for a table."""
    return nested.joined((value, False), _plain_parts)


def _plain_parts(part: tuple[Any, bool]) -> Iterator[Any]:
    """Yield the texts of a value, and the values in it, each with whether it is in a field table."""
    value, is_field = part
    value = _nested(value) if is_field else value
    if isinstance(value, Table):
        yield "["
        for number, (name, field) in enumerate(value.items()):
            yield f'{"," if number else ""}{{"{name}",'
            yield field, True
            yield "}"
        yield "]"
    elif isinstance(value, list):
        yield "["
        for number, item in enumerate(value):
            yield ("," if is_field else ", ") if number else ""
            yield item, is_field
        yield "]"
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, dict):
        yield json_line(value)
    else:
        yield f'"{value}"' if is_field and isinstance(value, str) else str(value)


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
    flat = nested.joined(value, _erlang_parts)
    if column + len(flat) < ERLANG_LINE_LENGTH or column > ERLANG_COLUMN_MAX:
        return flat
    if isinstance(value, tuple) and len(value) == 2:
        name = erlang(value[0])
        return opening + name + "," + erlang(value[1], column + len(name) + 2) + closing
    between = ",\n" + " " * (column + 1)
    return opening + between.join(erlang(item, column + 1) for item in value) + closing


def _erlang_parts(value: Any) -> Iterator[Any]:
    """Yield the texts of a value without line breaks, and the values in it."""
    if isinstance(value, dict):
        value = _fields(value) if isinstance(value, Table) else list(value.items())
    if not isinstance(value, (list, tuple)):
        yield _erlang_simple(value)
        return
    yield "[" if isinstance(value, list) else "{"
    for number, item in enumerate(value):
        yield "," if number else ""
        # A text here is finished, a string of the term is not.
        yield _erlang_simple(item) if isinstance(item, str) else item
    yield "]" if isinstance(value, list) else "}"


def _erlang_simple(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Atom):
        # One that begins like a term is a term, as printed before.
        is_printed = BARE_ATOM.fullmatch(value) or value.startswith(("<", "{"))
        return str(value) if is_printed else "'" + _escaped(value, "'") + "'"
    if isinstance(value, str):
        text = _escaped(value, '"')
        if isinstance(value, Characters):
            return f'"{text}"' if value else "[]"
        return "<<>>" if not value else f'<<"{text}">>' if value.isascii() else f'<<"{text}"/utf8>>'
    if isinstance(value, float):
        # Erlang has no number like 1e-05.
        return repr(value) if "." in repr(value) else repr(value).replace("e", ".0e")
    return "none" if value is None else str(value)


def _escaped(text: str, mark: str) -> str:
    """Return a text for quotation marks of this kind."""
    return text.replace("\\", "\\\\").replace(mark, f"\\{mark}").replace("\n", "\\n").replace("\t", "\\t")
