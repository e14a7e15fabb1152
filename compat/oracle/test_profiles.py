"""Each profile of amqp-broker answers as its oracles, except for the differences in `compat/allowed/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.ctl.suite import CTL
from compat.management.suite import MANAGEMENT
from compat.management_admin.suite import MANAGEMENT_ADMIN
from compat.oracle import allowed
from compat.oracle.profiles import ORACLES_OF, ask, differences, load_recorded
from compat.oracle.suite import Suite
from compat.oracle.suites import SUITES
from compat.startup.suite import STARTUP

# The default profile, and 4.3 where it differs most. Each question of `startup` starts a broker: half a second.
COMPARED = [
    *(("4.2", name) for name in SUITES if name != STARTUP.name),
    *(("4.3", suite.name) for suite in (CTL, MANAGEMENT, MANAGEMENT_ADMIN)),
]
COMPARED_IN_VERIFY = [(profile, name) for profile in ORACLES_OF for name in SUITES if (profile, name) not in COMPARED]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("profile", "name"), COMPARED)
def test_a_profile_answers_as_its_oracles(profile: str, name: str, tmp_path: Path) -> None:
    compare(profile, SUITES[name], tmp_path)


@pytest.mark.verify
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("profile", "name"), COMPARED_IN_VERIFY)
def test_another_profile_answers_as_its_oracle(profile: str, name: str, tmp_path: Path) -> None:
    compare(profile, SUITES[name], tmp_path)


def compare(profile: str, suite: Suite, folder: Path) -> None:
    """Fail for differences that are not listed, and for listed ones that do not occur."""
    oracles = ORACLES_OF[profile]
    recorded, table = load_recorded(suite, oracles), allowed.load(profile).get(suite.name, {})
    found = differences(suite, recorded, ask(suite, profile, oracles, folder))
    problems = [f"differs: {question}: {place}" for question, place in allowed.unlisted(found, table)]
    problems += [f"listed, but no longer differs: {entry}: {place}" for entry, place in allowed.unused(found, table)]
    if problems:
        command = f"python -m compat.oracle differences {suite.name} --profile {profile}"
        pytest.fail("\n".join([*problems, f"See `{command} --show`."]), pytrace=False)


@pytest.mark.parametrize("profile", ORACLES_OF)
def test_every_allowed_difference_belongs_to_a_suite_and_has_a_reason(profile: str) -> None:
    tables = allowed.load(profile)
    assert tables.keys() <= SUITES.keys()
    reasons = {reason for table in tables.values() for places in table.values() for reason in places.values()}
    assert not reasons & {"", allowed.OPEN}


def test_every_table_belongs_to_a_profile() -> None:
    assert {file.stem for file in allowed.TABLES.iterdir()} <= ORACLES_OF.keys()
