"""The list of resources: each path once, in the way that RabbitMQ spells it."""

from __future__ import annotations

from amqp_broker.management.resources import RESOURCES

METHODS = {"GET", "PUT", "POST", "DELETE"}


def test_no_path_is_there_twice() -> None:
    paths = [resource.path for resource in RESOURCES]
    assert len(paths) == len(set(paths))


def test_resources_are_rabbitmqs_or_our_own() -> None:
    assert [resource.path for resource in RESOURCES if not resource.path.startswith(("/api/", "/_broker/"))] == []


def test_handlers_are_for_methods_of_http() -> None:
    assert {method for resource in RESOURCES for method in resource.handlers} <= METHODS
