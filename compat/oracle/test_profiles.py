"""Each profile of amqp-broker answers as its oracles, except for the differences in `compat/allowed/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.oracle import allowed
from compat.oracle.profiles import ORACLES_OF, ask, differences, load_recorded
from compat.oracle.suites import SUITES


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("profile", ORACLES_OF)
def test_a_profile_answers_as_its_oracles(profile: str, name: str, tmp_path: Path) -> None:
    suite, oracles = SUITES[name], ORACLES_OF[profile]
    found = differences(suite, load_recorded(suite, oracles), ask(suite, profile, oracles, tmp_path))
    table = allowed.load(profile).get(name, {})
    problems = [f"differs: {question}: {place}" for question, place in allowed.unlisted(found, table)]
    problems += [f"listed, but no longer differs: {entry}: {place}" for entry, place in allowed.unused(found, table)]
    if problems:
        command = f"python -m compat.oracle differences {name} --profile {profile}"
        pytest.fail("\n".join([*problems, f"See `{command} --show`."]), pytrace=False)


@pytest.mark.parametrize("profile", ORACLES_OF)
def test_every_allowed_difference_belongs_to_a_suite_and_has_a_reason(profile: str) -> None:
    tables = allowed.load(profile)
    assert tables.keys() <= SUITES.keys()
    assert all(reason for table in tables.values() for places in table.values() for reason in places.values())


def test_every_table_belongs_to_a_profile() -> None:
    assert {file.stem for file in allowed.TABLES.iterdir()} <= ORACLES_OF.keys()
