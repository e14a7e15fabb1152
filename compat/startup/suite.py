"""The starts as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from compat.brokers import AmqpBroker
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ
from compat.startup.inputs import INPUTS, Input
from compat.startup.outcome import outcome
from compat.startup.starting import StartedAmqpBroker, StartedRabbitMQ


class _Outcomes(Mapping[str, Answer]):
    """The outcome of each input; a broker starts when one is looked up."""

    def __init__(self, make: Callable[[Input, str], StartedRabbitMQ | StartedAmqpBroker]) -> None:
        self._make = make

    def __getitem__(self, question: str) -> Answer:
        number = list(INPUTS).index(question)
        return outcome(self._make(INPUTS[question], f"start-{number}"))

    def __iter__(self) -> Iterator[str]:
        return iter(INPUTS)

    def __len__(self) -> int:
        return len(INPUTS)


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield _Outcomes(lambda given, name: StartedRabbitMQ(given, broker.folder / name, broker.oracle))


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    yield _Outcomes(lambda given, name: StartedAmqpBroker(given, broker.folder / name, broker.profile))


def fields(question: str, theirs: Answer, ours: Answer) -> set[str]:
    """Return the parts of the outcome that differ."""
    places: dict[str, Any] = {**theirs, **ours}
    if theirs["is started"] != ours["is started"]:
        return {"is started"}
    return {place for place in places if theirs.get(place) != ours.get(place)}


STARTUP = Suite("startup", _answers, _own_answers, fields)
