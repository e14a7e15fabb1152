from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from amqp_broker.pipeline import report_page
from amqp_broker.pipeline.report_page import figures, page, rates_of, traced_time
from amqp_broker.pipeline.report_tables import Report
from tests.page.hostile import ATTACKS


class Changed(Report):
    """A report whose rows are changed."""

    def __init__(self, report: Report, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        self.report = report
        self.change = change

    def __enter__(self) -> Changed:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def select(self, query: str, values: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        return [row for one in self.report.select(query, values) if (row := self.change(one)) is not None]

    def write(self, target: str, on_table: Callable[[str], None] = lambda name: None) -> None:
        raise NotImplementedError


class Reader(HTMLParser):
    """Collects the elements of a page, its text, and its external resources."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.texts: list[str] = []
        self.loads: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.attributes.update(name for name, _ in attrs)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_is_self_contained_and_shows_every_part(report: Report) -> None:
    text = page(report, "A <report>")
    reader = Reader()
    reader.feed(text)
    assert reader.loads == []
    assert not re.search(r"@import|url\(", text)
    assert "default-src 'none'; style-src 'sha256-" in text
    # Two vhosts, with and without message numbers, and ten charts each, even if they are empty.
    assert (reader.counts["h2"], reader.counts["figure"]) == (2, 20)
    assert {"Queues", "Redelivery", "Slowest consumers", "Busiest publishers", "Still open"} <= set(reader.texts)
    # The vhost without message numbers has no dead letters, and no table of them.
    assert reader.texts.count("Dead letters") == 3
    assert "A <report>" in reader.texts
    assert any("Each point of a plot is an interval of 5 s." in told for told in reader.texts)
    assert any("have no message number" in told for told in reader.texts)
    assert len(text) < 200_000


def test_a_vhost_begins_with_its_most_important_figures(report: Report) -> None:
    reader = Reader()
    reader.feed(page(report))
    texts = reader.texts
    summary = next(row for row in report.select("SELECT * FROM summary") if row["vhost"] == "/")
    assert texts[texts.index("Publishes") + 1] == f"{summary['published']:,}"
    rate = texts[texts.index("Publishes") + 2]
    assert float(rate.removesuffix(" a second")) == pytest.approx(summary["published"] / summary["traced_s"], rel=1e-3)
    opened = sum(row["open"] for row in report.select("SELECT * FROM open") if row["vhost"] == "/")
    assert texts[texts.index("Still open") + 1] == f"{opened:,}"
    assert texts[texts.index("Slowest consumer, p95") + 2].endswith("queue slow")
    assert texts[texts.index("Busiest publisher") + 2].startswith("publisher ")


def test_a_trace_of_one_moment_has_no_rates() -> None:
    counts = ("events", "published", "delivered", "acked", "redelivered", "dead_lettered", "in_loops", "unrouted")
    summary = dict.fromkeys(counts, 1) | {"unnumbered": 1, "traced_s": None}
    shown = list(figures(summary, {"consumers": [], "publishers": [], "open": []}))
    assert shown[0] == ("Publishes", "1", "")
    # Without message numbers, no report can count open messages.
    assert "Still open" not in {label for label, _, _ in shown}


@pytest.mark.parametrize(
    ("first_us", "last_us", "counts", "rates"),
    # 100 messages a second in intervals of a second.
    [
        (300_000, 2_600_000, (70, 100, 60), [100, 100, 100]),
        (900_000, 3_200_000, (10, 100, 100, 20), [100, 100]),
        (900_000, 1_100_000, (10, 10), [100]),
        (900_000, 900_000, (1,), []),
    ],
)
def test_an_even_rate_does_not_sag_at_the_ends_of_a_trace(
    first_us: int, last_us: int, counts: tuple[int, ...], rates: list[float]
) -> None:
    start = datetime(2026, 9, 1, 12, 0, 0, tzinfo=UTC)
    summary = {"interval_ms": 1000} | {
        name: start + timedelta(microseconds=at) for name, at in (("first_at", first_us), ("last_at", last_us))
    }
    rows = [
        {"interval_start": start + timedelta(seconds=second), "published": count} for second, count in enumerate(counts)
    ]
    lines = rates_of({"events": rows}, "published", traced_time(summary))
    assert [rate for line in lines.values() for rate in line.values()] == pytest.approx(rates)


def test_a_cut_table_says_so_and_sums_are_of_all_rows(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_page, "ROWS_MAX", 2)
    reader = Reader()
    reader.feed(page(report))
    opened = [row["open"] for row in report.select("SELECT * FROM open") if row["vhost"] == "/"]
    assert len(opened) > 2
    assert reader.texts[reader.texts.index("Still open") + 1] == f"{sum(opened):,}"
    cut = f"These are the first 2 of {len(opened)} rows; the table open of the report has all."
    assert any(cut in told for told in reader.texts)


def test_queue_names_are_escaped(report: Report) -> None:
    bad = "<script>alert('&')</script>" + "".join(ATTACKS)
    text = page(Changed(report, lambda row: row | {"queue": bad} if "queue" in row else row))
    assert bad not in text
    assert text.count("<script") == page(report).count("<script")
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in text
    reader, harmless = Reader(), Reader()
    reader.feed(text)
    harmless.feed(page(report))
    assert reader.attributes == harmless.attributes


def test_an_empty_page_says_so(report: Report) -> None:
    empty = Changed(report, lambda row: None)
    assert "There are no events." in page(empty)
    assert '<p class="none">There are &lt;100' in page(empty, note="There are <100 events in this lake.")
