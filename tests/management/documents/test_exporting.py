"""The contents of an export, and importing them again; compat/definitions compares with RabbitMQ."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import DoesNotExist
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.exporting import export, exporting
from amqp_broker.management.documents.importing import import_
from amqp_broker.management.documents.parsing import parse
from compat.definitions.sample import sample
from tests.broker_parts import new_broker, new_connection, new_exchange, new_queue

QUEUE = {"x-queue-type": "quorum", "a": fields.Byte(5), "b": b"c", "d": fields.Timestamp(7)}


@pytest.fixture
def broker() -> Broker:
    return new_broker()


def tellable(document: Any) -> Any:
    """As a reader of the JSON sees it."""
    return parse(json.dumps(document).encode())


def test_the_bindings_of_a_queue_that_is_being_deleted_are_not_exported(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    queue, other = new_queue(vhost, "q"), new_queue(vhost, "other")
    for destination in (queue, other):
        vhost.bind(vhost.exchanges["amq.direct"], destination, "k", {})
    deletion = vhost.deletions.of_queue(queue)
    next(deletion)
    assert [binding["destination"] for binding in export(broker)["bindings"]] == ["other"]
    finished(deletion)


def test_a_fresh_broker_exports_its_user_and_vhost(broker: Broker) -> None:
    told = export(broker)
    user = told["users"].pop()
    assert (user["name"], user["tags"], user["limits"]) == ("guest", ["administrator"], {})
    assert user["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    metadata = {"description": "Default virtual host", "tags": [], "default_queue_type": "classic"}
    assert told == {
        "rabbit_version": "4.2.1",
        "rabbitmq_version": "4.2.1",
        "product_name": "RabbitMQ",
        "product_version": "4.2.1",
        "rabbitmq_definition_format": "cluster",
        "original_cluster_name": "rabbit@localhost",
        "explanation": "Definitions of cluster 'rabbit@localhost'",
        "users": [],
        "vhosts": [{"name": "/", **metadata, "metadata": metadata}],
        "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
        "topic_permissions": [],
        "parameters": [],
        "global_parameters": [],
        "policies": [],
        "queues": [],
        "exchanges": [],
        "bindings": [],
    }


def test_a_vhost_is_exported_without_its_name_in_each_object(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    vhost.limits.set("max-queues", 5)
    new_queue(vhost, "other")
    vhost.bind(vhost.exchanges["amq.topic"], new_queue(vhost, "q", is_durable=True, arguments=QUEUE), "k", {"é": 1})
    new_exchange(vhost, "e", "fanout", is_internal=True)
    new_queue(broker.add_vhost("v"), "not this")
    queue = {"durable": False, "auto_delete": False}
    assert {key: value for key, value in export(broker, "/").items() if "version" not in key} == {
        "product_name": "RabbitMQ",
        "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": "/",
        "explanation": "Definitions of virtual host '/'",
        "metadata": {"description": "Default virtual host", "tags": [], "default_queue_type": "classic"},
        "description": "Default virtual host",
        "limits": {"max-queues": 5},
        "parameters": [{"component": "vhost-limits", "name": "limits", "value": {"max-queues": 5}}],
        "policies": [],
        "queues": [
            {"name": "other", "type": "classic", **queue, "arguments": {"x-queue-type": "classic"}},
            {
                "name": "q",
                "type": "quorum",
                "durable": True,
                "auto_delete": False,
                "arguments": {"x-queue-type": "quorum", "a": 5, "b": "c", "d": 7},
            },
        ],
        "exchanges": [{"name": "e", "type": "fanout", **queue, "internal": True, "arguments": {}}],
        "bindings": [
            {
                "source": "amq.topic",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "k",
                "arguments": {"é": 1},
            }
        ],
    }


def test_exporting_a_missing_vhost_is_an_error(broker: Broker) -> None:
    with pytest.raises(DoesNotExist, match="Virtual host 'v' does not exist"):
        export(broker, "v")


def test_exclusive_queues_and_their_bindings_are_not_exported(broker: Broker) -> None:
    vhost, owner = broker.vhosts["/"], new_connection()
    queue = new_queue(vhost, "mine", owner=owner, connection=owner)
    vhost.bind(vhost.exchanges["amq.topic"], queue, "k", {})
    told = export(broker)
    assert (told["queues"], told["bindings"]) == ([], [])


def test_rabbitmq_4_3_exports_vhosts_with_limits_and_metadata_alone() -> None:
    broker = new_broker(compat="4.3")
    broker.vhosts["/"].limits.set("max-queues", 5)
    metadata = {"description": "Default virtual host", "tags": [], "default_queue_type": "classic"}
    assert export(broker)["vhosts"] == [{"name": "/", "limits": {"max-queues": 5}, "metadata": metadata}]


@pytest.mark.parametrize(("compat", "named"), [("3.13", [False, True]), ("4.2", [None, True])])
def test_rabbitmq_4_names_only_exchanges_that_are_internal(compat: str, named: list[bool | None]) -> None:
    broker = new_broker(compat=compat)
    new_exchange(broker.vhosts["/"], "e", "fanout")
    new_exchange(broker.vhosts["/"], "i", "fanout", is_internal=True)
    assert [exchange.get("internal") for exchange in export(broker)["exchanges"]] == named


def test_cleared_limits_are_exported_as_nothing(broker: Broker) -> None:
    limits = broker.vhosts["/"].limits
    limits.set("max-queues", 5)
    limits.clear("max-queues")
    told = tellable(export(broker))
    assert told["parameters"] == [{"vhost": "/", "component": "vhost-limits", "name": "limits", "value": []}]
    other = new_broker()
    import_(other, told)
    assert other.vhosts["/"].limits["max-queues"] is None


def test_an_imported_vhost_keeps_its_metadata_and_protection(broker: Broker) -> None:
    broker.add_vhost("v", Metadata("d", ("a",), "stream", True))
    other = new_broker()
    import_(other, tellable(export(broker)))
    assert other.vhosts["v"].metadata == Metadata("d", ("a",), "stream", True)


def test_exported_definitions_are_imported_completely(broker: Broker) -> None:
    document = sample("s")
    late = {"name": "late", "type": "x-delayed-message", "durable": True, "auto_delete": False, "internal": False}
    local = {**late, "name": "local", "type": "x-local-random", "arguments": {}}
    arguments = {"x-delayed-type": "topic", "alternate-exchange": "e", "nothing": None, "list": [None]}
    document["exchanges"] += [{**late, "vhost": "s-1", "arguments": arguments}, {**local, "vhost": "s-1"}]
    assert import_(broker, document) == []
    told = tellable(export(broker))
    other = new_broker(has_defaults=False)
    assert import_(other, told) == []
    assert tellable(export(other)) == told
    assert len(told["queues"]) == len(document["queues"])
    assert len(told["exchanges"]) == len(document["exchanges"])
    assert len(told["bindings"]) == len(document["bindings"])


def test_importing_twice_changes_nothing(broker: Broker) -> None:
    import_(broker, sample("s"))
    told = export(broker)
    import_(broker, tellable(told))
    assert export(broker) == told


def test_reading_definitions_does_not_import_aiohttp() -> None:
    """It takes 150 ms to import, and the broker's port is to be open before."""
    code = (
        "import sys, amqp_broker.cli.main, amqp_broker.management.documents.importing; print('aiohttp' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60, check=True)
    assert run.stdout == "False\n"


def test_an_export_has_the_objects_of_its_first_step(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    first, second = new_queue(vhost, "a"), new_queue(vhost, "b")
    exchange = new_exchange(vhost, "x", "fanout")
    for queue in (first, second):
        vhost.bind(exchange, queue, "", {})
    steps = exporting(broker)
    next(steps)
    vhost.remove_queue(second)
    new_queue(vhost, "c")
    document = finished(steps)
    assert [row["name"] for row in document["queues"]] == ["a", "b"]
    assert [row["destination"] for row in document["bindings"]] == ["a", "b"]
