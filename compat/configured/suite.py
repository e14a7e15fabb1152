"""The configured scenarios as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.configured import alarms, default_queue_types, deprecated_features, interceptors
from compat.configured.area import Area
from compat.differential.fields import fields
from compat.differential.lab import CONFIGURED as SCENARIOS
from compat.differential.playing import Playing
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ

AREAS: tuple[Area, ...] = (
    alarms.AREA,
    default_queue_types.AREA,
    interceptors.AREA,
    *deprecated_features.AREAS,
)


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    answers: dict[str, Answer] = {}
    for area in AREAS:
        if area.is_known_by(broker.oracle.name):
            if broker.settings != area.settings:
                broker.settings = area.settings
                broker.restart()
            answers |= _played(broker, area)
    yield answers


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    answers: dict[str, Answer] = {}
    for area in AREAS:
        if area.is_known_by(broker.profile):
            configuration = broker.folder / f"{area.name}.conf"
            configuration.parent.mkdir(exist_ok=True)
            configuration.write_text("\n".join(area.settings) + "\n", "utf-8")
            broker.variables = {"RABBITMQ_CONFIG_FILE": str(configuration)}
            with broker.running():
                answers |= _played(broker, area)
    yield answers


def _played(broker: RabbitMQ | AmqpBroker, area: Area) -> dict[str, Answer]:
    with Playing(broker, (scenario for scenario in SCENARIOS.values() if scenario.area == area.name)) as playing:
        return dict(playing)


CONFIGURED = Suite("configured", _answers, _own_answers, fields, plugins=("rabbitmq_management",), has_areas=True)
