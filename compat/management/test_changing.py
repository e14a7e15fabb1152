"""Changes, and requests for missing objects, are answered as by RabbitMQ: status, reason and location."""

from __future__ import annotations

import pytest

from compat.management.http_asking import titled
from compat.management.questions import REASONS, STEPS, WRONG_METHODS
from compat.oracle.records import Seen, is_among
from compat.oracle.suite import Answer


@pytest.mark.parametrize("step", titled(STEPS))
def test_changes_are_answered_as_by_rabbitmq(answers: dict[str, Answer], recorded: Seen, step: str) -> None:
    assert is_among(_without_type(answers[f"changing/{step}"]), recorded[f"changing/{step}"])


def _without_type(answer: Answer) -> Answer:
    """Return the answer without the argument for the type classic, which newer versions add."""
    if isinstance(answer["value"], dict) and answer["value"].get("arguments", {}).get("x-queue-type") == "classic":
        answer["value"]["arguments"].pop("x-queue-type")
    return answer


@pytest.mark.parametrize("question", titled(WRONG_METHODS))
def test_the_same_methods_are_refused(answers: dict[str, Answer], recorded: Seen, question: str) -> None:
    assert is_among(answers[f"methods/{question}"], recorded[f"methods/{question}"])


@pytest.mark.parametrize("reason", REASONS)
def test_a_closed_client_receives_the_reason(answers: dict[str, Answer], recorded: Seen, reason: str) -> None:
    assert is_among(answers[f"closing/{reason}"], recorded[f"closing/{reason}"])


def test_every_record_is_still_asked(answers: dict[str, Answer], recorded: Seen) -> None:
    assert recorded.keys() == answers.keys()
