from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.scheduling.portions import Work, finished
from amqp_broker.management.api.queues import all_queues
from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.listing import SORTED_MAX, Paged, listed, listed_rows
from amqp_broker.management.http.request import Request
from tests.management.asking import Desk

ROWS = [{"vhost": "/", "name": name, "n": {"m": size}} for name, size in (("b", 2), ("a", 10), ("Ab", 1))]


def ask(things: Any = ROWS, **query: str) -> Any:
    desk = Desk()
    return finished(listed_rows(Request(desk.broker, desk.node, desk.user, query=query), things, has_pages=True))


def names(answer: Any) -> list[str]:
    return [row["name"] for row in (answer["items"] if isinstance(answer, Paged) else answer)]


def test_a_list_is_sorted_by_vhost_and_name() -> None:
    assert names(ask()) == ["Ab", "a", "b"]
    assert names(ask([{"vhost": "b", "name": "1"}, {"vhost": "a", "name": "2"}])) == ["2", "1"]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ({"sort": "n.m"}, ["Ab", "b", "a"]),
        ({"sort": "n.m", "sort_reverse": "true"}, ["a", "b", "Ab"]),
        ({"sort_reverse": "true"}, ["b", "a", "Ab"]),
        ({"sort_reverse": "yes"}, ["Ab", "a", "b"]),
        ({"sort": "zork"}, ["Ab", "a", "b"]),
        ({"sort": "name.x.y"}, ["Ab", "a", "b"]),
        ({"sort": ""}, ["Ab", "a", "b"]),
    ],
)
def test_a_list_is_sorted_as_asked(query: dict[str, str], order: list[str]) -> None:
    assert names(ask(**query)) == order


def test_values_of_all_kinds_are_sorted_as_erlang_does() -> None:
    values = ["text", {"a": 1}, None, True, False, 2, 1.5, [1]]
    rows = [{"name": str(at), "v": value} for at, value in enumerate(values)]
    assert [row["v"] for row in ask(rows, sort="v")] == [1.5, 2, False, None, True, [1], {"a": 1}, "text"]


def test_a_page_has_the_counts_of_the_whole_list() -> None:
    assert ask(page="2", page_size="2") == {
        "total_count": 3,
        "item_count": 1,
        "filtered_count": 3,
        "page": 2,
        "page_size": 2,
        "page_count": 2,
        "items": [ROWS[0]],
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"name": "B"}, ["Ab", "b"]),
        ({"name": ""}, ["Ab", "a", "b"]),
        ({"name": "^a", "use_regex": "true"}, ["Ab", "a"]),
        ({"name": "^a", "use_regex": "false"}, []),
        ({"name": "zork"}, []),
    ],
)
def test_a_page_contains_the_items_whose_names_match(query: dict[str, str], found: list[str]) -> None:
    page = ask(page="1", **query)
    assert (names(page), page["filtered_count"], page["total_count"]) == (found, len(found), 3)


def test_a_list_without_pages_ignores_their_parameters() -> None:
    """Seen at RabbitMQ 3.10, 4.0 and 4.3: most lists are never divided."""
    desk = Desk()
    desk.lab.connect()
    for path in (
        "permissions", "topic-permissions", "policies", "operator-policies", "parameters", "global-parameters", "nodes",
        "shovels", "feature-flags", "deprecated-features", "vhost-limits", "user-limits", "users/guest/permissions",
        "vhosts/%2F/connections", "vhosts/%2F/channels", "vhosts/%2F/permissions", "bindings", "consumers",
    ):  # fmt: skip
        whole = desk.get(f"/api/{path}")
        assert desk.get(f"/api/{path}", page="1", page_size="1") == whole
        assert isinstance(whole[1], list)


@pytest.mark.parametrize(
    "path", ["queues", "exchanges", "connections", "channels", "users", "users/without-permissions", "vhosts"]
)
def test_a_list_with_pages_is_divided(path: str) -> None:
    assert Desk().get(f"/api/{path}", page="1")[1]["page"] == 1


def test_a_name_filter_has_no_effect_without_a_page() -> None:
    assert names(ask(name="zork")) == ["Ab", "a", "b"]


