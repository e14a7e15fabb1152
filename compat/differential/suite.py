"""The scenarios as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import EXCHANGE_PLUGINS, RabbitMQ
from compat.differential import scenarios  # noqa: F401 (registers them)
from compat.differential.lab import SCENARIOS
from compat.differential.playing import Playing
from compat.oracle.suite import Answers, Suite


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield Playing((broker.host, broker.port), SCENARIOS.values())


WIRE = Suite("wire", _answers, plugins=EXCHANGE_PLUGINS, has_areas=True)
