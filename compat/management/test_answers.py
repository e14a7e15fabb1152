"""amqp-broker describes the same objects as RabbitMQ: the same keys and the same values."""

from __future__ import annotations

import re

import pytest

from compat.management.differences import DIFFERENCES, listed_as
from compat.management.http_asking import Api
from compat.management.populating import filled
from compat.management.questions import PATHS
from compat.oracle.comparing import compare
from compat.oracle.records import Seen
from compat.oracle.suite import Answer

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")

# Patterns of allowed differences by difference; None if it is not allowed.
Listed = dict[str, str | None]


@pytest.fixture(scope="module")
def found(answers: dict[str, Answer], recorded: Seen) -> dict[str, Listed]:
    """Return the differences by path."""
    return {path: differences(path, recorded[f"answers/{path}"], answers[f"answers/{path}"]) for path in PATHS}


def differences(path: str, recorded: list[Answer], amqp_broker: Answer) -> Listed:
    """Return the differences from the most similar recorded answer."""
    found = [{line: listed_as(line) for line in compare(rabbitmq, amqp_broker, path)} for rabbitmq in recorded]
    return min(found, key=lambda lines: len(unlisted(lines)))


def unlisted(found: Listed) -> list[str]:
    return sorted(line for line, pattern in found.items() if pattern is None)


@pytest.mark.parametrize("path", PATHS)
def test_answers_equal_rabbitmqs(found: dict[str, Listed], path: str) -> None:
    assert unlisted(found[path]) == []


def test_each_listed_difference_occurs(found: dict[str, Listed]) -> None:
    used = {pattern for lines in found.values() for pattern in lines.values()}
    assert [pattern for pattern in DIFFERENCES if pattern not in used] == []


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize("path", ["queues", "channels"])
def test_idle_since_is_reported(amqp_broker: Api, path: str) -> None:
    with filled(amqp_broker):
        assert all(TIME.fullmatch(row["idle_since"]) for row in amqp_broker.get(path))
