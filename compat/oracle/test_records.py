"""Each oracle still answers as recorded."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from compat.oracle import live_rabbitmq, suites
from compat.oracle.records import recorded_version
from compat.oracle.suites import SUITES
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES, of_today


@pytest.mark.verify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", suites.of_today(date.today()))
@pytest.mark.parametrize("minor", of_today(date.today()))
def test_an_oracle_still_answers_as_recorded(minor: str, name: str, tmp_path: Path) -> None:
    oracle = ORACLES[minor]
    try:
        oracle.have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    found = []
    for area in suites.areas_of_today(name, date.today()):
        found += live_rabbitmq.untrue(SUITES[name], oracle, tmp_path / (area or "all"), area)
    if found:
        versions = f"RabbitMQ {oracle.version}, recorded {recorded_version(minor)}"
        pytest.fail("\n".join([versions, *found]), pytrace=False)
