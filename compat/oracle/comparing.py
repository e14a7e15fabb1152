"""The differences of two answers, as texts that name the places."""

from __future__ import annotations

import json

from compat.oracle.records import is_same
from compat.oracle.suite import Answer


def is_ordered(path: str) -> bool:
    """Return whether a request asks for an order."""
    return "sort=" in path


# Names that identify the items of a list, so that their order is irrelevant.
IDENTITIES = (
    {"source", "destination", "destination_type", "routing_key", "arguments"},
    {"consumer_tag"},
    {"name"},
    {"protocol"},
    {"queue"},
    {"exchange"},
    {"channel_details"},
)


def identity(items: list[Answer]) -> set[str] | None:
    """Return the names that identify all of these items, or None."""
    for names in IDENTITIES:
        if items and all(isinstance(item, dict) and names <= item.keys() for item in items):
            return names
    return None


def name_of(item: Answer, names: set[str]) -> str:
    return json.dumps([item[name] for name in sorted(names)], sort_keys=True)


def _by(items: list[Answer], names: set[str]) -> dict[str, Answer]:
    return {name_of(item, names): item for item in items}


def _compare_items(rabbitmq: dict[str, Answer], amqp_broker: dict[str, Answer], path: str) -> list[str]:
    found = [f"{path}[{name}]: not here" for name in rabbitmq.keys() - amqp_broker.keys()]
    found += [f"{path}[{name}]: only here" for name in amqp_broker.keys() - rabbitmq.keys()]
    for name in rabbitmq.keys() & amqp_broker.keys():
        found += compare(rabbitmq[name], amqp_broker[name], path + "[]")
    return found


def compare(rabbitmq: Answer, amqp_broker: Answer, path: str) -> list[str]:
    """Yield the differences of two neutral values: the path, with [] for a list item, and both values."""
    if isinstance(rabbitmq, dict) and isinstance(amqp_broker, dict):
        found = [f"{path}.{key}: not here" for key in rabbitmq.keys() - amqp_broker.keys()]
        found += [f"{path}.{key}: only here" for key in amqp_broker.keys() - rabbitmq.keys()]
        for key in rabbitmq.keys() & amqp_broker.keys():
            found += compare(rabbitmq[key], amqp_broker[key], f"{path}.{key}")
        return found
    if isinstance(rabbitmq, list) and isinstance(amqp_broker, list):
        names = None if is_ordered(path) else identity([*rabbitmq, *amqp_broker])
        if names and len(rabbitmq) - len(_by(rabbitmq, names)) == len(amqp_broker) - len(_by(amqp_broker, names)) == 0:
            return _compare_items(_by(rabbitmq, names), _by(amqp_broker, names), path)
        found = [f"{path}: {len(rabbitmq)} there, {len(amqp_broker)} here"] if len(rabbitmq) != len(amqp_broker) else []
        for one, other in zip(rabbitmq, amqp_broker, strict=False):
            found += compare(one, other, path + "[]")
        return found
    return [] if is_same(rabbitmq, amqp_broker) else [f"{path}: {json.dumps(rabbitmq)}, here {json.dumps(amqp_broker)}"]


def _status(answer: Answer) -> int:
    """Return the status of an HTTP answer; 0 for other answers."""
    status = answer.get("status", 0) if isinstance(answer, dict) else 0
    return status if isinstance(status, int) else 0


# The place of an HTTP answer where RabbitMQ fails with an internal error, and amqp-broker refuses the request.
CRASH = "crash"


def fields(question: str, rabbitmq: Answer, amqp_broker: Answer) -> set[str]:
    """Return the places in which two answers differ, without their values."""
    found = set()
    if _status(rabbitmq) == 500 and 400 <= _status(amqp_broker) < 500:
        found.add(CRASH)
        rabbitmq, amqp_broker = ({**answer, "status": 0, "value": None} for answer in (rabbitmq, amqp_broker))
    for line in compare(rabbitmq, amqp_broker, question):
        place = line.removeprefix(question)
        if not place.endswith((": not here", ": only here")):
            place = place.partition(": ")[0]
        found.add(place or "all")
    return found
