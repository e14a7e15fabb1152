"""Lists as RabbitMQ answers them: sorted, and one page at a time if the request asks for it.

Source: rabbit_mgmt_util.erl.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from amqp_broker.broker.admin import patterns
from amqp_broker.broker.scheduling.portions import Steps, popping
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.http import json
from amqp_broker.management.http.answers import Refusal, bad_request
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Switch, read_by

T = TypeVar("T")
Row = Mapping[str, Any]
# Returns the row of an object, or the steps to it.
View: TypeAlias = Callable[[T], "Row | Steps[Row]"]

PAGE_SIZE: Final = 100
PAGE_SIZE_MAX: Final = 500
# The key of a row that is to be sorted, the row, and its object.
Found: TypeAlias = tuple[Any, Row, T]
KEY: Final = itemgetter(0)
# A pattern of names.
MATCHES_NOTHING: Final = "(?!)"
DEFAULT_SORT: Final = ("vhost", "name")
# Rows that are sorted at once.
SORTED_MAX: Final = 250
# Digits of an integer that are read as RabbitMQ does (list_to_integer).
_DIGITS_MAX: Final = 18


def _integer(name: str, value: str) -> int:
    digits = value[1:] if value[:1] in ("-", "+") else value
    if not digits.isascii() or not digits.isdigit() or len(digits) > _DIGITS_MAX:
        raise bad_request("Pagination parameters are invalid")
    return int(value)


class ListQuery(Struct):
    """Parameters that a list takes; `columns` is applied to all answers (columns.py)."""

    page: Annotated[int | None, read_by(_integer, type="integer", minimum=1)] = None
    page_size: Annotated[int | None, read_by(_integer, type="integer", minimum=1, maximum=PAGE_SIZE_MAX)] = None
    name: str = ""
    use_regex: Switch = False
    sort: str = ""
    sort_reverse: Switch = False
    columns: str = ""


class Page(NamedTuple):
    """A page of a list: `number` counts from 1; names must contain `name`, or match it."""

    number: int
    size: int
    name: str
    is_pattern: bool

    @property
    def pattern(self) -> str:
        return "(?i)" + self.name


def page_of(query: ListQuery, release: tuple[int, int]) -> Page | None:
    """Return the page that a query asks for, or None for the whole list. Raise Refusal.

    An invalid pattern matches no name in this release of RabbitMQ, or is refused.
    """
    number, size, name = query.page, query.page_size, query.name
    if number is None:
        return None
    if number < 1 or (size is not None and not 0 < size <= PAGE_SIZE_MAX):
        raise Refusal(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {number}, page size {'undefined' if size is None else size}",
        )
    if query.use_regex and patterns.problem_of(name):
        if release < (4, 3):
            raise bad_request("Pagination parameters are invalid")
        name = MATCHES_NOTHING
    return Page(number, size or PAGE_SIZE, name, query.use_regex)


class Paged(dict[str, Any]):
    """A page of a list: `items`, and RabbitMQ's counts around them."""


def listed_rows(request: Request, rows: Iterable[Row], *, has_pages: bool = False) -> Steps[list[Row] | Paged]:
    """Return the list of these rows, or the page that the request asks for. Raise Refusal."""
    return listed(request, rows, lambda row: row, has_pages=has_pages)


def _always(thing: object) -> bool:
    return True


def listed(
    request: Request,
    things: Iterable[T],
    view: View[T],
    *,
    is_there: Callable[[T], bool] = _always,
    brief: View[T] | None = None,
    brief_columns: Sequence[str] = (),
    default_sort: Sequence[str] = DEFAULT_SORT,
    has_pages: bool = True,
) -> Steps[list[Row] | Paged]:
    """Return the list of `view(thing)`, or the page that the request asks for, in steps. Raise Refusal.

    RabbitMQ divides few lists into pages, and ignores the parameters of a page for the others (`has_pages`).
    For a page, `brief` makes the rows that are sorted and filtered, as long as `brief_columns` suffice for that, and
    `view` only those of the page. A thing that is deleted meanwhile, so that `is_there(thing)` is false, is left out.
    """
    left = deque(things)
    query = request.read_query(ListQuery)
    page = page_of(query, request.broker.profile.release) if has_pages else None
    sort, is_reversed = query.sort, query.sort_reverse
    order = _order_by((sort, *default_sort) if sort else default_sort)
    is_brief = page is not None and brief is not None and (not sort or sort in brief_columns)
    first = brief if is_brief and brief is not None else view
    total_count, filtered_count, found, runs = 0, 0, list[Found[T]](), list[deque[Found[T]]]()
    for thing in popping(left):
        if is_there(thing):
            total_count += 1
            row = yield from _row(first, thing)
            if page is None or not page.name or _is_named(row, page):
                filtered_count += 1
                found.append((order(row), row, thing))
        if len(found) == SORTED_MAX or not left:
            runs.append(deque(sorted(found, key=KEY, reverse=is_reversed)))
            found = []
        yield
    ordered = heapq.merge(*map(popping, runs), key=KEY, reverse=is_reversed)
    if page is None:
        rows = Disposable[Row]()
        for _, row, _ in ordered:
            rows.append(row)
            yield
        return rows
    if page.is_pattern and patterns.is_given_up(page.pattern):
        raise bad_request("the regular expression takes too long")
    span, items = _span(page, filtered_count), []
    for number, (_, row, thing) in enumerate(ordered):
        if number in span:
            items.append((yield from _row(view, thing)) if is_brief else row)
        yield
    return Paged(
        total_count=total_count,
        item_count=len(items),
        filtered_count=filtered_count,
        page=page.number,
        page_size=page.size,
        page_count=(filtered_count + page.size - 1) // page.size,
        items=items,
    )


def _row(view: View[T], thing: T) -> Steps[Row]:
    row = view(thing)
    return (yield from row) if isinstance(row, Generator) else row


def _span(page: Page, count: int) -> range:
    """Return the numbers of the rows that are on a page. Raise Refusal for a page behind the end of the list."""
    start = (page.number - 1) * page.size
    if start > count:
        raise Refusal(
            400,
            "page_out_of_range",
            f"Page out of range, page: {page.number} page size: {page.size}, len: {count}",
        )
    return range(start, start + page.size)


def _is_named(row: Row, page: Page) -> bool:
    name = str(row.get("name", ""))
    if page.is_pattern:
        return patterns.matches(page.pattern, name)
    return page.name.lower() in name.lower()


def _order_by(names: Sequence[str]) -> Callable[[Row], Any]:
    """Return the function that orders rows by the values of dotted names."""
    keys = [name.split(".") for name in names]
    if all(len(key) == 1 for key in keys):
        return lambda row: [_order(row.get(name, 0)) for name in names]
    return lambda row: [_order(_dotted(row, key)) for key in keys]


def _dotted(row: Any, keys: Sequence[str]) -> Any:
    """Return the value of a dotted name; 0 without one, since absent counters are zero."""
    for key in keys:
        if not isinstance(row, Mapping) or key not in row:
            return 0
        row = row[key]
    return row


def _order(value: Any) -> tuple[int, Any]:
    """Return a key that sorts like Erlang's terms: numbers, atoms, objects and lists, text."""
    if isinstance(value, str):
        return (4, value.encode("utf-8", "surrogateescape"))
    if value is None or isinstance(value, bool):
        return (1, "null" if value is None else str(value).lower())
    if isinstance(value, (int, float)):
        return (0, value)
    return (2, json.encode(value))
