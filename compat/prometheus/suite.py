"""Metrics as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.oracle.comparing import fields
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ
from compat.prometheus.metrics import FORMS, scrape, use
from compat.waiting import wait_until


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    connection = use(broker.url, broker.declares_durable)

    def has_told() -> bool:
        """Return whether RabbitMQ has collected all statistics."""
        connection.process_data_events(0)
        together, by_object = (scrape(broker.prometheus_port, FORMS[form]) for form in ("all together", "per object"))
        redelivered = by_object.get("channel_messages_redelivered")
        return (
            "disk_space_available_bytes" in together
            and redelivered is not None
            and any(redelivered["values"].values())
            and together["queue_messages_unacked"]["values"] == {"": 2}
        )

    wait_until(has_told)
    yield {form: scrape(broker.prometheus_port, path) for form, path in FORMS.items()}
    connection.close()


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    with broker.running():
        connection = use(broker.url, broker.declares_durable)
        yield {form: scrape(broker.prometheus_port, path) for form, path in FORMS.items()}
        connection.close()


PROMETHEUS = Suite(
    "prometheus",
    _answers,
    _own_answers,
    fields,
    plugins=("rabbitmq_prometheus",),
    settings=("collect_statistics_interval = 500",),
)
