"""The formats of rabbitmqadmin for lists."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# Columns that come first where all columns are shown.
FIRST = ("vhost", "name", "type", "source", "destination", "destination_type", "routing_key")
RULE = "-" * 80


def print_list(
    items: list[Any], columns: Sequence[str], style: str, depth: int, json_fields: Sequence[str], is_quiet: bool
) -> None:
    """Print JSON objects; without `columns`, all fields down to `depth` levels."""
    if style in ("raw_json", "pretty_json"):
        is_pretty = style == "pretty_json"
        print(
            json.dumps(
                items,
                ensure_ascii=False,
                sort_keys=is_pretty,
                indent=2 if is_pretty else None,
                separators=None if is_pretty else (",", ":"),
            )
        )
        return
    rows = [dict(flattened(item, depth if not columns else sys.maxsize, json_fields)) for item in items]
    names = list(columns) or sorted({name for row in rows for name in row}, key=_place)
    table = [[_text(row.get(name, "")) for name in names] for row in rows]
    if table:
        TABLES[style](names, table, is_quiet)
    elif not is_quiet:
        print("No items")


def flattened(
    item: dict[str, Any], depth: int, json_fields: Sequence[str], prefix: str = "", level: int = 1
) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object and of nested ones, which are named a.b."""
    for name, value in item.items():
        path = prefix + name
        if isinstance(value, dict) and name not in json_fields:
            if level < depth:
                yield from flattened(value, depth, json_fields, f"{path}.", level + 1)
        elif isinstance(value, dict):
            yield path, json.dumps(value)
        elif isinstance(value, list):
            yield path, " ".join(value) if all(isinstance(part, str) for part in value) else json.dumps(value)
        else:
            yield path, value


def _place(name: str) -> tuple[int, Any]:
    return (1, FIRST.index(name)) if name in FIRST else (2, name)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _table(names: Sequence[str], table: list[list[str]], is_quiet: bool) -> None:
    widths = [max(len(name), *(len(row[i]) for row in table)) for i, name in enumerate(names)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    print(rule)
    print("|" + "|".join(f" {name:^{width}} " for name, width in zip(names, widths)) + "|")
    print(rule)
    for row in table:
        print("|" + "|".join(f" {text:<{width}} " for text, width in zip(row, widths)) + "|")
    print(rule)


def _tsv(names: Sequence[str], table: list[list[str]], is_quiet: bool) -> None:
    for row in table if is_quiet else [names, *table]:
        print("\t".join(row))


def _long(names: Sequence[str], table: list[list[str]], is_quiet: bool) -> None:
    width = max(map(len, names))
    print(f"\n{RULE}\n")
    for row in table:
        for name, text in zip(names, row):
            print(f"{name:>{width}}: {text}")
        print(f"\n{RULE}\n")


def _kvp(names: Sequence[str], table: list[list[str]], is_quiet: bool) -> None:
    for row in table:
        print(" ".join(f'{name}="{text}"' for name, text in zip(names, row)))


def _bash(names: Sequence[str], table: list[list[str]], is_quiet: bool) -> None:
    if "name" in names:
        at = list(names).index("name")
        print(" ".join(row[at] for row in table))


TABLES: dict[str, Callable[[Sequence[str], list[list[str]], bool], None]] = {
    "table": _table,
    "tsv": _tsv,
    "kvp": _kvp,
    "long": _long,
    "bash": _bash,
}
FORMATS = (*TABLES, "raw_json", "pretty_json")
