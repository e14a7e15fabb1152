"""The table of the client matrix as readers see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.matrix.results import OURS, RABBITMQ, ClientResults, Kind, Outcome
from compat.matrix.scenarios import SCENARIOS
from compat.matrix.table import put, render, write

OK = Outcome(Kind.OK)
FAILED = Outcome(Kind.FAILED, "nothing came")
UNSUPPORTED = Outcome(Kind.UNSUPPORTED, "no streams")
TWO = {"ttl": "messages expire", "dead_letter": "messages come back"}


def client(language: str, ours: dict[str, Outcome], theirs: dict[str, Outcome]) -> ClientResults:
    return ClientResults(language, "1.0", outcomes={OURS: ours, RABBITMQ: theirs})


def lines(results: dict[str, ClientResults]) -> list[str]:
    return render(results, TWO).splitlines()


def test_a_cell_has_one_sign_where_both_brokers_do_the_same() -> None:
    both = {"ttl": OK, "dead_letter": UNSUPPORTED}
    assert lines({"pika": client("Python", both, both)})[:3] == [
        "| client | ttl | dead letter |",
        "| --- | :-: | :-: |",
        "| Python: pika 1.0 | ✓ | n/a |",
    ]


def test_a_cell_has_our_sign_before_rabbitmqs_where_they_differ() -> None:
    table = lines({"pika": client("Python", {"ttl": FAILED}, {"ttl": OK, "dead_letter": OK})})
    assert table[2] == "| Python: pika 1.0 | ✗/✓ | ?/✓ |"
    assert "- pika, ttl: amqp-broker: failed, nothing came" in table


def test_a_reason_that_both_brokers_give_is_told_once() -> None:
    both = {"ttl": FAILED, "dead_letter": OK}
    assert [line for line in lines({"pika": client("Python", both, both)}) if "nothing came" in line] == [
        "- pika, ttl: nothing came"
    ]


def test_who_could_not_be_installed_stands_in_the_table_with_the_reason() -> None:
    table = lines({"bunny": ClientResults("Ruby", "2.23", absent="no Ruby here")})
    assert table[2] == "| Ruby: bunny 2.23, not installed |  |  |"
    assert "- bunny: no Ruby here" in table


def test_clients_stand_by_language_and_then_by_name() -> None:
    results = {name: client(language, {}, {}) for name, language in [("b", "Go"), ("c", "C"), ("a", "Go")]}
    assert [line.split("|")[1].strip() for line in lines(results)[2:5]] == ["C: c 1.0", "Go: a 1.0", "Go: b 1.0"]


def test_a_line_of_a_reason_does_not_break_the_list() -> None:
    both = {"ttl": Outcome(Kind.FAILED, "a | b"), "dead_letter": OK}
    table = lines({"pika": client("Python", both, both)})
    assert table[2].count("|") == 4
    assert "- pika, ttl: a | b" in table


def test_a_page_keeps_what_stands_around_its_table(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    parts = [f"<!-- The {what}: written by `make compat`. -->\nold\n<!-- End of the {what}. -->" for what in PLACES]
    page.write_text("above\n" + "\nbetween\n".join(parts) + "\nbelow\n")
    for _ in range(2):
        write(page, {"pika": client("Python", {}, {})}, TWO)
        text = page.read_text()
        assert text.startswith("above\n<!-- The matrix")
        assert "\nbetween\n" in text
        assert text.endswith("-->\nbelow\n")
        assert text.count("Python: pika 1.0") == text.count("- **dead letter**: messages come back") == 1
        assert "old" not in text


PLACES = ("matrix", "scenarios")


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the matrix"):
        put("nothing here", "matrix", "table")


def test_the_projects_page_has_a_place_for_both() -> None:
    text = (Path(__file__).parents[2] / "compat" / "README.md").read_text()
    for what in PLACES:
        assert "content" in put(text, what, "content")


def test_every_scenario_is_described() -> None:
    assert all(SCENARIOS.values())
