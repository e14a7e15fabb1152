"""The declarations of all endpoints: complete, unique, and those that RabbitMQ has."""

from __future__ import annotations

import re

from amqp_broker.management.api_sections import SECTIONS, all_endpoints
from amqp_broker.management.http.endpoint import STATUSES
from tests.management.asking import Desk

# Changes without a body.
NO_BODY = {
    "POST /api/vhosts/{vhost}/start/{node}",
    "POST /api/vhosts/{vhost}/deletion/protection",
    "POST /api/rebalance/queues",
    "POST /api/login",
    "POST /_broker/reset",
    "PUT /api/feature-flags/{name}/enable",
    "PUT /_broker/event-log",
    "PUT /_broker/alarms/{resource}",
    "PUT /_broker/disk-monitoring",
    "PUT /_broker/firehose/{vhost}",
    *(
        f"POST /_broker/{verb}"
        for verb in ("stop", "stop-app", "start-app", "suspend-listeners", "resume-listeners", "reset-node")
    ),
}


def test_no_endpoint_is_declared_twice() -> None:
    names = [str(endpoint) for endpoint in all_endpoints()]
    assert len(names) > 150
    assert len(names) == len(set(names))


def test_endpoints_are_below_api_or_the_brokers_own_path() -> None:
    assert [one.path for one in all_endpoints() if not one.path.startswith(("/api/", "/_broker/"))] == []


def test_methods_are_those_of_http() -> None:
    assert {endpoint.method for endpoint in all_endpoints()} == set(STATUSES)


def test_each_endpoint_has_a_sentence() -> None:
    assert [str(one) for one in all_endpoints() if not re.fullmatch(r"[A-Z].*\.", one.summary)] == []


def test_each_change_declares_its_body() -> None:
    without = {str(one) for one in all_endpoints() if one.method in ("PUT", "POST") and one.body is None}
    assert without == NO_BODY


def test_the_openapi_document_has_every_endpoint() -> None:
    status, found = Desk().get("/_broker/openapi.json")
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
    }
    assert (status, found["openapi"]) == (200, "3.1.0")
    assert set(operations) == {str(endpoint) for endpoint in all_endpoints()}
    for name, operation in operations.items():
        parts = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
        assert parts == re.findall(r"{(\w+)}", name)
        assert operation["tags"][0] in SECTIONS
