"""Kinds of objects that rabbitmqadmin declares, deletes and lists: one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# Fields that are given as JSON, and fields that are true or false.
JSON_FIELDS = ("arguments", "definition", "properties", "value", "priority", "metadata")
TRUTH_FIELDS = ("auto_delete", "durable", "internal", "tracing")


class Listed(NamedTuple):
    """A list: its path, whether each vhost has one, and its columns unless the user names some."""

    path: str
    has_vhost: bool = False
    columns: tuple[str, ...] = ()
    json_fields: tuple[str, ...] = ()


class Object(NamedTuple):
    """A kind of object, with the fields to declare it (a|b: one of both) and to delete it (`named_by`)."""

    path: str = ""
    needed: tuple[str, ...] = ()
    optional: Mapping[str, Any] = {}
    named_by: tuple[str, ...] = ()
    listed: Listed | None = None
    delete_path: str = ""


POLICY_OPTIONS: Mapping[str, Any] = {"priority": 0, "apply-to": None}
NAMED = ("name", "pattern", "definition")
BINDING = "/bindings/{vhost}/e/{source}/{destination_char}/{destination}"

OBJECTS: Mapping[str, Object] = {
    "exchange": Object(
        "/exchanges/{vhost}/{name}",
        ("name", "type"),
        {"auto_delete": False, "durable": True, "internal": False, "arguments": {}},
        ("name",),
        Listed("/exchanges", True, ("name", "type")),
    ),
    "queue": Object(
        "/queues/{vhost}/{name}",
        ("name",),
        {"auto_delete": False, "durable": True, "arguments": {}, "node": None, "type": None},
        ("name",),
        Listed("/queues", True, ("name", "messages")),
    ),
    "binding": Object(
        BINDING,
        ("source", "destination"),
        {"destination_type": "queue", "routing_key": "", "arguments": {}},
        ("source", "destination_type", "destination"),
        Listed("/bindings", True, ("source", "destination", "routing_key")),
        BINDING + "/{properties_key}",
    ),
    "vhost": Object(
        "/vhosts/{name}",
        ("name",),
        {"tracing": None, "description": None, "tags": None, "default_queue_type": None},
        ("name",),
        Listed("/vhosts", columns=("name", "messages")),
    ),
    "user": Object(
        "/users/{name}",
        ("name", "password|password_hash"),
        {"tags": "", "hashing_algorithm": None},
        ("name",),
        Listed("/users"),
    ),
    "permission": Object(
        "/permissions/{vhost}/{user}",
        ("user", "configure", "write", "read"),
        {},
        ("user",),
        Listed("/permissions"),
    ),
    "parameter": Object(
        "/parameters/{component}/{vhost}/{name}",
        ("component", "name", "value"),
        {},
        ("component", "name"),
        Listed("/parameters", json_fields=("value",)),
    ),
    "global_parameter": Object(
        "/global-parameters/{name}",
        ("name", "value"),
        {},
        ("name",),
        Listed("/global-parameters", json_fields=("value",)),
    ),
    "policy": Object(
        "/policies/{vhost}/{name}",
        NAMED,
        POLICY_OPTIONS,
        ("name",),
        Listed("/policies", json_fields=("definition",)),
    ),
    "operator_policy": Object(
        "/operator-policies/{vhost}/{name}",
        NAMED,
        POLICY_OPTIONS,
        ("name",),
        Listed("/operator-policies", json_fields=("definition",)),
    ),
    "vhost_limit": Object(
        "/vhost-limits/{vhost}/{name}",
        ("name", "value"),
        {},
        ("name",),
        Listed("/vhost-limits", json_fields=("value",)),
    ),
    "user_limit": Object(
        "/user-limits/{user}/{name}",
        ("user", "name", "value"),
        {},
        ("user", "name"),
        Listed("/user-limits", json_fields=("value",)),
    ),
    "connection": Object(
        named_by=("name",),
        listed=Listed("/connections", columns=("name", "user", "channels")),
        delete_path="/connections/{name}",
    ),
    "channel": Object(listed=Listed("/channels", columns=("name", "user"))),
    "consumer": Object(listed=Listed("/consumers", True)),
    "node": Object(listed=Listed("/nodes", columns=("name", "type", "mem_used"))),
    "feature_flag": Object(listed=Listed("/feature-flags", columns=("name", "state"))),
    "deprecated_feature": Object(listed=Listed("/deprecated-features", columns=("name", "deprecation_phase"))),
}
# Kinds by their names in the singular and in the plural.
NOUNS: Mapping[str, str] = {
    **{kind: kind for kind in OBJECTS},
    **{f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s": kind for kind in OBJECTS},
}

# Health checks of v2 and their paths.
CHECKS: Mapping[str, str] = {
    "local_alarms": "/health/checks/local-alarms",
    "cluster_wide_alarms": "/health/checks/alarms",
    "virtual_hosts": "/health/checks/virtual-hosts",
    "node_is_quorum_critical": "/health/checks/node-is-quorum-critical",
    "port_listener": "/health/checks/port-listener/{port}",
    "protocol_listener": "/health/checks/protocol-listener/{protocol}",
}
