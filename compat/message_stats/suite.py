"""The counts as a suite of the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compat.brokers import RabbitMQ
from compat.management.http_asking import Api
from compat.message_stats.counting import told, work
from compat.oracle.suite import Answer, Answers, Suite

# RabbitMQ's numbers are samples, up to five seconds old.
SETTLED_S = 10.0


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    api = Api(broker)
    connection = work(api)
    yield settled(lambda: told(api))
    connection.close()


def settled(ask: Callable[[], dict[str, Answer]]) -> dict[str, Answer]:
    """Return the counts once they have been constant for a while."""
    answer, since = ask(), time.monotonic()
    while time.monotonic() < since + SETTLED_S:
        time.sleep(0.5)
        if (now := ask()) != answer:
            answer, since = now, time.monotonic()
    return answer


MESSAGE_STATS = Suite(
    "message_stats",
    _answers,
    plugins=("rabbitmq_management",),
    settings=("collect_statistics_interval = 500",),
)