@pytest.mark.parametrize(
    ("query", "error", "reason"),
    [
        ({"page": "0"}, "invalid_pagination_parameters", "page number 0, page size undefined"),
        ({"page": "-1"}, "invalid_pagination_parameters", "page number -1, page size undefined"),
        ({"page": "1", "page_size": "501"}, "invalid_pagination_parameters", "page number 1, page size 501"),
        ({"page": "1", "page_size": "0"}, "invalid_pagination_parameters", "page number 1, page size 0"),
        ({"page": "a"}, "bad_request", "Pagination parameters are invalid"),
        ({"page": ""}, "bad_request", "Pagination parameters are invalid"),
        ({"page": "9" * 5000}, "bad_request", "Pagination parameters are invalid"),
        ({"page": "²"}, "bad_request", "Pagination parameters are invalid"),
        ({"page": "1", "page_size": "x"}, "bad_request", "Pagination parameters are invalid"),
        ({"page": "1", "name": "(", "use_regex": "true"}, "bad_request", "Pagination parameters are invalid"),
        ({"page": "9"}, "page_out_of_range", "Page out of range, page: 9 page size: 100, len: 3"),
        ({"page": "2", "name": "zork"}, "page_out_of_range", "Page out of range, page: 2 page size: 100, len: 0"),
    ],
)
def test_an_invalid_page_is_refused(query: dict[str, str], error: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        ask(**query)
    assert (caught.value.status, caught.value.error) == (400, error)
    assert caught.value.reason.endswith(reason)


def test_a_pattern_that_backtracks_forever_matches_nothing_after_a_short_time() -> None:
    rows = [{"name": "a" * 200 + "!"}]
    assert ask(rows, page="1", name="(a|a)*$", use_regex="true")["filtered_count"] in (0, 1)


def test_a_pattern_that_takes_too_long_for_many_names_is_refused() -> None:
    rows = [{"name": "a" * 200 + f"!{number}"} for number in range(1000)]
    with pytest.raises(Refusal, match="the regular expression takes too long"):
        ask(rows, page="1", name="^(a|a)+$", use_regex="true")


def test_only_the_rows_of_a_page_are_built_completely() -> None:
    desk, made = Desk(), []

    def view(row: dict[str, Any]) -> dict[str, Any]:
        made.append(row["name"])
        return row

    def page(**query: str) -> None:
        made.clear()
        request = Request(desk.broker, desk.node, desk.user, query={"page": "1", "page_size": "1", **query})
        finished(listed(request, ROWS, view, brief=lambda row: row, brief_columns=("name",)))

    page()
    assert made == ["Ab"]
    page(sort="n.m")
    assert sorted(made) == ["Ab", "a", "b"]


@pytest.mark.parametrize("sort_reverse", ["false", "true"])
def test_a_long_list_is_sorted_like_a_short_one(sort_reverse: str) -> None:
    values = [number * 7919 % 101 for number in range(3 * SORTED_MAX + 1)]
    rows = [{"name": str(number), "v": value} for number, value in enumerate(values)]
    numbers = sorted(range(len(rows)), key=values.__getitem__, reverse=sort_reverse == "true")
    desk = Desk()
    request = Request(desk.broker, desk.node, desk.user, query={"sort_reverse": sort_reverse})
    ordered = finished(listed(request, rows, lambda row: row, default_sort=("v",)))
    assert ordered == [rows[number] for number in numbers]


def test_each_queue_is_listed_as_it_is_at_its_turn() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    for name in ("a", "b", "c", "d"):
        peer.declare(name)
    request = Request(desk.broker, desk.node, desk.user)
    work = Work(all_queues(request), lambda: 0, 0)
    # A step per queue.
    work.run_portion()
    work.run_portion()
    peer.call(commands.Queue.Delete(queue="a"))
    peer.call(commands.Queue.Delete(queue="c"))
    peer.declare("e")
    peer.publish("d", b"m")
    while not work.run_portion():
        pass
    assert [(row["name"], row["messages"]) for row in work.result] == [("a", 0), ("b", 0), ("d", 1)]
