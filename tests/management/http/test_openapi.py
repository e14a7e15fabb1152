from __future__ import annotations

from typing import Any

from msgspec import Struct

from amqp_broker.management.http.auth import ADMINISTRATOR, PUBLIC
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.openapi import document
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Count, Tags, Text

endpoints = Endpoints()


class Person(Struct):
    """A person."""

    name: Text
    tags: Tags = []


class Window(Struct):
    count: Count | None = None
    name: str = ""


@endpoints.on("PUT /people/{group}", tag=ADMINISTRATOR, body=Person)
def put(request: Request) -> None:
    """Change a person."""


@endpoints.on("GET /people/{group}", tag=PUBLIC, query=Window)
def get(request: Request) -> None:
    """List people."""


def operation(method: str) -> Any:
    return document({"People": endpoints}, "4.2.1")["paths"]["/people/{group}"][method]


def test_a_body_is_a_component() -> None:
    body = operation("put")["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/Person"}
    schema = document({"People": endpoints}, "4.2.1")["components"]["schemas"]["Person"]
    assert (schema["description"], schema["required"]) == ("A person.", ["name"])
    assert schema["properties"]["tags"]["description"] == "a list, or one text with commas"


def test_parameters_are_in_the_path_and_the_query() -> None:
    group, count, name = operation("get")["parameters"]
    assert (group["name"], group["in"], group["required"]) == ("group", "path", True)
    assert (count["name"], count["in"], count["required"]) == ("count", "query", False)
    assert (count["schema"]["type"], count["schema"]["minimum"]) == ("integer", 0)
    assert name["schema"]["type"] == "string"


def test_an_operation_has_its_sentence_section_tag_and_answers() -> None:
    changed = operation("put")
    assert (changed["summary"], changed["tags"]) == ("Change a person.", ["People"])
    assert changed["description"] == "Needs a login and the tag administrator, or one that includes it."
    assert set(changed["responses"]) == {"default", "201", "204"}
    assert operation("get")["security"] == []
