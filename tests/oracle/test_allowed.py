"""The tables of allowed differences: compat/oracle/allowed.py."""

from __future__ import annotations

import json
from pathlib import Path

from compat.oracle.allowed import OPEN, Allowed, load, reason_of, revised, save, unlisted, unused

FOUND = {"queues/a": {"declare-ok", "get-ok redelivered"}, "queues/b": {"declare-ok"}}


def test_a_difference_is_allowed_in_its_place_only() -> None:
    allowed = {"queues/a": {"declare-ok": "why"}}
    assert unlisted(FOUND, allowed) == [("queues/a", "get-ok redelivered"), ("queues/b", "declare-ok")]


def test_an_asterisk_stands_for_any_text() -> None:
    allowed = {"*": {"declare-ok": "everywhere"}, "queues/*": {"get-ok *": "all fields"}}
    assert unlisted(FOUND, allowed) == []
    assert reason_of("queues/a", "get-ok redelivered", allowed) == "all fields"
    assert reason_of("queues/a", "get-okay", allowed) is None


def test_other_signs_of_patterns_stand_for_themselves() -> None:
    allowed = {"lists?sort=[a]": {"value[].x": "why"}}
    assert reason_of("lists?sort=[a]", "value[].x", allowed) == "why"
    assert reason_of("lists?sort=a", "value[].x", allowed) is None


def test_the_reason_of_an_exact_entry_comes_first() -> None:
    allowed = {"*": {"declare-ok": "everywhere"}, "queues/a": {"declare-ok": "here"}}
    assert reason_of("queues/a", "declare-ok", allowed) == "here"
    assert reason_of("queues/b", "declare-ok", allowed) == "everywhere"


def test_an_entry_that_fits_no_difference_is_unused() -> None:
    allowed = {"*": {"*": "all", "bind-ok": "mended"}, "queues/c": {"declare-ok": "gone"}}
    assert unused(FOUND, allowed) == [("*", "bind-ok"), ("queues/c", "declare-ok")]


def test_a_revision_removes_unused_entries_and_opens_new_differences() -> None:
    allowed = {"queues/a": {"declare-ok": "why", "bind-ok": "mended"}}
    assert revised(FOUND, allowed) == {
        "queues/a": {"declare-ok": "why", "get-ok redelivered": OPEN},
        "queues/b": {"declare-ok": OPEN},
    }
    assert allowed["queues/a"]["bind-ok"] == "mended"


def test_a_table_is_saved_in_order_and_without_empty_parts(tmp_path: Path) -> None:
    tables: dict[str, Allowed] = {"wire": {"b": {"x": "é", "w": "é"}, "a": {}}, "ctl": {}}
    save("4.3", tables, tmp_path / "allowed")
    text = (tmp_path / "allowed" / "4.3.json").read_text("utf-8")
    assert (text[-1], json.loads(text)) == ("\n", {"wire": {"é": {"b": ["w", "x"]}}})
    assert load("4.3", tmp_path / "allowed") == {"wire": {"b": {"x": "é", "w": "é"}}}


def test_a_profile_without_a_table_allows_nothing(tmp_path: Path) -> None:
    assert load("4.3", tmp_path) == {}
