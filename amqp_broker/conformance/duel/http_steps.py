"""Requests of a program to the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Mapping

from amqp_broker.conformance.api_client import Answer, HttpApi, filled
from amqp_broker.conformance.duel.steps import Http, Program

# A user of the program, with the password of the same name, and all permissions at the beginning.
USER = "{prefix}dueller"
PERMISSIONS = f"permissions/{{vhost}}/{USER}"
TOPIC_PERMISSIONS = f"topic-permissions/{{vhost}}/{USER}"
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
# Fields of a queue that RabbitMQ refreshes every few seconds.
COUNTS = "messages,messages_ready,messages_unacknowledged,consumers"


def uses_http(program: Program) -> bool:
    return any(isinstance(step, Http) for step in program)


def limits_queues(program: Program) -> bool:
    """Return whether a program limits the number of queues of its virtual host."""
    return any(isinstance(step, Http) and step.path.endswith("/max-queues") for step in program)


def has_user(program: Program) -> bool:
    """Return whether a program changes the permissions of the user."""
    return any(isinstance(step, Http) and step.path in (PERMISSIONS, TOPIC_PERMISSIONS) for step in program)


def ask(api: HttpApi, names: Mapping[str, str], step: Http) -> Answer:
    """Send a request, filled in with names. Raise Unanswered."""
    return api.ask(step.method, filled(step.path, names), filled(step.body, names))


def shown(step: Http, answer: Answer) -> str:
    """Return the answer as a line."""
    return f"{step.method} {step.path}: {answer.status} {json.dumps(answer.value, sort_keys=True, ensure_ascii=False)}"
