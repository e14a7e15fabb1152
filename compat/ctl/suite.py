"""The command lines as a suite of the oracle: RabbitMQ's own tools run them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import RabbitMQ
from compat.ctl.playing import play
from compat.ctl.running import RabbitMQSide
from compat.oracle.suite import Answers, Suite


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield play(RabbitMQSide(broker))


CTL = Suite("ctl", _answers, plugins=("rabbitmq_management",), has_areas=True)
