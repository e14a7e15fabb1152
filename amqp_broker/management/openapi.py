"""The HTTP API as an OpenAPI document, made from the list of resources: for tools that try all of it, or read it."""

from __future__ import annotations

import re
from typing import Any, Final

from amqp_broker.broker.fault_rules import ACTIONS, KNOWN
from amqp_broker.broker.matching import EVENTS
from amqp_broker.management.access import ANYBODY
from amqp_broker.management.request import Handler, Request, Resource

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "integer"}
FLAG: Final[Schema] = {"type": "boolean"}
ANY: Final[Schema] = {}
TABLE: Final[Schema] = {"type": "object", "additionalProperties": True}
TAGS: Final[Schema] = {"oneOf": [TEXT, {"type": "array", "items": TEXT}]}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}


def an_object(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object with these properties, some of which it must have."""
    return {"type": "object", "properties": properties, "required": list(required)}


POLICY: Final = an_object(
    ("pattern", "definition"), pattern=TEXT, definition=TABLE, priority=NUMBER, **{"apply-to": TEXT}
)
LIMIT: Final = an_object(("value",), value=NUMBER)
PARAMETER: Final = an_object(("value",), value=ANY)
DEFINITIONS: Final = an_object(
    **{
        name: {"type": "array", "items": TABLE}
        for name in (
            *("users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters"),
            *("policies", "queues", "exchanges", "bindings"),
        )
    }
)
MESSAGE_PROPERTIES: Final = an_object(
    headers=TABLE,
    delivery_mode={"type": "integer", "minimum": 0, "maximum": 255},
    priority={"type": "integer", "minimum": 0, "maximum": 255},
    timestamp=COUNT,
    **{
        name: {"type": "string", "maxLength": 63}
        for name in ("content_type", "correlation_id", "expiration", "message_id", "reply_to", "type", "user_id")
    },
)

# What a request sends, by method and path; what is not here sends nothing.
BODIES: Final[dict[tuple[str, str], Schema]] = {
    ("PUT", "/api/users/{user}"): an_object(
        ("tags",), tags=TAGS, password=TEXT, password_hash=TEXT, hashing_algorithm=TEXT
    ),
    ("POST", "/api/users/bulk-delete"): an_object(("users",), users={"type": "array", "items": TEXT}),
    ("PUT", "/api/permissions/{vhost}/{user}"): an_object(
        ("configure", "write", "read"), configure=TEXT, write=TEXT, read=TEXT
    ),
    ("PUT", "/api/topic-permissions/{vhost}/{user}"): an_object(
        ("exchange", "write", "read"), exchange=TEXT, write=TEXT, read=TEXT
    ),
    ("PUT", "/api/vhosts/{vhost}"): an_object(
        description=TEXT,
        tags=TAGS,
        tracing=FLAG,
        default_queue_type={"enum": ["classic", "quorum", "stream"]},
        protected_from_deletion=FLAG,
    ),
    ("PUT", "/api/vhost-limits/{vhost}/{name}"): LIMIT,
    ("PUT", "/api/user-limits/{user}/{name}"): LIMIT,
    ("PUT", "/api/policies/{vhost}/{name}"): POLICY,
    ("PUT", "/api/operator-policies/{vhost}/{name}"): POLICY,
    ("PUT", "/api/parameters/{component}/{vhost}/{name}"): PARAMETER,
    ("PUT", "/api/global-parameters/{name}"): PARAMETER,
    ("POST", "/api/definitions"): DEFINITIONS,
    ("POST", "/api/all-configuration"): DEFINITIONS,
    ("POST", "/api/definitions/{vhost}"): DEFINITIONS,
    ("POST", "/api/auth/hash_password"): an_object(("password",), password=TEXT),
    ("POST", "/api/exchanges/{vhost}/{name}/publish"): an_object(
        ("routing_key", "properties", "payload", "payload_encoding"),
        routing_key={"type": "string", "maxLength": 63},
        properties=MESSAGE_PROPERTIES,
        payload=TEXT,
        payload_encoding={"enum": ["string", "base64"]},
    ),
    ("POST", "/api/queues/{vhost}/{queue}/get"): an_object(
        ("ackmode", "count", "encoding"),
        ackmode={"enum": ["ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false"]},
        count=COUNT,
        encoding={"enum": ["auto", "base64"]},
        truncate=COUNT,
    ),
    ("POST", "/api/queues/{vhost}/{queue}/actions"): an_object(("action",), action={"enum": ["sync", "cancel_sync"]}),
    ("POST", "/_broker/queues/{vhost}/{queue}/move"): an_object(
        ("destination",), destination=an_object(vhost=TEXT, queue=TEXT, exchange=TEXT), count=COUNT
    ),
    ("PUT", "/api/queues/{vhost}/{name}"): an_object(durable=FLAG, auto_delete=FLAG, arguments=TABLE),
    ("PUT", "/api/exchanges/{vhost}/{name}"): an_object(
        ("type",), type=TEXT, durable=FLAG, auto_delete=FLAG, internal=FLAG, arguments=TABLE
    ),
    ("POST", "/api/bindings/{vhost}/e/{source}/{kind}/{destination}"): an_object(routing_key=TEXT, arguments=TABLE),
    ("PUT", "/_broker/trace/{vhost}"): an_object(extended=FLAG),
    ("PUT", "/api/cluster-name"): an_object(("name",), name=TEXT),
    ("PUT", "/_broker/snapshot/{vhost}"): an_object(
        ("format", "definitions", "queues", "streams", "exchanges"),
        format=NUMBER,
        definitions=TABLE,
        **{name: {"type": "array", "items": TABLE} for name in ("queues", "streams", "exchanges")},
    ),
    ("POST", "/_broker/faults"): an_object(
        ("action",),
        action={"enum": list(ACTIONS)},
        on={"enum": list(KNOWN)},
        **dict.fromkeys(("vhost", "exchange", "routing_key", "queue", "user", "connection", "text"), TEXT),
        client_property={"type": "object", "additionalProperties": TEXT},
        times={"type": "integer", "minimum": 1},
        **dict.fromkeys(("after", "seed", "delay_ms", "jitter_ms", "duration_ms", "code"), COUNT),
        probability={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        is_routed=FLAG,
        is_mid_frame=FLAG,
    ),
    ("POST", "/_broker/clock/advance"): {
        "oneOf": [
            an_object(("ms",), ms={"type": "integer", "minimum": 0, "maximum": 10**12}),
            an_object(("duration",), duration={"type": "string", "pattern": "^[0-9]{1,6}(ms|s|m|h)$"}),
        ]
    },
    ("PUT", "/_broker/record/{vhost}"): an_object(events_max=COUNT, bytes_max=COUNT),
    ("POST", "/_broker/authenticate"): an_object(("user", "password"), user=TEXT, password=TEXT),
    **{
        ("PUT", f"/_broker/{setting}"): an_object(("value",), value=TEXT)
        for setting in ("memory-limit", "disk-free-limit", "log-level")
    },
}
LIST_QUERY: Final[dict[str, Schema]] = {
    "columns": TEXT,
    "sort": TEXT,
    "sort_reverse": FLAG,
    "page": {"type": "integer", "minimum": 1},
    "page_size": {"type": "integer", "minimum": 1, "maximum": 500},
    "name": TEXT,
    "use_regex": FLAG,
}
QUERIES: Final[dict[tuple[str, str], dict[str, Schema]]] = {
    ("GET", "/_broker/queues/{vhost}/{queue}/peek"): {
        "count": {"type": "integer", "minimum": 0, "maximum": 1000},
        "offset": COUNT,
        "state": {"enum": ["ready", "unacked", "delayed"]},
        "search": TEXT,
        "truncate": COUNT,
        "encoding": {"enum": ["auto", "base64"]},
    },
    ("GET", "/_broker/messages"): {
        **dict.fromkeys(("vhost", "exchange", "routing_key", "queue", "body", "body_base64", "body_json"), TEXT),
        **dict.fromkeys(("body_regex", "headers", "properties"), TEXT),
        "event": {"enum": [*EVENTS, "any"]},
        "count": COUNT,
        "none": FLAG,
        "timeout_s": {"type": "number", "minimum": 0, "maximum": 600},
        "since": COUNT,
        "limit": {"type": "integer", "minimum": 0, "maximum": 1000},
        "truncate": COUNT,
    },
    ("DELETE", "/_broker/messages"): {"vhost": TEXT},
    ("GET", "/_broker/recording/{vhost}"): {"exchange": TEXT, "routing_key": TEXT},
    ("GET", "/_broker/idle"): {
        "vhost": TEXT,
        "queue": TEXT,
        "timeout_s": {"type": "number", "minimum": 0, "maximum": 600},
    },
    ("GET", "/api/definitions"): {"download": TEXT},
    ("GET", "/api/definitions/{vhost}"): {"download": TEXT},
    ("POST", "/_broker/reset"): {"vhost": TEXT},
    ("PUT", "/_broker/snapshot/{vhost}"): {"clear": FLAG},
    ("DELETE", "/_broker/faults"): {"vhost": TEXT},
    **{(method, "/_broker/advice"): {"vhost": TEXT} for method in ("GET", "DELETE")},
    **{("GET", f"/api/{name}"): LIST_QUERY for name in ("users", "vhosts", "permissions", "policies", "parameters")},
}
ERROR: Final = an_object(("error", "reason"), error=TEXT, reason={"oneOf": [TEXT, {"type": "array"}]})


def document(resources: tuple[Resource, ...], version: str) -> dict[str, Any]:
    """The OpenAPI document of these resources."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "amqp-broker: RabbitMQ's HTTP API, and our own below /_broker/", "version": version},
        "security": [{"basic": []}],
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "schemas": {"Error": ERROR},
        },
        "paths": {
            resource.path: {
                method.lower(): _operation(resource, method, handler) for method, handler in resource.handlers.items()
            }
            for resource in resources
        },
    }


