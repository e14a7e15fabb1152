"""Allowed differences from RabbitMQ 3.10, each with a name; one that does not occur fails the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from compat.management.http_asking import Ask
from compat.management_admin.playing import Said
from compat.oracle.records import is_same
from compat.oracle.suite import Answer

Rule = Callable[[Ask, Said, Said], bool]


def _reason(said: Said) -> Answer:
    return said.value.get("reason") if isinstance(said.value, dict) else None


# Requests that only amqp-broker refuses, in three groups: its reasons by the title of the request.
_REFUSALS: Final[dict[str, dict[str, Answer]]] = json.loads(
    Path(__file__).with_name("refusals.json").read_text("utf-8")
)


def _refused(group: str, *statuses: int) -> Rule:
    """Match requests of a group that RabbitMQ answers with these statuses and that amqp-broker refuses."""
    reasons = _REFUSALS[group]

    def applies(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
        reason = reasons.get(question.title)
        status = 404 if reason in ("vhost_not_found", "Not Found") else 400
        return (
            reason is not None
            and rabbitmq.status in statuses
            and (amqp_broker.status, _reason(amqp_broker)) == (status, reason)
        )

    return applies


def _vhost(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """A vhost has more fields, and a change of some metadata keeps the others."""
    if not question.path.startswith("vhosts") or rabbitmq.status != 200 or amqp_broker.status != 200:
        return False
    if isinstance(rabbitmq.value, list):
        return len(rabbitmq.value) == len(amqp_broker.value) and all(
            map(_is_same_vhost, rabbitmq.value, amqp_broker.value)
        )
    return _is_same_vhost(rabbitmq.value, amqp_broker.value)


_COUNTS: Final = ("messages", "messages_ready", "messages_unacknowledged")


def _is_same_vhost(rabbitmq: dict[str, Answer], amqp_broker: dict[str, Answer]) -> bool:
    has_lost_notes = rabbitmq["name"] == "v2" and not rabbitmq["description"]
    notes = {"description": "changed", "tags": ["c"]} if has_lost_notes else rabbitmq["metadata"]
    expected = {
        **rabbitmq,
        **notes,
        "metadata": {**notes, "default_queue_type": "classic"},
        "default_queue_type": "classic",
        "protected_from_deletion": False,
    }
    return is_same({key: amqp_broker[key] for key in amqp_broker if key not in _COUNTS}, expected)


def _queue_type(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """In 3.10 the vhost exists already, with an invalid default queue type."""
    return (question.path, rabbitmq.status, amqp_broker.status) == ("vhosts/v4", 204, 201)


def _whoami(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    return question.path == "whoami" and is_same({**rabbitmq.value, "is_internal_user": True}, amqp_broker.value)


def _hash_password(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    return question.path.startswith("auth/hash_password") and (rabbitmq.status, amqp_broker.status) == (404, 200)


def _oauth(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    return question.path == "auth" and is_same(amqp_broker, Said(200, {"oauth_enabled": False}))


def _definitions(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """Policies and parameters do not repeat the vhost's name."""
    if question.path != "definitions/v1":
        return False
    expected = {
        section: [{key: item[key] for key in item if key != "vhost"} for item in rabbitmq.value[section]]
        for section in ("bindings", "exchanges", "queues", "parameters", "policies")
    }
    return is_same({key: amqp_broker.value.get(key) for key in expected}, expected)


def _parameter_order(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """RabbitMQ's database has an order of its own; amqp-broker sorts."""
    if not question.path.startswith("parameters") or not isinstance(rabbitmq.value, list):
        return False
    in_order = sorted(rabbitmq.value, key=lambda item: (item["component"], item["name"]))
    return is_same(rabbitmq._replace(value=in_order), amqp_broker)


def _features(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """Deprecated features came with 3.12."""
    return question.path.startswith("deprecated-features") and rabbitmq.status == 404 and amqp_broker.status != 404


def _apply_to(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    start = "Validation failed\n\napply-to 'nothing' unrecognised; should be "
    return rabbitmq.status == amqp_broker.status == 400 and all(
        str(_reason(said)).startswith(start) for said in (rabbitmq, amqp_broker)
    )


# Keys that later versions know, or know in operator policies, or whose values or texts they have changed.
_CHANGED_KEYS: Final = {
    *("consumer-timeout", "delivery-limit", "ha-mode", "overflow", "queue-master-locator", "queue-version"),
    *("stream-filter-size-bytes", "target-group-size"),
}


def _policy_key(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """Allow other answers about keys that have changed, and a refusal where RabbitMQ fails."""
    kind, _, key = question.path.partition("/%2F/")
    if not kind.endswith("policies"):
        return False
    return key in _CHANGED_KEYS or (key == "max-age" and (rabbitmq.status, amqp_broker.status) == (500, 400))


def _regexp(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """RabbitMQ returns the pattern, or its error, as lists of letters."""
    expected = {"error": "bad_request", "reason": ["invalid_regexp", "(", '{"missing )",1}']}
    return (_reason(rabbitmq) or [""])[0] == "invalid_regexp" and is_same(amqp_broker, Said(400, expected))


def _listeners(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """Erlang's nodes listen for each other."""
    return (
        rabbitmq.status == amqp_broker.status == 503
        and "listener" in question.path
        and _reason(rabbitmq) == _reason(amqp_broker)
    )


def _deaths(question: Ask, rabbitmq: Said, amqp_broker: Said) -> bool:
    """Allow the last death of a dead letter, and a missing count of a message from a quorum queue."""
    if question.path not in ("queues/%2F/dead/get", "queues/%2F/qq/get") or rabbitmq.status != amqp_broker.status:
        return False
    return is_same(*([_without_deaths(message) for message in said.value] for said in (rabbitmq, amqp_broker)))


def _without_deaths(message: dict[str, Answer]) -> dict[str, Answer]:
    properties = message["properties"]
    headers = {
        name: value
        for name, value in properties.get("headers", {}).items()
        if not name.startswith("x-last-death-") and (name, value) != ("x-delivery-count", 0)
    }
    return {**message, "properties": {**properties, "headers": headers}}


RULES: Final[dict[str, Rule]] = {
    "requests that 3.10 answers with 500 are refused with the reason": _refused("crashes", 500),
    "a password hash must be valid for its algorithm": _refused("wrong hashes", 204),
    "values that 3.10 accepts and then misinterprets are refused": _refused("wrong values", 200, 201, 204),
    "a vhost has more fields, and a change keeps those that it does not mention": _vhost,
    "a default queue type must exist": _queue_type,
    "whoami reports that users are internal": _whoami,
    "passwords can be hashed over HTTP": _hash_password,
    "OAuth settings are reported as in RabbitMQ 4": _oauth,
    "deprecated features are listed": _features,
    "parameters are sorted": _parameter_order,
    "policies can apply to a queue type": _apply_to,
    "policies have the keys of RabbitMQ 4": _policy_key,
    "an invalid pattern and its error are texts": _regexp,
    "listeners differ": _listeners,
    "a vhost's definitions have more fields": _definitions,
    "dead letters and counts are those of RabbitMQ 4": _deaths,
}


def name_of(question: Ask, rabbitmq: Said, amqp_broker: Said) -> str | None:
    """Return the first difference that explains two unequal answers."""
    return next((name for name, applies in RULES.items() if applies(question, rabbitmq, amqp_broker)), None)
