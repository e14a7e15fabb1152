"""Lines of rabbitmq.conf are read as cuttlefish reads them for RabbitMQ."""

from __future__ import annotations

import pytest

from compat.oracle.records import Seen, load
from compat.rabbitmq_conf.suite import LINES, RABBITMQ_CONF, read


@pytest.fixture(scope="module")
def recorded() -> Seen:
    return load(RABBITMQ_CONF)


@pytest.mark.parametrize("line", LINES)
def test_lines_are_read_as_by_cuttlefish(recorded: Seen, line: str) -> None:
    assert read(line) in recorded[line]


def test_every_recorded_line_is_still_read(recorded: Seen) -> None:
    assert recorded.keys() == set(LINES)
