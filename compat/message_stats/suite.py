"""The counts as a suite of the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api
from compat.message_stats.counting import told, work
from compat.oracle.comparing import fields
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ

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


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    with broker.running():
        api = Api(broker)
        connection = work(api)
        yield told(api)
        connection.close()


MESSAGE_STATS = Suite(
    "message_stats",
    _answers,
    _own_answers,
    fields,
    plugins=("rabbitmq_management",),
    settings=("collect_statistics_interval = 500",),
)