def _operation(resource: Resource, method: str, handler: Handler) -> dict[str, Any]:
    said = (handler.__doc__ or "").strip().split("\n", 1)[0]
    names = re.findall(r"{(\w+)}", resource.path)
    query = QUERIES.get((method, resource.path), {})
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()} {resource.path}",
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}} for name in names),
            *({"name": name, "in": "query", "schema": schema} for name, schema in query.items()),
        ],
        "responses": {
            "default": {"description": "Refused", "content": _json({"$ref": "#/components/schemas/Error"})},
            **{status: {"description": text} for status, text in _ANSWERS[method].items()},
        },
    }
    if said:
        operation["summary"] = said
    if resource.needs == ANYBODY:
        operation["security"] = []
    else:
        operation["description"] = f"Needs a login and the tag {resource.needs}, or one that includes it."
    schema = BODIES.get((method, resource.path))
    if schema is not None:
        operation["requestBody"] = {"content": _json(schema)}
    return operation


_ANSWERS: Final = {
    "GET": {"200": "What was asked for"},
    "PUT": {"201": "Created", "204": "Changed, or as it was"},
    "POST": {"200": "What was asked for", "201": "Created", "204": "Done"},
    "DELETE": {"204": "Deleted"},
}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def get(request: Request) -> dict[str, Any]:
    """This document."""
    from amqp_broker.management.resources import RESOURCES as ALL

    return document(ALL, request.broker.profile.version)


RESOURCES = (Resource("/_broker/openapi.json", ANYBODY, {"GET": get}),)
