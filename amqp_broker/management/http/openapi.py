"""The OpenAPI document of the HTTP API, made from the declarations of its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from amqp_broker.management.http.auth import PUBLIC
from amqp_broker.management.http.endpoint import Endpoint
from amqp_broker.management.http.shapes import fields_of

Schema = dict[str, Any]

TITLE: Final = "RabbitMQ's HTTP API, and the endpoints of amqp-broker below /_broker/"
NAME: Final[Schema] = {"type": "string", "minLength": 1}
ERROR: Final[Schema] = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "reason": {"type": ["string", "array"]}},
    "required": ["error", "reason"],
}
STATUSES: Final = {200: "The answer", 201: "Created", 202: "Accepted", 204: "Done, or already so"}
_COMPONENTS: Final = "#/components/schemas/{name}"


def document(sections: Mapping[str, Iterable[Endpoint]], version: str) -> Schema:
    """Return the OpenAPI document of endpoints, whose sections become its tags."""
    endpoints = [endpoint for section in sections.values() for endpoint in section]
    shapes = list(dict.fromkeys(endpoint.body for endpoint in endpoints if endpoint.body is not None))
    references, components = msgspec.json.schema_components(shapes, ref_template=_COMPONENTS)
    bodies = dict(zip(shapes, references, strict=True))
    paths: dict[str, Schema] = {}
    for section, declared in sections.items():
        for endpoint in declared:
            body = bodies[endpoint.body] if endpoint.body is not None else None
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, section, body)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version},
        "security": [{"basic": []}],
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "schemas": {"Error": ERROR, **components},
        },
        "paths": paths,
    }


def _operation(endpoint: Endpoint, section: str, body: Schema | None) -> Schema:
    operation: Schema = {
        "operationId": str(endpoint),
        "tags": [section],
        "summary": endpoint.summary,
        "parameters": [*_names(endpoint), *_parameters(endpoint)],
        "responses": {
            "default": {"description": "Refused", "content": _json({"$ref": _COMPONENTS.format(name="Error")})},
            **{str(status): {"description": STATUSES[status]} for status in endpoint.statuses},
        },
    }
    if endpoint.tag == PUBLIC:
        operation["security"] = []
    else:
        operation["description"] = f"Needs a login and the tag {endpoint.tag}, or one that includes it."
    if body is not None:
        operation["requestBody"] = {"content": _json(body)}
    return operation


def _names(endpoint: Endpoint) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": NAME} for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _parameters(endpoint: Endpoint) -> list[Schema]:
    if endpoint.query is None:
        return []
    [_], components = msgspec.json.schema_components([endpoint.query], ref_template=_COMPONENTS)
    properties = components[endpoint.query.__name__]["properties"]
    return [
        {"name": field.name, "in": "query", "required": field.is_required, "schema": _given(properties[field.name])}
        for field in fields_of(endpoint.query)
    ]


def _given(schema: Schema) -> Schema:
    """Return the schema of a parameter that is given: null stands for a missing one."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    own = {key: value for key, value in schema.items() if key != "anyOf" and (key, value) != ("default", None)}
    return {**kinds[0], **own} if len(kinds) == 1 else schema


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
