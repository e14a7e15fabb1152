"""RabbitMQ still answers as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.brokers import RabbitMQ
from compat.oracle import live_rabbitmq
from compat.oracle.records import VERSION
from compat.oracle.suites import SUITES


@pytest.mark.verify
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SUITES)
def test_rabbitmq_still_answers_as_recorded(name: str, tmp_path: Path) -> None:
    if RabbitMQ.version() != VERSION:
        pytest.skip(f"RabbitMQ {VERSION} is not installed")
    found = live_rabbitmq.untrue(SUITES[name], tmp_path)
    if found:
        pytest.fail("\n".join(found), pytrace=False)
