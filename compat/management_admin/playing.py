"""Sends the requests to a broker, amqp-broker or RabbitMQ, and makes the answers comparable."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

import pika

from compat.brokers import BrokerProcess
from compat.management.http_asking import Api, Ask, titled
from compat.management_admin.limit_requests import REACHED
from compat.management_admin.message_requests import MESSAGES
from compat.management_admin.policy_requests import POLICY_KEYS
from compat.management_admin.requests import SCENARIOS
from compat.management_admin.shovel_requests import SHOVELS
from compat.oracle.suite import Answer

AREAS: Final = {
    **SCENARIOS,
    "messages": MESSAGES,
    "policy_keys": POLICY_KEYS,
    "reached_limits": REACHED,
    "shovels": SHOVELS,
}
QUESTIONS: Final = {f"{area}/{title}": ask for area, asks in AREAS.items() for title, ask in titled(asks).items()}
QUEUES: Final[dict[str, dict[str, object]]] = {
    "m": {},
    "dead": {},
    "dying": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    "full": {"x-max-length": 1, "x-overflow": "reject-publish"},
    "qq": {"x-queue-type": "quorum"},
    "log": {"x-queue-type": "stream"},
}


class Said(NamedTuple):
    """An answer: status, and the decoded JSON or text."""

    status: int
    value: Answer


def play(api: Api) -> dict[str, Said]:
    """Return the answers of a newly started broker to all requests, in order."""
    declare(api.broker)
    node = api.node
    found = {}
    for title, question in QUESTIONS.items():
        reply = api.ask(question)
        found[title] = Said(reply.status, comparable(reply.value, node, question))
    return found


def declare(broker: BrokerProcess) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    for name, arguments in QUEUES.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
    channel.exchange_declare("inner", "fanout", internal=True)
    connection.close()


# Values that differ between any two brokers: salts, times and ports.
_OWN = {"password_hash", "time", "ports"}


def comparable(value: Answer, node: str, question: Ask) -> Answer:
    """Return an answer without broker-specific values, and with sorted lists where the order is undefined."""
    if isinstance(value, dict):
        return {
            key.replace(node, "NODE"): "…" if _is_own(key, item, question) else comparable(item, node, question)
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = [comparable(item, node, question) for item in value]
        is_unordered = question.method == "GET" and all(_is_named(item) for item in items)
        return sorted(items, key=json.dumps) if is_unordered else items
    return value


def _is_own(key: str, value: Answer, question: Ask) -> bool:
    if question.path.startswith("auth/hash_password"):
        return key == "ok"
    if question.path.startswith("global-parameters") and key == "value" and isinstance(value, str):
        # The names of the cluster.
        return True
    return key in _OWN and value != "" and not question.path.startswith("users/hashed")


def _is_named(item: Answer) -> bool:
    """Return whether the items are objects, tags or names, which have no defined order."""
    return isinstance(item, str) or (isinstance(item, dict) and "payload" not in item and "queue" not in item)
