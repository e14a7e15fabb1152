"""The table of the client matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.matrix.results import AMQP_BROKER, RABBITMQ, ClientResults, Kind, Outcome
from compat.matrix.scenarios import SCENARIOS
from compat.matrix.table import put, render, write

OK = Outcome(Kind.OK)
FAILED = Outcome(Kind.FAILED, "nothing came")
UNSUPPORTED = Outcome(Kind.UNSUPPORTED, "no streams")
TWO = {"ttl": "messages expire", "dead_letter": "messages come back"}


def client(language: str, amqp_broker: dict[str, Outcome], rabbitmq: dict[str, Outcome]) -> ClientResults:
    return ClientResults(language, "1.0", outcomes={AMQP_BROKER: amqp_broker, RABBITMQ: rabbitmq})


def lines(results: dict[str, ClientResults]) -> list[str]:
    return render(results, TWO).splitlines()


def test_a_cell_has_one_sign_where_both_brokers_do_the_same() -> None:
    both = {"ttl": OK, "dead_letter": UNSUPPORTED}
    assert lines({"pika": client("Python", both, both)})[:3] == [
        "| client | ttl | dead letter |",
        "| --- | :-: | :-: |",
        "| Python: pika 1.0 | ✓ | n/a |",
    ]


def test_a_cell_has_both_signs_where_the_brokers_differ() -> None:
    table = lines({"pika": client("Python", {"ttl": FAILED}, {"ttl": OK, "dead_letter": OK})})
    assert table[2] == "| Python: pika 1.0 | ✗/✓ | ?/✓ |"
    assert "- pika, ttl: amqp-broker: failed, nothing came" in table


def test_a_reason_of_both_brokers_is_listed_once() -> None:
    both = {"ttl": FAILED, "dead_letter": OK}
    assert [line for line in lines({"pika": client("Python", both, both)}) if "nothing came" in line] == [
        "- pika, ttl: nothing came"
    ]


def test_a_client_that_was_not_played_is_listed_with_the_reason() -> None:
    table = lines({"bunny": ClientResults("Ruby", "2.23", absent="no Ruby here")})
    assert table[2] == "| Ruby: bunny 2.23, not played here |  |  |"
    assert table[table.index("Not played here:") + 2] == "- bunny: no Ruby here"


def test_clients_are_sorted_by_language_and_name() -> None:
    results = {name: client(language, {}, {}) for name, language in [("b", "Go"), ("c", "C"), ("a", "Go")]}
    assert [line.split("|")[1].strip() for line in lines(results)[2:5]] == ["C: c 1.0", "Go: a 1.0", "Go: b 1.0"]


def test_a_line_of_a_reason_does_not_break_the_list() -> None:
    both = {"ttl": Outcome(Kind.FAILED, "a | b"), "dead_letter": OK}
    table = lines({"pika": client("Python", both, both)})
    assert table[2].count("|") == 4
    assert "- pika, ttl: a | b" in table


def test_the_text_around_the_table_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    parts = [f"<!-- The {what}: written by `make compat`. -->\nold\n<!-- End of the {what}. -->" for what in PLACES]
    page.write_text("above\n" + "\nbetween\n".join(parts) + "\nbelow\n", "utf-8")
    for _ in range(2):
        write(page, {"pika": client("Python", {}, {})}, TWO)
        text = page.read_text("utf-8")
        assert text.startswith("above\n<!-- The matrix")
        assert "\nbetween\n" in text
        assert text.endswith("-->\nbelow\n")
        assert text.count("Python: pika 1.0") == text.count("- **dead letter**: messages come back") == 1
        assert "old" not in text


PLACES = ("matrix", "scenarios")


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the matrix"):
        put("nothing here", "matrix", "table")


def test_the_projects_page_has_both_markers() -> None:
    text = (Path(__file__).parents[2] / "compat" / "README.md").read_text("utf-8")
    for what in PLACES:
        assert "content" in put(text, what, "content")


def test_every_scenario_is_described() -> None:
    assert all(SCENARIOS.values())
