"""Differences over HTTP that may stay, about which a user would say: rightly so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from compat.duel.http_steps import Step
from compat.management.http_asking import Reply

Includes: TypeAlias = Callable[[Step, Reply, Reply], bool]


@dataclass(frozen=True)
class Allowed:
    """A difference between RabbitMQ's answer to a request and this broker's, and how it is recognized."""

    reason: str
    includes: Includes
    # Profiles of amqp-broker; an empty tuple stands for all.
    profiles: tuple[str, ...] = ()


def reason_of(reply: Reply) -> str:
    """Return the reason of a refusal, or an empty text."""
    value = reply.value
    return str(value.get("reason", "")) if reply.status >= 400 and isinstance(value, dict) else ""


def _refuses(*texts: str) -> Includes:
    """Return whether only this broker refuses a request, with one of these texts in the reason."""

    def includes(step: Step, theirs: Reply, mine: Reply) -> bool:
        return theirs.status < 400 and mine.status == 400 and any(text in reason_of(mine) for text in texts)

    return includes


def _names_another_mistake(step: Step, theirs: Reply, mine: Reply) -> bool:
    return step.ask.method == "POST" and theirs.status == 404 and mine.status in (400, 415)


ALLOWED = (
    Allowed(
        "A refusal has the same status, and the reason in a sentence that names the object; RabbitMQ's is in part an "
        "Erlang term.",
        lambda step, theirs, mine: theirs.status >= 400 and theirs.status == mine.status,
    ),
    Allowed(
        "RabbitMQ accepts a value of a wrong type and misinterprets it; amqp-broker refuses it with the reason.",
        _refuses(
            "invalid type", "should be", "must be", "not_string", "is longer than", "has no ", "has undefined name"
        ),
    ),
    Allowed(
        "RabbitMQ accepts passwords hashed by an unknown algorithm, and hashes that are none, with which nobody "
        "can log in; amqp-broker refuses them.",
        _refuses("hashing algorithm", "password hash"),
    ),
    Allowed(
        "RabbitMQ accepts a default queue type that does not exist; amqp-broker refuses it, as RabbitMQ 4 mostly does.",
        _refuses("unsupported queue type"),
    ),
    Allowed(
        "RabbitMQ does not look at the pattern of a page of an empty list; amqp-broker refuses a wrong one.",
        _refuses("Pagination parameters are invalid"),
    ),
    Allowed(
        "Of two mistakes in one request, either may be named: RabbitMQ looks for the objects of a POST before it reads "
        "the body, or its type.",
        _names_another_mistake,
    ),
    Allowed(
        "RabbitMQ 3.10 has no policies for queues of one type; the HTTP API has them with every profile.",
        lambda step, theirs, mine: "apply-to" in reason_of(theirs) and mine.status < 400,
        profiles=("3.13",),
    ),
)


def is_allowed(step: Step, theirs: Reply, mine: Reply, profile: str) -> bool:
    """Return whether the answers of RabbitMQ and of this broker may differ."""
    return any(
        (not allowed.profiles or profile in allowed.profiles) and allowed.includes(step, theirs, mine)
        for allowed in ALLOWED
    )
