"""Each profile of amqp-broker answers as its oracles, except for the differences in `compat/allowed/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.ctl.suite import CTL
from compat.differential.suite import WIRE
from compat.management.suite import MANAGEMENT
from compat.management_admin.suite import MANAGEMENT_ADMIN
from compat.oracle import allowed
from compat.oracle.profiles import ORACLES_OF, ask, differences, load_recorded, varying
from compat.oracle.suite import Suite
from compat.oracle.suites import SUITES

# The default profile in all suites, and 4.3 where it differs most.
COMPARED = [
    *(("4.2", name) for name in SUITES),
    *(("4.3", suite.name) for suite in (WIRE, CTL, MANAGEMENT, MANAGEMENT_ADMIN)),
]
COMPARED_IN_VERIFY = [
    *(("4.3", name) for name in SUITES if ("4.3", name) not in COMPARED),
    *((profile, name) for profile in ("3.13", "4.0") for name in SUITES),
]
# A scenario takes a profile 20 ms, and most are answered alike by all versions of RabbitMQ.
VARYING_ONLY = [("4.3", WIRE.name)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("profile", "name"), COMPARED)
def test_a_profile_answers_as_its_oracles(profile: str, name: str, tmp_path: Path) -> None:
    suite = SUITES[name]
    compare(profile, suite, tmp_path, varying(suite) if (profile, name) in VARYING_ONLY else None)


@pytest.mark.verify
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("profile", "name"), COMPARED_IN_VERIFY)
def test_another_profile_answers_as_its_oracle(profile: str, name: str, tmp_path: Path) -> None:
    compare(profile, SUITES[name], tmp_path, None)


@pytest.mark.verify
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("profile", "name"), VARYING_ONLY)
def test_a_profile_answers_as_its_oracles_where_all_agree(profile: str, name: str, tmp_path: Path) -> None:
    suite = SUITES[name]
    compare(profile, suite, tmp_path, questions_of(profile, suite) - varying(suite))


def questions_of(profile: str, suite: Suite) -> set[str]:
    return {question for seen in load_recorded(suite, ORACLES_OF[profile]) for question in seen}


def compare(profile: str, suite: Suite, folder: Path, chosen: set[str] | None) -> None:
    """Fail for differences that are not listed, and for listed ones that do not occur. `None` is all questions."""
    oracles = ORACLES_OF[profile]
    recorded, table = load_recorded(suite, oracles), allowed.load(profile).get(suite.name, {})
    if chosen is not None:
        recorded = [{one: answers for one, answers in seen.items() if one in chosen} for seen in recorded]
    found = differences(suite, recorded, ask(suite, profile, oracles, folder, chosen))
    problems = [f"differs: {question}: {place}" for question, place in allowed.unlisted(found, table)]
    problems += [
        f"listed, but no longer differs: {entry}: {place}"
        for entry, place in allowed.unused(found, table)
        if chosen is None or entry in chosen
    ]
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
