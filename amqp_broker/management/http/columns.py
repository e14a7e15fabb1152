"""Columns of an answer: the parameter `columns` shortens lists and objects alike. Source: rabbit_mgmt_util.erl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.http.listing import Paged


def selected(query: Mapping[str, str], value: Any) -> Steps[Any]:
    """Return the columns of an answer that the query asks for, as a list of dotted names; without `columns`, all."""
    asked = query.get("columns")
    if asked is None:
        return value
    columns: dict[str, Any] = {}
    for column in asked.split(","):
        _add_column(columns, [key for key in column.split(".") if key])
    if isinstance(value, Paged):
        return {**value, "items": _cut(value["items"], columns)}
    if not isinstance(value, list):
        return _cut(value, columns)
    rows = Disposable[Any]()
    for row in value.taken() if isinstance(value, Disposable) else value:
        rows.append(_cut(row, columns))
        yield
    return rows


def _add_column(columns: dict[str, Any], keys: Sequence[str]) -> None:
    """Add a dotted name to a tree, in which None means the whole subtree."""
    for at, key in enumerate(keys):
        if at == len(keys) - 1:
            columns[key] = None
            return
        below = columns.setdefault(key, {})
        if below is None:
            return
        columns = below


def _cut(value: Any, columns: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: item if columns[key] is None else _cut(item, columns[key])
            for key, item in value.items()
            if key in columns
        }
    if isinstance(value, (list, tuple)):
        return [_cut(item, columns) for item in value]
    return value
