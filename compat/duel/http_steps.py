"""Requests of a program to the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compat.brokers import AmqpBroker
from compat.duel.steps import Http
from compat.management.http_asking import Api, Ask, Reply, put
from compat.oracles.rabbitmq import RabbitMQ

# A user of each vhost, with the password of the same name, and all permissions at the beginning of a program.
USER = "dueller"
PERMISSIONS = f"permissions/{{vhost}}/{USER}"
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
# Requests that undo others which a deletion does not undo.
UNDONE = {PERMISSIONS: Http("PUT", PERMISSIONS, EVERYTHING)}


def prepare(api: Api, vhost: str) -> None:
    """Add a vhost, and the user."""
    requests = [put(f"vhosts/{vhost}"), put(f"users/{USER}", {"password": USER, "tags": ""})]
    requests += [put(f"permissions/{vhost}/{user}", EVERYTHING) for user in ("guest", USER)]
    for request in requests:
        assert api.ask(request).status < 300


def ask(broker: AmqpBroker | RabbitMQ, names: Mapping[str, str], step: Http) -> Reply:
    """Send a request, filled in with names."""
    return Api(broker).ask(Ask(step.method, filled(step.path, names), filled(step.body, names)))


def shown(step: Http, reply: Reply) -> str:
    """Return the answer as a line."""
    return f"{step.method} {step.path}: {reply.status} {json.dumps(reply.value, sort_keys=True, ensure_ascii=False)}"


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with the texts for names in braces."""
    match value:
        case str():
            for name, text in names.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case dict():
            return {key: filled(item, names) for key, item in value.items()}
        case list():
            return [filled(item, names) for item in value]
    return value
