"""The page about arguments has all that the broker knows, with the types of queues that know them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.queue_settings import POLICY_KEYS
from amqp_broker.settings.profiles import PROFILES

PAGE = (Path(__file__).parents[2] / "docs" / "arguments.md").read_text("utf-8")


def types_by_argument(section: str) -> dict[str, str]:
    """Return the second column of the tables of a section, by the arguments in the first."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", text, re.MULTILINE)
    return {name: types for names, types in rows for name in re.findall(r"`(x-[a-z-]+)`", names)}


@pytest.mark.parametrize("kind", arguments.QUEUE_TYPES)
@pytest.mark.parametrize(
    ("section", "since"), [("Queues", arguments._KNOWN_BY_QUEUES), ("Consumers", arguments._KNOWN_BY_CONSUMERS)]
)
def test_each_type_has_its_arguments_on_the_page(
    section: str, since: dict[arguments.Release, arguments.Known], kind: str
) -> None:
    known = {name for profile in PROFILES.values() for name in arguments._known(since, kind, profile.release)}
    assert {name for name, types in types_by_argument(section).items() if kind in types} == known


def test_each_argument_with_an_effect_by_a_policy_is_in_the_first_table() -> None:
    first = types_by_argument("Queues")
    assert set(POLICY_KEYS.values()) <= set(first)
