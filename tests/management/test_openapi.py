from __future__ import annotations

import re

import pytest

from amqp_broker.broker.access import User
from amqp_broker.management.openapi import BODIES, QUERIES, document
from amqp_broker.management.resources import RESOURCES
from tests.management.asking import Desk

# What is done to these needs no words.
NO_BODY = {
    ("POST", "/api/vhosts/{vhost}/start/{node}"),
    ("POST", "/api/vhosts/{vhost}/deletion/protection"),
    ("POST", "/api/rebalance/queues"),
    ("POST", "/api/login"),
    ("POST", "/_broker/reset"),
    ("PUT", "/api/feature-flags/{name}/enable"),
    ("PUT", "/_broker/record"),
    ("POST", "/_broker/clock/freeze"),
    ("POST", "/_broker/clock/resume"),
    *(
        ("POST", f"/_broker/{verb}")
        for verb in ("stop", "stop-app", "start-app", "suspend-listeners", "resume-listeners", "reset-node")
    ),
}
# Paths of these have their bodies told already.
OTHERS = ("/api/queues/", "/api/exchanges/", "/api/bindings/", "/api/cluster-name")
ALL = {(method, resource.path) for resource in RESOURCES for method in resource.handlers}


def test_the_document_has_every_resource() -> None:
    desk = Desk()
    desk.user = User("nobody")
    status, found = desk.get("/_broker/openapi.json")
    assert (status, found["openapi"]) == (200, "3.1.0")
    assert {(method.upper(), path) for path, methods in found["paths"].items() for method in methods} == ALL


def test_every_part_of_a_path_is_a_parameter() -> None:
    for path, methods in document(RESOURCES, "4.2.1")["paths"].items():
        for operation in methods.values():
            parts = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
            assert parts == re.findall(r"{(\w+)}", path)


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_every_change_tells_what_it_takes(method: str) -> None:
    silent = {one for one in ALL if one[0] == method} - set(BODIES) - NO_BODY
    assert silent == set()


def test_what_is_told_of_resources_is_of_those_that_there_are() -> None:
    strays = {one for one in {*BODIES, *QUERIES, *NO_BODY} - ALL if not one[1].startswith(OTHERS)}
    assert strays == set()
