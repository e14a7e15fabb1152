"""Each oracle still answers as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.ctl.lines import AREAS
from compat.ctl.running import ADMIN_AREA
from compat.ctl.suite import CTL
from compat.oracle import live_rabbitmq
from compat.oracle.records import recorded_version
from compat.oracle.suites import SUITES
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES

# The suites, and the command lines by area: each of RabbitMQ's commands takes a second.
ASKED = [*((name, "") for name in SUITES if name != CTL.name), *((CTL.name, f"{area}/") for area in AREAS)]
# RabbitMQ 4.3 no longer has rabbitmqadmin.
UNKNOWN = {("4.3", f"{ADMIN_AREA}/")}


@pytest.mark.verify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "area", "minor"),
    [(name, area, minor) for name, area in ASKED for minor in ORACLES if (minor, area) not in UNKNOWN],
)
def test_an_oracle_still_answers_as_recorded(name: str, area: str, minor: str, tmp_path: Path) -> None:
    oracle = ORACLES[minor]
    try:
        oracle.have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    if found := live_rabbitmq.untrue(SUITES[name], oracle, tmp_path, area):
        versions = f"RabbitMQ {oracle.version}, recorded {recorded_version(minor)}"
        pytest.fail("\n".join([versions, *found]), pytrace=False)
