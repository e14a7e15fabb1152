"""A report's figures equal those that plain Python computes from the same events, with either engine."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from amqp_broker.pipeline.intervals import POINTS_MAX
from amqp_broker.pipeline.report_tables import TABLES, Report
from tests.pipeline.generated import EVENTS, Event
from tests.pipeline.reference import Reference, Row

Table = list[dict[str, Any]]

# The generated log is some minutes long.
INTERVAL_MS = 5000


@pytest.fixture(scope="module")
def reference(events: list[Event]) -> Reference:
    return Reference(events, INTERVAL_MS)


@pytest.fixture(scope="module", params=["report", "spark_report"])
def tables(request: pytest.FixtureRequest) -> dict[str, Table]:
    report: Report = request.getfixturevalue(request.param)
    return {name: report.select(f"SELECT * FROM {name}") for name in TABLES}


def interval_of(row: Row) -> float:
    """Return the number of a row's interval since the epoch."""
    return float(row["interval_start"].timestamp() * 1000 / INTERVAL_MS)


def compare(table: Table, keys: list[Any], expected: dict[Any, Row]) -> None:
    """Assert that the rows have the expected keys and figures."""
    assert sorted(keys, key=str) == sorted(expected, key=str)
    for key, row in zip(keys, table, strict=True):
        wrong = {name: (row[name], value) for name, value in expected[key].items() if not is_same(row[name], value)}
        assert wrong == {}, key


def is_same(found: Any, expected: Any) -> bool:
    """Return whether two values are equal up to rounding of floats."""
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-12)
    return bool(found == expected)


def test_the_generated_log_has_every_kind_of_event(events: list[Event]) -> None:
    assert len(events) >= EVENTS
    told = {event["event"] for event in events}
    assert told == {"publish", "deliver", "ack", "nack", "confirm", "return", "expire", "drop", "dead_letter"}


def test_queues_per_interval(tables: dict[str, Table], reference: Reference) -> None:
    table, expected = tables["queues"], reference.table_of_queues()
    assert POINTS_MAX / 3 < len({interval for _, _, interval in expected}) <= POINTS_MAX + 1
    assert {row["interval_ms"] for row in tables["summary"]} == {INTERVAL_MS}
    compare(table, [(row["vhost"], row["queue"], interval_of(row)) for row in table], expected)


def test_the_last_depth_of_a_queue_is_its_open_messages(tables: dict[str, Table]) -> None:
    depths = {row["queue"]: row["depth"] for row in tables["queues"] if row["vhost"] == "/"}
    assert {queue: depth for queue, depth in depths.items() if depth} == {
        row["queue"]: row["open"] for row in tables["open"]
    }


def test_totals_of_queues_with_the_busiest_first(tables: dict[str, Table], reference: Reference) -> None:
    table = tables["totals"]
    compare(table, [(row["vhost"], row["queue"]) for row in table], reference.table_of_totals())
    work = [row["arrived"] + row["delivered"] for row in table]
    assert work == sorted(work, reverse=True)
    traced_s = {row["vhost"]: row["traced_s"] for row in tables["summary"]}
    for row in table:
        assert row["arrived_per_s"] == pytest.approx(row["arrived"] / traced_s[row["vhost"]])


def test_publishers_with_the_busiest_first(tables: dict[str, Table], reference: Reference) -> None:
    table = tables["publishers"]
    compare(table, [(row["vhost"], row["connection"]) for row in table], reference.table_of_publishers())
    assert [row["published"] for row in table] == sorted((row["published"] for row in table), reverse=True)
    assert sum(row["share_percent"] for row in table) == pytest.approx(100)


def test_the_summary_has_the_figures_of_the_headline(tables: dict[str, Table], events: list[Event]) -> None:
    [row] = [row for row in tables["summary"] if row["vhost"] == "/"]
    of_vhost = [event for event in events if event["vhost"] == "/"]
    deaths = [event["death_count"] for event in of_vhost if event["event"] == "dead_letter"]
    published = [event for event in of_vhost if event["event"] == "publish"]
    assert row["redelivered"] == sum(event.get("redelivered", False) for event in of_vhost)
    assert (row["dead_lettered"], row["in_loops"]) == (len(deaths), sum(count > 1 for count in deaths))
    assert row["unrouted"] == sum(not event["routed_queues"] for event in published)
    assert row["traced_s"] == pytest.approx((of_vhost[-1]["time_us"] - of_vhost[0]["time_us"]) / 1e6)


