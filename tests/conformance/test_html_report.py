"""The report as an HTML file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from amqp_broker.conformance.html_report import html_report
from tests.conformance.sample_results import sample_results

# Elements whose end may be left out.
OPEN_ENDED = {"meta", "tr", "td", "th", "li", "p"}


class Reader(HTMLParser):
    """Collects texts, and checks that elements are closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in OPEN_ENDED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPEN_ENDED:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def read() -> Reader:
    reader = Reader()
    reader.feed(html_report(sample_results()))
    reader.close()
    return reader


def test_the_document_is_well_formed() -> None:
    assert read().open == []


def test_texts_are_escaped() -> None:
    texts = read().texts
    assert "Conformance of Some<Broker> 1.0 at amqp://localhost/" in texts
    assert "A stream is skipped: the broker has no <streams>" in texts


def test_both_transcripts_of_a_difference_are_side_by_side() -> None:
    html = html_report(sample_results())
    rows = re.findall(r"<tr class=differs><td>(.*)<td>(.*)</tr>", html)
    assert rows == [("a1&lt; basic.get-ok redelivered=false", "a1&lt; basic.get-ok redelivered=true\x01")]
    assert '<tr class=differs><td class="none"><td>a1&lt; more</tr>' in html


def test_nothing_is_loaded() -> None:
    html = html_report(sample_results())
    assert re.findall(r"(?:src|href)=\"?([^#\"][^\" >]*)|url\(|@import|<script", html) == []
