"""The table of `docs/conformance.md` has all scenarios and programs of the package."""

from __future__ import annotations

from collections import Counter

import pytest

from amqp_broker.cli.own.conformance import Choice
from amqp_broker.conformance.records import load
from amqp_broker.conformance.results import title_of
from compat.differential.results_table import PAGE, Table, count_of, read
from compat.oracle.profiles import ORACLES_OF

AGAIN = "docs/conformance.md is older than the scenarios: run python -m compat.differential.results_table"


@pytest.fixture(scope="module")
def table() -> Table:
    return read(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("profile", ORACLES_OF)
def test_a_column_of_the_page_has_the_scenarios_that_are_played(table: Table, profile: str) -> None:
    recorded = {oracle: load(oracle) for oracle in ORACLES_OF[profile]}
    played = Counter(title_of(one.area) for one in Choice("", with_programs=True).scenarios(recorded, has_api=True))
    played["All"] = played.total()
    assert {chapter: sum(count_of(cells[f"`--compat {profile}`"])) for chapter, cells in table.items()} == played, AGAIN


def test_the_column_of_rabbitmq_has_the_scenarios_of_its_newest_version(table: Table) -> None:
    newest = {chapter: sum(count_of(cells["`--compat 4.3`"])) for chapter, cells in table.items()}
    assert {chapter: int(cells["RabbitMQ 3.10, 4.0, 4.3"]) for chapter, cells in table.items()} == newest, AGAIN
