"""Lists as RabbitMQ answers them: sorted, a page of them, some columns of each. Source: rabbit_mgmt_util.erl.

Columns are taken out in one place for all answers (`selected`), lists and objects alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from amqp_broker.broker import patterns
from amqp_broker.management import json
from amqp_broker.management.request import Refusal, Request, bad_request

T = TypeVar("T")
Row = Mapping[str, Any]

PAGE_SIZE: Final = 100
PAGE_SIZE_MAX: Final = 500
DEFAULT_SORT: Final = ("vhost", "name")
# A whole number as RabbitMQ reads it (list_to_integer), of a sane length.
_DIGITS_MAX: Final = 18


class Page(NamedTuple):
    """Which part of a list is asked for: `number` counts from 1, `name` is what names must contain or match."""

    number: int
    size: int
    name: str
    is_pattern: bool


def page_of(query: Mapping[str, str]) -> Page | None:
    """The page that a query asks for; None: all. Raises Refusal."""
    number, size = _integer(query.get("page")), _integer(query.get("page_size"))
    if number is None:
        return None
    if number < 1 or (size is not None and not 0 < size <= PAGE_SIZE_MAX):
        raise Refusal(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {number}, page size {'undefined' if size is None else size}",
        )
    name, is_pattern = query.get("name", ""), query.get("use_regex") == "true"
    if is_pattern and patterns.problem_of(name):
        raise bad_request("Pagination parameters are invalid")
    return Page(number, size or PAGE_SIZE, name, is_pattern)


def _integer(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > _DIGITS_MAX:
        raise bad_request("Pagination parameters are invalid")
    return int(text)


def listed(
    request: Request,
    things: Iterable[T],
    view: Callable[[T], Row] = lambda thing: thing,  # type: ignore[assignment,return-value] # things are rows already
    *,
    brief: Callable[[T], Row] | None = None,
    brief_columns: Sequence[str] = (),
    default_sort: Sequence[str] = DEFAULT_SORT,
) -> Any:
    """The answer that is a list of what `view` makes of things.

    Where a page is asked for, `brief` makes rows that are good enough to sort and to filter by these columns, and
    `view` is asked for the page alone. Raises Refusal.
    """
    page = page_of(request.query)
    sort = request.query.get("sort", "")
    order = _order_by((sort, *default_sort) if sort else default_sort)
    is_reversed = request.query.get("sort_reverse") == "true"
    if page is None:
        rows = [view(thing) for thing in things]
        rows.sort(key=order, reverse=is_reversed)
        return rows
    first = brief if brief is not None and (not sort or sort in brief_columns) else view
    pairs = [(first(thing), thing) for thing in things]
    total_count = len(pairs)
    if page.name:
        pairs = [pair for pair in pairs if _is_named(pair[0], page)]
    pairs.sort(key=lambda pair: order(pair[0]), reverse=is_reversed)
    start = (page.number - 1) * page.size
    if start > len(pairs):
        raise Refusal(
            400,
            "page_out_of_range",
            f"Page out of range, page: {page.number} page size: {page.size}, len: {len(pairs)}",
        )
    some = pairs[start : start + page.size]
    return Paged(
        total_count=total_count,
        item_count=len(some),
        filtered_count=len(pairs),
        page=page.number,
        page_size=page.size,
        page_count=(len(pairs) + page.size - 1) // page.size,
        items=[row if first is view else view(thing) for row, thing in some],
    )


class Paged(dict[str, Any]):
    """A page of a list, with what RabbitMQ tells around its items."""


def _is_named(row: Row, page: Page) -> bool:
    name = str(row.get("name", ""))
    if page.is_pattern:
        return patterns.matches("(?i)" + page.name, name)
    return page.name.lower() in name.lower()


def _order_by(names: Sequence[str]) -> Callable[[Row], Any]:
    """What tells the place of a row by what stands under dotted names."""
    keys = [name.split(".") for name in names]
    if all(len(key) == 1 for key in keys):
        return lambda row: [_order(row.get(name, 0)) for name in names]
    return lambda row: [_order(_dotted(row, key)) for key in keys]


def _dotted(row: Any, keys: Sequence[str]) -> Any:
    """What stands under a dotted name; 0 where nothing does, since it usually means that."""
    for key in keys:
        if not isinstance(row, Mapping) or key not in row:
            return 0
        row = row[key]
    return row


def _order(value: Any) -> tuple[int, Any]:
    """What makes values comparable in Erlang's order of terms: numbers, atoms, objects, lists, text."""
    if isinstance(value, str):
        return (4, value.encode("utf-8", "surrogateescape"))
    if value is None or isinstance(value, bool):
        return (1, "null" if value is None else str(value).lower())
    if isinstance(value, (int, float)):
        return (0, value)
    return (2, json.encode(value))


# Columns


def selected(query: Mapping[str, str], value: Any) -> Any:
    """What `columns` asks for of an answer: a list of dotted names; all without it."""
    asked = query.get("columns")
    if asked is None:
        return value
    columns: dict[str, Any] = {}
    for column in asked.split(","):
        _add_column(columns, [key for key in column.split(".") if key])
    if isinstance(value, Paged):
        return {**value, "items": _cut(value["items"], columns)}
    return _cut(value, columns)


def _add_column(columns: dict[str, Any], keys: Sequence[str]) -> None:
    """Put a dotted name into a tree in which None stands for "with all that is below"."""
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
