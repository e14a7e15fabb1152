from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.compare.known import BEFORE_OLDEST, headers_unknown, title_of

DOCUMENT = Path(__file__).parents[2] / "compat" / "DIFFERENCES.md"
UPSTREAM = "connection.close reply_code=503 reply_text=\"COMMAND_INVALID - unknown exchange type 'x'\""
OURS = "channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - unknown exchange type 'x'\""


def test_each_is_a_heading_of_the_document() -> None:
    text = DOCUMENT.read_text()
    assert [known.title for known in BEFORE_OLDEST if f"\n### {known.title}\n" not in text] == []


def test_the_age_of_the_upstream_explains_a_difference() -> None:
    assert title_of("3.10.8", UPSTREAM, OURS) == "An unknown exchange type closes the channel"
    assert title_of("3.10.8", OURS, UPSTREAM) == ""


@pytest.mark.parametrize("version", ["3.13.7", "4.2.1", "", "?"])
def test_of_a_newer_upstream_nothing_is_explained(version: str) -> None:
    assert title_of(version, UPSTREAM, OURS) == ""
    assert headers_unknown(version) == frozenset()
