"""A suite of the comparison with RabbitMQ: questions, and a way to ask them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat.brokers import AmqpBroker
from compat.oracles.rabbitmq import RabbitMQ

# A JSON value that does not depend on the machine, the time or the run.
Answer = Any
# Answers by question; a question may be asked only when its answer is looked up.
Answers = Mapping[str, Answer]


@dataclass(frozen=True)
class Suite:
    """Questions for a RabbitMQ, with its configuration.

    `answers` asks a newly started RabbitMQ; leaving the context closes what it has opened.
    """

    name: str
    answers: Callable[[RabbitMQ], AbstractContextManager[Answers]]
    # Asks an amqp-broker that is not yet started the same.
    own_answers: Callable[[AmqpBroker], AbstractContextManager[Answers]]
    # Returns the places in which two answers to a question differ: RabbitMQ's and amqp-broker's.
    fields: Callable[[str, Answer, Answer], set[str]]
    plugins: tuple[str, ...] = ()
    # Additional lines of rabbitmq.conf.
    settings: tuple[str, ...] = ()
    # Questions are named `area/name`, and each area has its own file.
    has_areas: bool = False
    # The folder of its records, if it is not that of all others.
    folder: Path | None = None
