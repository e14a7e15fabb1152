from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.compare.older_rabbitmq import BEFORE_OLDEST, headers_unknown, title_of

DOCUMENT = Path(__file__).parents[2] / "compat" / "DIFFERENCES.md"
UPSTREAM = "connection.close reply_code=503 reply_text=\"COMMAND_INVALID - unknown exchange type 'x'\""
LOCAL = "channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - unknown exchange type 'x'\""


def test_each_title_is_a_heading_of_differences_md() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert [known.title for known in BEFORE_OLDEST if f"\n### {known.title}\n" not in text] == []


def test_an_old_version_of_the_upstream_explains_a_difference() -> None:
    assert title_of("3.10.8", UPSTREAM, LOCAL) == "An unknown exchange type closes the channel"
    assert title_of("3.10.8", LOCAL, UPSTREAM) == ""


@pytest.mark.parametrize("version", ["3.13.7", "4.2.1", "", "?"])
def test_a_newer_upstream_explains_nothing(version: str) -> None:
    assert title_of(version, UPSTREAM, LOCAL) == ""
    assert headers_unknown(version) == frozenset()
