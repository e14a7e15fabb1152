from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from amqp_broker.pipeline.report_page import page
from tests.page.hostile import ATTACKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def test_a_page_is_self_contained_and_shows_every_part(written: dict[str, DataFrame]) -> None:
    text = page(written, "A <report>")
    reader = Reader()
    reader.feed(text)
    assert reader.loads == []
    assert not re.search(r"https?://|@import|url\(|<script", text)
    # Two vhosts, with and without message numbers, and nine charts each, even if they are empty.
    assert (reader.counts["h2"], reader.counts["figure"]) == (2, 18)
    assert {"Dead letters", "Redelivery", "Slowest consumers", "Still open"} <= set(reader.texts)
    assert reader.texts.count("Dead letters") == 1
    assert "A <report>" in reader.texts
    assert any("have no message number" in told for told in reader.texts)
    assert len(text) < 200_000


def test_queue_names_are_escaped(written: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F

    bad = "<script>alert('&')</script>" + "".join(ATTACKS)
    renamed = {
        name: table.withColumn("queue", F.lit(bad)) if "queue" in table.columns else table
        for name, table in written.items()
    }
    text = page(renamed)
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in text
    reader, harmless = Reader(), Reader()
    reader.feed(text)
    harmless.feed(page(written))
    assert reader.attributes == harmless.attributes


def test_an_empty_page_says_so(written: dict[str, DataFrame]) -> None:
    empty = {name: table.limit(0) for name, table in written.items()}
    assert "There are no events" in page(empty)
