"""Each oracle still answers as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.configured.suite import CONFIGURED
from compat.ctl.lines import AREAS
from compat.ctl.running import ADMIN_AREA
from compat.ctl.suite import CTL
from compat.differential.suite import HTTP, WIRE
from compat.oracle.live_rabbitmq import PARTS, untrue
from compat.oracle.records import recorded_version
from compat.oracle.suites import SUITES
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES
from compat.startup.suite import STARTUP

# The suites, and the command lines by area: each of RabbitMQ's commands takes a second.
# rabbitmqadmin, which RabbitMQ 4.3 no longer has, comes last: of each three cases before, one day asks one version.
BY_AREA = sorted(AREAS, key=lambda area: area == ADMIN_AREA)
ASKED = [*((name, "") for name in SUITES if name != CTL.name), *((CTL.name, f"{area}/") for area in BY_AREA)]
UNKNOWN = {("4.3", f"{ADMIN_AREA}/")}
# Suites of which a part of the questions can be asked: none needs the answer to another.
DIVISIBLE = {WIRE.name, HTTP.name, CONFIGURED.name, STARTUP.name}
CASES = [(*asked, minor) for asked in ASKED for minor in ORACLES if (minor, asked[1]) not in UNKNOWN]


@pytest.mark.verify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "area", "minor"), CASES)
def test_an_oracle_still_answers_as_recorded(name: str, area: str, minor: str, day: int | None, tmp_path: Path) -> None:
    """A day, as in CI, asks a ninth of the questions, and all within 81 days: the oracles do not change."""
    oracle = ORACLES[minor]
    try:
        oracle.have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    part = day // 9 % PARTS if day is not None and name in DIVISIBLE else None
    if found := untrue(SUITES[name], oracle, tmp_path, area, part):
        versions = f"RabbitMQ {oracle.version}, recorded {recorded_version(minor)}"
        pytest.fail("\n".join([versions, *found]), pytrace=False)
