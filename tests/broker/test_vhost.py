from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AccessRefused, InternalError, NotFound, PreconditionFailed, ResourceLocked
from amqp_broker.broker.vhost import VHost, check_reserved
from amqp_broker.settings.settings import Settings
from tests.broker_parts import (
    CollectingConsumer,
    bind,
    new_broker,
    new_connection,
    new_exchange,
    new_message,
    new_queue,
    new_vhost,
)


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


# Exchanges


def test_a_vhost_has_rabbitmqs_exchanges(vhost: VHost) -> None:
    assert {name: (exchange.type, exchange.is_durable) for name, exchange in vhost.exchanges.items()} == {
        "": ("direct", True),
        "amq.direct": ("direct", True),
        "amq.fanout": ("fanout", True),
        "amq.topic": ("topic", True),
        "amq.headers": ("headers", True),
        "amq.match": ("headers", True),
        "amq.rabbitmq.trace": ("topic", True),
        "amq.rabbitmq.event": ("topic", True),
    }


def test_only_the_exchanges_of_traces_and_events_are_internal(vhost: VHost) -> None:
    internal = [name for name, exchange in vhost.exchanges.items() if exchange.is_internal]
    assert internal == ["amq.rabbitmq.trace", "amq.rabbitmq.event"]


def test_an_exchange_is_found_by_its_name(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x")
    assert vhost.exchange("x") is exchange


def test_a_missing_exchange_is_not_found(vhost: VHost) -> None:
    with pytest.raises(NotFound) as caught:
        vhost.exchange("x")
    assert str(caught.value) == "no exchange 'x' in vhost '/'"


def test_declaring_an_exchange_again_gives_the_same_one(vhost: VHost) -> None:
    first = new_exchange(vhost, "x", "topic", is_durable=True, arguments={"alternate-exchange": "y", "note": 1})
    again = new_exchange(vhost, "x", "topic", is_durable=True, arguments={"alternate-exchange": "y", "note": 2})
    assert again is first
    assert first.arguments["note"] == 1


@pytest.mark.parametrize(
    ("attributes", "difference"),
    [
        ({"kind": "topic", "is_durable": True}, "'type' {}: received 'topic' but current is 'fanout'"),
        ({"is_durable": True, "is_auto_delete": True}, "'durable' {}: received 'true' but current is 'false'"),
        ({"is_auto_delete": True, "is_internal": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
        ({"is_internal": True}, "'internal' {}: received 'true' but current is 'false'"),
        (
            {"arguments": {"alternate-exchange": "y"}},
            "'alternate-exchange' {}: received the value 'y' of type 'longstr' but current is none",
        ),
    ],
)
def test_the_first_difference_of_an_exchange_is_reported(
    vhost: VHost, attributes: dict[str, Any], difference: str
) -> None:
    new_exchange(vhost, "x")
    with pytest.raises(PreconditionFailed) as caught:
        new_exchange(vhost, "x", **attributes)
    assert str(caught.value) == "inequivalent arg " + difference.format("for exchange 'x' in vhost '/'")


def test_a_new_exchange_may_not_take_a_reserved_name(vhost: VHost) -> None:
    with pytest.raises(AccessRefused) as caught:
        new_exchange(vhost, "amq.mine")
    assert str(caught.value) == "exchange name 'amq.mine' contains reserved prefix 'amq.*'"


def test_a_predeclared_exchange_may_be_declared_again(vhost: VHost) -> None:
    assert new_exchange(vhost, "amq.topic", "topic", is_durable=True) is vhost.exchanges["amq.topic"]


def test_the_name_of_an_alternate_exchange_is_a_string(vhost: VHost) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        new_exchange(vhost, "x", arguments={"alternate-exchange": True})
    assert str(caught.value) == "invalid type 'bool' for arg 'alternate-exchange' in exchange 'x' in vhost '/'"
    assert "x" not in vhost.exchanges


def test_the_exchange_limit_includes_all_vhosts_and_predeclared_exchanges(vhost: VHost) -> None:
    other = vhost.broker.add_vhost("other")
    limit = len(vhost.exchanges) + len(other.exchanges) + 1
    vhost.broker.settings = Settings(exchange_max=limit)
    new_exchange(vhost, "x")
    new_exchange(vhost, "x")
    with pytest.raises(PreconditionFailed) as caught:
        new_exchange(vhost, "y")
    assert str(caught.value) == f"cannot declare exchange 'y' in vhost '/': exchange limit of {limit} is reached"


def test_deleting_a_missing_exchange_does_nothing(vhost: VHost) -> None:
    vhost.delete_exchange("x", if_unused=True)


def test_an_exchange_with_bindings_is_in_use(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x")
    bind(exchange, new_queue(vhost), vhost)
    with pytest.raises(PreconditionFailed) as caught:
        vhost.delete_exchange("x", if_unused=True)
    assert str(caught.value) == "exchange 'x' in vhost '/' in use"
    vhost.delete_exchange("x", if_unused=False)
    assert "x" not in vhost.exchanges


def test_an_exchange_that_is_only_a_destination_is_unused(vhost: VHost) -> None:
    bind(vhost.exchange("amq.fanout"), new_exchange(vhost, "x"), vhost)
    vhost.delete_exchange("x", if_unused=True)
    assert "x" not in vhost.exchanges


def test_deleting_an_exchange_removes_its_bindings_at_both_ends(vhost: VHost) -> None:
    source, middle, queue = vhost.exchange("amq.fanout"), new_exchange(vhost, "x"), new_queue(vhost)
    bind(source, middle, vhost)
    bind(middle, queue, vhost)
    vhost.delete_exchange("x", if_unused=False)
    assert (source.bindings, queue.incoming) == ({}, {})
    assert vhost.route(source, ("",), {}, None) == ([], False)


# Queues


def test_a_queue_is_found_by_its_name(vhost: VHost) -> None:
    queue = new_queue(vhost)
    assert vhost.queue("q") is queue


def test_a_missing_queue_is_not_found(vhost: VHost) -> None:
    with pytest.raises(NotFound) as caught:
        vhost.queue("q")
    assert str(caught.value) == "no queue 'q' in vhost '/'"


def test_an_exclusive_queue_is_found_only_by_its_owner(vhost: VHost) -> None:
    owner = new_connection()
    queue = new_queue(vhost, owner=owner, connection=owner)
    assert vhost.queue("q", owner) is queue
    with pytest.raises(ResourceLocked):
        vhost.queue("q", new_connection())


def test_declaring_a_queue_again_gives_the_same_one(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments={"x-expires": 1000, "note": 1})
    assert new_queue(vhost, is_durable=True, arguments={"x-expires": fields.Long(1000), "note": 2}) is queue
    assert queue.arguments == {"note": 1, "x-expires": 1000, "x-queue-type": "classic"}


@pytest.mark.parametrize(("compat", "arguments"), [("3.13", ["z", "a"]), ("4.2", ["a", "x-queue-type", "z"])])
def test_the_type_is_added_to_the_arguments_since_4_0(compat: str, arguments: list[str]) -> None:
    """rabbit_amqqueue.erl 4.0.5, augment_declare_args; rabbit_misc.erl, set_table_value, which sorts."""
    vhost = new_broker(compat=compat).vhosts["/"]
    assert list(new_queue(vhost, arguments={"z": 1, "a": 1}).arguments) == arguments
    given = {"x-queue-type": "classic", "a": 1}
    assert list(new_queue(vhost, "typed", arguments=given).arguments) == list(given)


@pytest.mark.parametrize(
    ("attributes", "difference"),
    [
        ({"is_durable": True, "is_auto_delete": True}, "'durable' {}: received 'true' but current is 'false'"),
        (
            {"is_auto_delete": True, "arguments": {"x-expires": 1}},
            "'auto_delete' {}: received 'true' but current is 'false'",
        ),
        (
            {"arguments": {"x-expires": 1}},
            "'x-expires' {}: received the value '1' of type 'signedint' but current is none",
        ),
    ],
)
def test_the_first_difference_of_a_queue_is_reported(vhost: VHost, attributes: dict[str, Any], difference: str) -> None:
    new_queue(vhost)
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(vhost, **attributes)
    assert str(caught.value) == "inequivalent arg " + difference.format("for queue 'q' in vhost '/'")


def test_an_exclusive_queue_is_never_durable(vhost: VHost) -> None:
    owner = new_connection()
    queue = new_queue(vhost, is_durable=True, owner=owner, connection=owner)
    assert not queue.is_durable
    assert new_queue(vhost, is_durable=True, owner=owner, connection=owner) is queue
    assert new_queue(vhost, is_durable=False, owner=owner, connection=owner) is queue


def test_an_exclusive_queue_must_be_declared_again_as_exclusive(vhost: VHost) -> None:
    owner = new_connection()
    new_queue(vhost, owner=owner, connection=owner)
    with pytest.raises(ResourceLocked):
        new_queue(vhost, owner=None, connection=owner)


def test_a_queue_does_not_become_exclusive(vhost: VHost) -> None:
    new_queue(vhost)
    connection = new_connection()
    with pytest.raises(ResourceLocked, match="the exclusive property value does not match"):
        new_queue(vhost, owner=connection, connection=connection)
    assert not connection.exclusive_queues


def test_the_lock_of_an_exclusive_queue_is_checked_before_its_arguments(vhost: VHost) -> None:
    owner, other = new_connection(), new_connection()
    new_queue(vhost, owner=owner, connection=owner)
    with pytest.raises(ResourceLocked):
        new_queue(vhost, is_durable=True, is_auto_delete=True, owner=None, connection=other)


def test_a_connection_knows_its_exclusive_queues(vhost: VHost) -> None:
    owner = new_connection()
    queue = new_queue(vhost, owner=owner, connection=owner)
    assert owner.exclusive_queues == {queue}
    vhost.remove_queue(queue)
    assert owner.exclusive_queues == set()


def test_a_queue_with_a_bad_argument_is_not_declared(vhost: VHost) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(vhost, arguments={"x-expires": 0})
    assert str(caught.value) == "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}"
    assert vhost.queues == {}


def test_an_argument_of_another_queue_type_is_refused(vhost: VHost) -> None:
    with pytest.raises(PreconditionFailed, match="of queue type rabbit_classic_queue"):
        new_queue(vhost, arguments={"x-delivery-limit": 3})
    assert vhost.queues == {}


def test_the_arguments_of_an_existing_queue_are_compared_and_not_checked(vhost: VHost) -> None:
    new_queue(vhost)
    with pytest.raises(PreconditionFailed, match="inequivalent arg"):
        new_queue(vhost, arguments={"x-expires": 0})


def test_the_queue_limit_of_a_vhost_is_enforced(vhost: VHost) -> None:
    vhost.limits.set("max-queues", 1)
    new_queue(vhost, "a")
    new_queue(vhost, "a")
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(vhost, "b")
    assert str(caught.value) == "cannot declare queue 'b': queue limit in vhost '/' (1) is reached"


def test_a_queue_that_must_be_empty_is_not_deleted_with_ready_messages(vhost: VHost) -> None:
    queue = new_queue(vhost)
    queue.check_deletable(if_unused=True, if_empty=True)
    queue.push(new_message())
    with pytest.raises(PreconditionFailed) as caught:
        queue.check_deletable(if_unused=False, if_empty=True)
    assert str(caught.value) == "queue 'q' in vhost '/' not empty"
    queue.check_deletable(if_unused=True, if_empty=False)


def test_a_queue_that_must_be_unused_is_not_deleted_with_consumers(vhost: VHost) -> None:
    queue = new_queue(vhost)
    CollectingConsumer(queue).start()
    with pytest.raises(PreconditionFailed) as caught:
        queue.check_deletable(if_unused=True, if_empty=False)
    assert str(caught.value) == "queue 'q' in vhost '/' in use"
    queue.check_deletable(if_unused=False, if_empty=True)


def test_deleting_a_queue_removes_its_messages_bindings_and_consumers(vhost: VHost) -> None:
    queue, exchange = new_queue(vhost), vhost.exchange("amq.fanout")
    bind(exchange, queue, vhost)
    collector = CollectingConsumer(queue, prefetch=1).start()
    queue.push(new_message())
    queue.push(new_message())
    vhost.remove_queue(queue)
    assert queue.is_deleted
    assert collector.has_lost_queue
    assert (vhost.queues, exchange.bindings, queue.consumers, queue.ready_count) == ({}, {}, {}, 0)


def test_an_auto_delete_queue_that_is_deleted_is_deleted_once(vhost: VHost) -> None:
    queue = new_queue(vhost, is_auto_delete=True)
    collector = CollectingConsumer(queue).start()
    vhost.remove_queue(queue)
    assert collector.has_lost_queue
    assert new_queue(vhost) is not queue


@pytest.mark.parametrize("name", ["amq.", "amq.anything"])
def test_names_with_the_reserved_prefix_are_refused(name: str) -> None:
    with pytest.raises(AccessRefused) as caught:
        check_reserved("queue", name)
    assert str(caught.value) == f"queue name '{name}' contains reserved prefix 'amq.*'"


@pytest.mark.parametrize("name", ["", "amq", "amqp.x", "AMQ.x", "my.amq.x"])
def test_other_names_are_allowed(name: str) -> None:
    check_reserved("queue", name)


def test_a_queue_with_the_name_of_a_deleted_queue_is_new(vhost: VHost) -> None:
    old = new_queue(vhost)
    old.push(new_message())
    vhost.remove_queue(old)
    new = new_queue(vhost)
    assert new is not old
    assert new.ready_count == 0


@pytest.mark.parametrize("queue_type", ["quorum", "stream"])
def test_a_queue_without_a_type_gets_the_default_type_if_possible(queue_type: str) -> None:
    """rabbit_amqqueue.erl, augment_declare_args."""
    broker = new_broker(default_queue_type=queue_type)
    vhost = broker.vhosts["/"]
    for _ in range(2):  # declaring it again is equivalent
        assert new_queue(vhost, "q", is_durable=True).type == queue_type
    assert new_queue(vhost, "q", is_durable=True, arguments={"x-queue-type": queue_type}) is vhost.queues["q"]
    assert new_queue(vhost, "named", is_durable=True, arguments={"x-queue-type": "classic"}).type == "classic"
    assert new_queue(vhost, "transient").type == "classic"
    assert new_queue(vhost, "auto-delete", is_durable=True, is_auto_delete=True).type == "classic"
    owner = new_connection()
    assert new_queue(vhost, "exclusive", is_durable=True, owner=owner, connection=owner).type == "classic"


def test_deprecated_features_may_be_forbidden() -> None:
    vhost = new_broker(denied_features="transient_nonexcl_queues").vhosts["/"]
    with pytest.raises(InternalError, match=r"^Feature `transient_nonexcl_queues` is deprecated"):
        new_queue(vhost, "q")
    new_queue(vhost, "q", is_durable=True)
