"""Names, ends and metadata that versions of RabbitMQ treat differently, or that no client can declare."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.exporting import export
from amqp_broker.management.documents.importing import import_
from tests.broker_parts import new_broker
from tests.restarting import durable_lab, restarted

QUEUE = {"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {}}
EXCHANGE = {"vhost": "/", "name": "e", "type": "topic"}
BINDING = {"vhost": "/", "source": "e", "destination": "q", "destination_type": "queue", "routing_key": "k"}
TOPIC_PERMISSION = {"user": "guest", "vhost": "/", "exchange": "e", "write": "", "read": ""}


def test_a_queue_may_have_an_empty_name() -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6; no client can declare one."""
    broker = new_broker()
    to_queue = {**BINDING, "source": "amq.direct", "destination": ""}
    document = {"queues": [{**QUEUE, "name": ""}], "bindings": [to_queue]}
    assert import_(broker, document) == []
    vhost = broker.vhosts["/"]
    assert [queue.name for queue in vhost.queues.values()] == [""]
    assert [binding.destination for binding in vhost.exchanges["amq.direct"].bindings.values()] == [vhost.queues[""]]
    again = new_broker()
    import_(again, export(broker))
    assert export(again)["queues"] == export(broker)["queues"]


@pytest.mark.parametrize("queue_type", ["classic", "quorum", "stream"])
def test_a_queue_with_an_empty_name_is_there_after_a_restart(queue_type: str) -> None:
    lab = durable_lab("4.2")
    document = {"queues": [{**QUEUE, "name": "", "arguments": {"x-queue-type": queue_type}}]}
    import_(lab.broker, document)
    assert [queue.type for queue in restarted(lab).broker.vhosts["/"].queues.values()] == [queue_type]


@pytest.mark.parametrize(("version", "count"), [("3.13", 0), ("4.0", 0), ("4.3", 1)])
def test_a_binding_to_the_default_exchange_is_imported_by_all_versions_and_exported_by_4_3(
    version: str, count: int
) -> None:
    broker = new_broker(compat=version)
    binding = {**BINDING, "source": "amq.direct", "destination_type": "exchange", "destination": ""}
    import_(broker, {"bindings": [binding]})
    assert len(broker.vhosts["/"].exchanges["amq.direct"].bindings) == 1
    assert len(export(broker)["bindings"]) == count


@pytest.mark.parametrize("changes", [{}, {"routing_key": None}])
def test_a_binding_without_a_routing_key_has_an_empty_one(changes: dict[str, Any]) -> None:
    broker = new_broker()
    binding = {name: value for name, value in BINDING.items() if name != "routing_key"} | changes
    import_(broker, {"queues": [QUEUE], "bindings": [{**binding, "source": "amq.fanout"}]})
    assert [one.routing_key for one in broker.vhosts["/"].exchanges["amq.fanout"].bindings.values()] == [""]


def test_the_exchange_of_a_topic_permission_is_there_in_4_3_or_comes_with_the_document() -> None:
    broker = new_broker(compat="4.3")
    with pytest.raises(
        DefinitionsError, match=r"^topic permission of user 'guest' in vhost '/': there is no exchange 'e'$"
    ):
        import_(broker, {"topic_permissions": [TOPIC_PERMISSION]})
    import_(broker, {"topic_permissions": [TOPIC_PERMISSION], "exchanges": [EXCHANGE]})
    assert ("/", "e") in broker.users["guest"].topic_permissions
    broker.vhosts["/"].delete_exchange("e", if_unused=False)
    assert not broker.users["guest"].topic_permissions


def test_the_exchange_of_a_topic_permission_need_not_be_there_before_4_3() -> None:
    broker = new_broker()
    import_(broker, {"topic_permissions": [TOPIC_PERMISSION]})
    import_(broker, {"exchanges": [EXCHANGE]})
    broker.vhosts["/"].delete_exchange("e", if_unused=False)
    assert ("/", "e") in broker.users["guest"].topic_permissions


@pytest.mark.parametrize(("version", "kept"), [("3.13", "beside"), ("4.0", "beside"), ("4.3", "inner")])
def test_metadata_count_more_than_the_values_beside_them_from_4_3_on(version: str, kept: str) -> None:
    broker = new_broker(compat=version)
    inner = {"description": "inner", "tags": ["inner"]}
    import_(broker, {"vhosts": [{"name": "v", "description": "beside", "tags": ["beside"], "metadata": inner}]})
    metadata = broker.vhosts["v"].metadata
    assert (metadata.description, metadata.tags) == (kept, (kept,))


def test_the_cluster_id_is_not_imported() -> None:
    broker = new_broker()
    own = broker.cluster_id
    import_(broker, {"global_parameters": [{"name": "internal_cluster_id", "value": "other"}]})
    assert broker.cluster_id == own


@pytest.mark.parametrize(("section", "item"), [("queues", QUEUE), ("exchanges", EXCHANGE), ("bindings", BINDING)])
def test_arguments_may_be_left_out_but_not_null(section: str, item: dict[str, Any]) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    document = {"queues": [QUEUE], "exchanges": [EXCHANGE], "bindings": [BINDING]}
    with pytest.raises(DefinitionsError, match=r"has no arguments$"):
        import_(new_broker(), {**document, section: [{**item, "arguments": None}]})
    import_(new_broker(), {**document, section: [{key: item[key] for key in item if key != "arguments"}]})


def test_the_arguments_of_a_queue_are_checked_before_it_is_skipped() -> None:
    queue = {**QUEUE, "durable": False, "arguments": {"x-max-length": -1}}
    with pytest.raises(DefinitionsError, match="value_negative"):
        import_(new_broker(compat="4.3"), {"queues": [queue]})


@pytest.mark.parametrize(
    "shape", [{"auto_delete": True, "arguments": {"x-queue-type": "quorum"}}, {"arguments": {"x-queue-type": "stream"}}]
)
def test_a_queue_that_its_type_cannot_be_is_skipped_and_the_rest_is_imported(shape: dict[str, Any]) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6, which keep silent."""
    broker = new_broker()
    is_durable = shape["arguments"]["x-queue-type"] == "quorum"
    wrong = {**QUEUE, "name": "wrong", "durable": is_durable, **shape}
    notes = import_(broker, {"queues": [wrong, QUEUE]})
    assert [queue.name for queue in broker.vhosts["/"].queues.values()] == ["q"]
    assert len(notes) == 1
    assert "is skipped: " in notes[0]
    assert "invalid property" in notes[0]


@pytest.mark.parametrize("name", ["amq.mine", ""])
def test_an_exchange_with_a_reserved_name_is_skipped_wherever_it_is(name: str) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    assert len(import_(new_broker(), {"exchanges": [{**EXCHANGE, "name": name, "vhost": "nowhere"}]})) == 1


def test_a_binding_in_a_vhost_that_is_not_there_is_skipped_before_4_0() -> None:
    document = {"bindings": [{**BINDING, "vhost": "nowhere"}]}
    assert len(import_(new_broker(compat="3.13"), document)) == 1
    with pytest.raises(DefinitionsError, match="Please create virtual host"):
        import_(new_broker(compat="4.0"), document)


def test_a_user_has_a_password_or_its_hash() -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    broker = new_broker()
    user = {"name": "u", "tags": "", "password": "x", "password_hash": ""}
    with pytest.raises(DefinitionsError, match=r"^user 'u': both_password_and_password_hash_are_provided$"):
        import_(broker, {"users": [user]})
    assert "u" not in broker.users
