"""The configured scenarios as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from amqp_broker.conformance.comparing import fields
from amqp_broker.conformance.lab import Scenario, run
from compat.brokers import AmqpBroker
from compat.configured import (
    alarms,
    default_queue_types,
    deprecated_features,
    interceptors,
    no_permissions,
    overwriting_interceptors,
    topic_permissions,
)
from compat.configured.area import Area
from compat.configured.registry import CONFIGURED as SCENARIOS
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ

AREAS: tuple[Area, ...] = (
    alarms.AREA,
    default_queue_types.AREA,
    interceptors.AREA,
    no_permissions.AREA,
    overwriting_interceptors.AREA,
    topic_permissions.AREA,
    *deprecated_features.AREAS,
)


class _Transcripts(Mapping[str, list[str]]):
    """Transcripts by `area/name`, played on lookup; RabbitMQ starts again where the area changes."""

    def __init__(self, broker: RabbitMQ) -> None:
        self._broker = broker
        self._areas = {area.name: area for area in AREAS if area.is_known_by(broker.oracle.name)}
        self._scenarios = {one.question: one for name in self._areas for one in _scenarios_of(name)}

    def __getitem__(self, question: str) -> list[str]:
        scenario = self._scenarios[question]
        settings = self._areas[scenario.area].settings
        if self._broker.settings != settings:
            self._broker.settings = settings
            self._broker.restart()
        return run(scenario, self._broker).splitlines()

    def __iter__(self) -> Iterator[str]:
        return iter(self._scenarios)

    def __len__(self) -> int:
        return len(self._scenarios)


def _scenarios_of(area: str) -> Iterator[Scenario]:
    return (scenario for scenario in SCENARIOS.values() if scenario.area == area)


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield _Transcripts(broker)


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
                answers |= {one.question: run(one, broker).splitlines() for one in _scenarios_of(area.name)}
    yield answers


CONFIGURED = Suite("configured", _answers, _own_answers, fields, plugins=("rabbitmq_management",), has_areas=True)
