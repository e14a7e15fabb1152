"""After the same operations, amqp-broker's metrics equal RabbitMQ's.

Names, types, help texts, labels and values are compared, except for `differences.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from compat.brokers import AmqpBroker
from compat.oracle.records import Seen, load
from compat.prometheus.differences import DIFFERENCES
from compat.prometheus.metrics import FORMS, Families, compare, scrape, use
from compat.prometheus.suite import PROMETHEUS


@pytest.fixture(scope="module")
def recorded() -> Seen:
    return load(PROMETHEUS)


@pytest.fixture(scope="module")
def amqp_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Families]]:
    """Return amqp-broker's metrics by form."""
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), profile="3.13")
    broker.start()
    connection = use(broker)
    yield {form: scrape(broker.prometheus_port, path) for form, path in FORMS.items()}
    connection.close()
    broker.kill()


def unlisted(found: list[str]) -> list[str]:
    return [line for line in found if not any(re.fullmatch(pattern, line) for pattern in DIFFERENCES)]


def differences(recorded: list[Families], amqp_broker: Families) -> list[str]:
    """Return the differences from the most similar recorded answer."""
    found = [list(compare(rabbitmq, amqp_broker)) for rabbitmq in recorded]
    return min(found, key=lambda lines: len(unlisted(lines)))


@pytest.mark.parametrize("form", FORMS)
def test_the_metrics_equal_rabbitmqs(amqp_broker: dict[str, Families], recorded: Seen, form: str) -> None:
    assert unlisted(differences(recorded[form], amqp_broker[form])) == []


def test_each_listed_difference_occurs(amqp_broker: dict[str, Families], recorded: Seen) -> None:
    found = [line for form in FORMS for line in differences(recorded[form], amqp_broker[form])]
    unused = [pattern for pattern in DIFFERENCES if not any(re.fullmatch(pattern, line) for line in found)]
    assert unused == []


def test_every_record_is_still_asked(recorded: Seen) -> None:
    assert recorded.keys() == FORMS.keys()
