"""Commands that differ from the own tools of a RabbitMQ, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Change(NamedTuple):
    """In the answer to this question, `answered` replaces `rabbitmq`, which must occur."""

    question: str
    rabbitmq: str
    answered: str


@dataclass(frozen=True)
class Difference:
    title: str
    why: str
    changes: tuple[Change, ...]


# The tools know only what its HTTP API reports.
AT_RABBITMQ = (
    Difference(
        "Users without a tag cannot be authenticated",
        "The HTTP API refuses a user without the tag management.",
        tuple(
            Change(
                f"changes/rabbitmqctl authenticate_user {user} {password}",
                "Success\nexit code 0",
                f"! Error:\n! Error: failed to authenticate user \"{user}\"\n! user '{user}' - invalid credentials\n"
                "exit code 65",
            )
            for user, password in (("alice", "pw2"), ("bob", "pw3"))
        ),
    ),
    Difference(
        "The creator of a virtual host has all permissions there",
        "RabbitMQ grants them over the HTTP API, but not to rabbitmqctl.",
        (
            Change(
                "changes/rabbitmqctl list_permissions -p side",
                "alice\t^a\tb\t.*",
                "alice\t^a\tb\t.*\nguest\t.*\t.*\t.*",
            ),
            Change(
                "lists/rabbitmqctl list_user_permissions guest", "/\t.*\t.*\t.*", "/\t.*\t.*\t.*\nempty\t.*\t.*\t.*"
            ),
        ),
    ),
    Difference(
        "The trace is not switched on",
        "This request exists only in amqp-broker: RabbitMQ's API would create a missing vhost.",
        (
            Change(
                "changes/rabbitmqctl trace_on -p side",
                "Trace enabled for vhost side\nexit code 0",
                "! Error:\n! the server there is not an amqp-broker: HTTP status 405\nexit code 69",
            ),
            Change("changes/rabbitmqctl list_vhosts name tracing", "side\ttrue", "side\tfalse"),
            Change(
                "changes/rabbitmqctl trace_off -p side",
                "Trace disabled for vhost side\nexit code 0",
                "! Error:\n! the server there is not an amqp-broker: HTTP status 405\nexit code 69",
            ),
        ),
    ),
)
