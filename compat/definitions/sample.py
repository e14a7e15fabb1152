"""Definitions in RabbitMQ's form with every kind of object that both brokers support."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512, "md5": hashlib.md5}
EXCHANGE_TYPES = (
    *("direct", "fanout", "topic", "headers"),
    *("x-consistent-hash", "x-modulus-hash", "x-random", "x-recent-history"),
)
# All JSON values except null, which RabbitMQ refuses.
ALL_TYPES: dict[str, Any] = {
    "small": 1,
    "negative": -5,
    "long": 9_007_199_254_740_993,
    "double": 1.5,
    "whole double": 2.0,
    "true": True,
    "false": False,
    "text": 'é"\\ \u20ac',
    "empty text": "",
    "array": [1, "a", True, 2.5, {"b": [1, {"c": "d"}]}],
    "empty array": [],
    "object": {"a": {"b": {"c": [1, 2]}}, "d": 5},
    "empty object": {},
}
QUEUES: dict[str, tuple[bool, bool, dict[str, Any]]] = {
    # name: durable, auto_delete, arguments
    "plain": (True, False, {}),
    "transient": (False, False, {}),
    "auto-delete": (True, True, {}),
    "é/ü %2F": (True, False, {"x-unknown": ALL_TYPES}),
    "classic": (
        True,
        False,
        {
            "x-queue-type": "classic",
            "x-expires": 3_600_000,
            "x-message-ttl": 60_000,
            "x-dead-letter-exchange": "x-headers",
            "x-dead-letter-routing-key": "dead",
            "x-max-length": 100,
            "x-max-length-bytes": 1_000_000,
            "x-overflow": "reject-publish-dlx",
            "x-queue-mode": "lazy",
            "x-queue-version": 2,
            "x-single-active-consumer": True,
        },
    ),
    "priorities": (True, False, {"x-max-priority": 10}),
    "quorum": (True, False, {"x-queue-type": "quorum", "x-delivery-limit": 5, "x-quorum-initial-group-size": 1}),
    "stream": (
        True,
        False,
        {"x-queue-type": "stream", "x-max-age": "7D", "x-stream-max-segment-size-bytes": 1_000_000},
    ),
}
EXCHANGES: list[dict[str, Any]] = [
    {
        "name": f"x-{kind}",
        "type": kind,
        "durable": kind != "fanout",
        "auto_delete": kind == "topic",
        "internal": kind == "direct",
        "arguments": {"alternate-exchange": "amq.fanout", "other": ALL_TYPES} if kind == "headers" else {},
    }
    for kind in EXCHANGE_TYPES
]
TO_QUEUE = {"destination_type": "queue", "arguments": {}}
BINDINGS: list[dict[str, Any]] = [
    {**TO_QUEUE, "source": "x-topic", "destination": "plain", "routing_key": "a.*.#"},
    {**TO_QUEUE, "source": "x-topic", "destination": "plain", "routing_key": ""},
    {**TO_QUEUE, "source": "amq.direct", "destination": "é/ü %2F", "routing_key": "~é"},
    {**TO_QUEUE, "source": "x-x-consistent-hash", "destination": "quorum", "routing_key": "5"},
    {**TO_QUEUE, "source": "x-headers", "destination": "stream", "routing_key": "", "arguments": ALL_TYPES},
    {
        **TO_QUEUE,
        "source": "x-headers",
        "destination": "stream",
        "routing_key": "",
        "arguments": {"x-match": "any"},
    },
    {
        "source": "x-topic",
        "destination": "x-headers",
        "destination_type": "exchange",
        "routing_key": "to an exchange",
        "arguments": {"a": 1},
    },
]
POLICIES: list[dict[str, Any]] = [
    {
        "name": "ttl",
        "pattern": "^plain",
        "definition": {"message-ttl": 5000, "dead-letter-exchange": "x-topic"},
        "priority": 3,
        "apply-to": "queues",
    },
    {
        "name": "ae",
        "pattern": ".*",
        "definition": {"alternate-exchange": "e"},
        "priority": -1,
        "apply-to": "exchanges",
    },
]
PARAMETERS: list[dict[str, Any]] = [
    {
        "component": "operator_policy",
        "name": "most",
        "value": {"pattern": "", "definition": {"max-length": 10_000}, "priority": 0, "apply-to": "queues"},
    },
    {"component": "vhost-limits", "name": "limits", "value": {"max-queues": 100, "max-connections": -1}},
    {
        "component": "shovel",
        "name": "away",
        "value": {
            "src-uri": "amqp://",
            "src-queue": "from",
            # A closed port.
            "dest-uri": "amqp://127.0.0.1:1",
            "dest-queue": "to",
            "ack-mode": "on-confirm",
            "src-delete-after": "never",
        },
    },
    {"component": "federation-upstream", "name": "up", "value": {"uri": "amqp://127.0.0.1", "expires": 1000}},
]


def password_hash(algorithm: str, password: str = "secret") -> str:
    salt = b"salt"
    return base64.b64encode(salt + HASHES[algorithm](salt + password.encode()).digest()).decode()


def sample(stem: str) -> dict[str, Any]:
    """Return definitions of two vhosts and some users, whose names all start with `stem`."""
    vhosts = f"{stem}-1", f"{stem}/é"
    users = [
        {
            "name": f"{stem}-{algorithm}",
            "password_hash": password_hash(algorithm),
            "hashing_algorithm": f"rabbit_password_hashing_{algorithm}",
            "tags": ["administrator", "monitoring"] if algorithm == "sha256" else [],
            "limits": {"max-connections": 5, "max-channels": -1} if algorithm == "md5" else {},
        }
        for algorithm in HASHES
    ]
    users.append({**users[0], "name": f"{stem}-nobody", "password_hash": "", "tags": []})
    document: dict[str, Any] = {
        "rabbit_version": "3.10.8",
        "rabbitmq_version": "3.10.8",
        "users": users,
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "permissions": [
            {"user": user["name"], "vhost": vhost, "configure": "^a.*\\d$", "write": "", "read": ".*"}
            for user in users
            for vhost in vhosts
        ],
        "topic_permissions": [
            {"user": users[0]["name"], "vhost": vhosts[0], "exchange": "amq.topic", "write": "^{username}", "read": "a"}
        ],
        "global_parameters": [{"name": f"{stem}-global", "value": ALL_TYPES}, {"name": f"{stem}-one", "value": 1}],
        **{section: [] for section in ("parameters", "policies", "queues", "exchanges", "bindings")},
    }
    for vhost in vhosts:
        for section, items in of_vhost().items():
            document[section] += [{**item, "vhost": vhost} for item in items]
    return document


def of_vhost() -> dict[str, list[dict[str, Any]]]:
    """Return the content of each vhost, without its name."""
    queues = [
        {"name": name, "durable": durable, "auto_delete": auto_delete, "arguments": arguments}
        for name, (durable, auto_delete, arguments) in QUEUES.items()
    ]
    return {
        "exchanges": EXCHANGES,
        "queues": queues,
        "bindings": BINDINGS,
        "policies": POLICIES,
        "parameters": PARAMETERS,
    }
