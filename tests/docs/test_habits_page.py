"""docs/habits.md explains each habit of which the broker gives advice."""

from __future__ import annotations

import re

from amqp_broker.broker.lab.habits import HABITS
from tests.docs.blocks import PROJECT


def test_each_habit_has_a_section_at_its_link() -> None:
    page = PROJECT / "docs" / "habits.md"
    sections = re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
    assert [f"docs/{page.name}#{name}" for name in sections] == [habit.link for habit in HABITS.values()]