def test_exchanges_per_interval_with_confirms(tables: dict[str, Table], reference: Reference) -> None:
    table = tables["exchanges"]
    keys = [(row["vhost"], row["exchange"], interval_of(row)) for row in table]
    compare(table, keys, reference.table_of_exchanges())


def test_redelivery(tables: dict[str, Table], reference: Reference) -> None:
    table = tables["redelivery"]
    compare(table, [(row["vhost"], row["queue"]) for row in table], reference.table_of_redelivery())


def test_dead_letters_per_reason_with_loops(tables: dict[str, Table], reference: Reference) -> None:
    table, expected = tables["dead_letters"], reference.table_of_dead_letters()
    assert max(row["death_count_max"] for row in expected.values()) > 1
    compare(table, [(row["vhost"], row["queue"], row["reason"]) for row in table], expected)


def test_consumers_with_the_slowest_first(tables: dict[str, Table], reference: Reference) -> None:
    table = tables["consumers"]
    keys = [(row["vhost"], row["queue"], row["connection"], row["channel"]) for row in table]
    compare(table, keys, reference.table_of_consumers())
    slowness = [row["handling_ms_p95"] for row in table if row["handling_ms_p95"] is not None]
    assert slowness == sorted(slowness, reverse=True)
    assert table[0]["queue"] == "slow"


def test_open_messages(tables: dict[str, Table], reference: Reference) -> None:
    table, expected = tables["open"], reference.table_of_open()
    keys = [(row["vhost"], row["queue"]) for row in table]
    counts = {key: {name: row[name] for name in ("open", "delivered")} for key, row in expected.items()}
    compare(table, keys, counts)
    for key, row in zip(keys, table, strict=True):
        assert row["oldest_age_s"] == pytest.approx((reference.last_us - expected[key]["oldest_us"]) / 1e6, abs=1e-5)


def test_a_firehose_without_numbers_is_counted_and_noted(tables: dict[str, Table]) -> None:
    [plain] = [row for row in tables["summary"] if row["vhost"] == "plain"]
    assert plain["events"] == plain["unnumbered"] == plain["untimed"] > 0
    row = next(row for row in tables["queues"] if row["vhost"] == "plain")
    assert row["delivered"] > 0
    assert (row["wait_ms_p50"], row["handling_ms_p50"]) == (None, None)


def test_messages_that_were_given_up(tables: dict[str, Table], events: list[Event]) -> None:
    wanted = Counter(
        (event["vhost"], event["queue"], event.get("reason", "expired"))
        for event in events
        if event["event"] in ("expire", "drop")
    )
    assert {(row["vhost"], row["queue"], row["reason"]): row["messages"] for row in tables["given_up"]} == wanted
    assert [row["messages"] for row in tables["given_up"]] == sorted(wanted.values(), reverse=True)


def test_routing_keys_that_reached_no_queue(tables: dict[str, Table], events: list[Event]) -> None:
    wanted = Counter(
        (event["vhost"], event["exchange"], event.get("routing_key"))
        for event in events
        if event["event"] == "publish" and not event["routed_queues"]
    )
    found = {(row["vhost"], row["exchange"], row["routing_key"]): row["messages"] for row in tables["unrouted"]}
    assert found == wanted != {}


def test_both_engines_compute_the_same_rows(report: Report, spark_report: Report) -> None:
    for name in TABLES:
        ours, theirs = (one.select(f"SELECT * FROM {name}") for one in (report, spark_report))
        assert [list(row) for row in ours] == [list(row) for row in theirs]
        for left, right in zip(ours, theirs, strict=True):
            assert {key for key in left if not is_same(left[key], right[key])} == set(), name
