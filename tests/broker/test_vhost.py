from __future__ import annotations

from typing import Any

import pytest

from amqp_broker import fields
from amqp_broker.broker.exchange import Destination, Exchange
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.vhost import VHost, check_reserved
from amqp_broker.errors import AccessRefused, NotFound, PreconditionFailed, ResourceLocked
from tests.taker import Taker, new_connection, new_message, new_queue, new_vhost


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def new_exchange(vhost: VHost, name: str, kind: str = "fanout", **attributes: Any) -> Exchange:
    given = {"is_durable": False, "is_auto_delete": False, "is_internal": False, "arguments_": {}}
    return vhost.declare_exchange(name, kind, **{**given, **attributes})


def bind(source: Exchange, destination: Destination, vhost: VHost, key: str = "", **arguments: Any) -> None:
    vhost.bind(source, destination, key, arguments)


def unbind(source: Exchange, destination: Destination, vhost: VHost, key: str = "", **arguments: Any) -> None:
    binding = source.binding(destination, key, arguments)
    assert binding is not None
    vhost.unbind(binding)


def routed(vhost: VHost, exchange: Exchange, *keys: str, headers: fields.Table | None = None) -> list[str]:
    queues, _ = vhost.route(exchange, keys or ("",), headers or {})
    return sorted(queue.name for queue in queues)


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
    }


def test_only_the_exchange_of_traces_is_internal(vhost: VHost) -> None:
    assert [name for name, exchange in vhost.exchanges.items() if exchange.is_internal] == ["amq.rabbitmq.trace"]


def test_an_exchange_is_found_by_its_name(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x")
    assert vhost.exchange("x") is exchange


def test_an_exchange_that_is_missing_is_not_found(vhost: VHost) -> None:
    with pytest.raises(NotFound) as caught:
        vhost.exchange("x")
    assert str(caught.value) == "no exchange 'x' in vhost '/'"


def test_declaring_an_exchange_again_gives_the_same_one(vhost: VHost) -> None:
    first = new_exchange(vhost, "x", "topic", is_durable=True, arguments_={"alternate-exchange": "y", "note": 1})
    again = new_exchange(vhost, "x", "topic", is_durable=True, arguments_={"alternate-exchange": "y", "note": 2})
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
            {"arguments_": {"alternate-exchange": "y"}},
            "'alternate-exchange' {}: received the value 'y' of type 'longstr' but current is none",
        ),
    ],
)
def test_the_first_difference_of_an_exchange_is_told(vhost: VHost, attributes: dict[str, Any], difference: str) -> None:
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
        new_exchange(vhost, "x", arguments_={"alternate-exchange": True})
    assert str(caught.value) == "invalid type 'bool' for arg 'alternate-exchange' in exchange 'x' in vhost '/'"
    assert "x" not in vhost.exchanges


def test_exchanges_may_be_limited(vhost: VHost) -> None:
    vhost.exchange_max = len(vhost.exchanges) + 1
    new_exchange(vhost, "x")
    new_exchange(vhost, "x")
    with pytest.raises(PreconditionFailed) as caught:
        new_exchange(vhost, "y")
    assert str(caught.value) == "cannot declare exchange 'y' in vhost '/': exchange limit of 8 is reached"


def test_deleting_an_exchange_that_is_missing_is_as_good_as_done(vhost: VHost) -> None:
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
    assert routed(vhost, source) == []


# Queues


def test_a_queue_is_found_by_its_name(vhost: VHost) -> None:
    queue = new_queue(vhost)
    assert vhost.queue("q") is queue


def test_a_queue_that_is_missing_is_not_found(vhost: VHost) -> None:
    with pytest.raises(NotFound) as caught:
        vhost.queue("q")
    assert str(caught.value) == "no queue 'q' in vhost '/'"


def test_an_exclusive_queue_is_found_by_its_owner_only(vhost: VHost) -> None:
    owner = new_connection()
    queue = new_queue(vhost, owner=owner, connection=owner)
    assert vhost.queue("q", owner) is queue
    with pytest.raises(ResourceLocked):
        vhost.queue("q", new_connection())


def test_declaring_a_queue_again_gives_the_same_one(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments_={"x-expires": 1000, "note": 1})
    assert new_queue(vhost, is_durable=True, arguments_={"x-expires": fields.Long(1000), "note": 2}) is queue
    assert queue.arguments == {"x-expires": 1000, "note": 1}


@pytest.mark.parametrize(
    ("attributes", "difference"),
    [
        ({"is_durable": True, "is_auto_delete": True}, "'durable' {}: received 'true' but current is 'false'"),
        (
            {"is_auto_delete": True, "arguments_": {"x-expires": 1}},
            "'auto_delete' {}: received 'true' but current is 'false'",
        ),
        (
            {"arguments_": {"x-expires": 1}},
            "'x-expires' {}: received the value '1' of type 'signedint' but current is none",
        ),
    ],
)
def test_the_first_difference_of_a_queue_is_told(vhost: VHost, attributes: dict[str, Any], difference: str) -> None:
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


def test_an_exclusive_queue_is_locked_before_anything_is_compared(vhost: VHost) -> None:
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
        new_queue(vhost, arguments_={"x-expires": 0})
    assert str(caught.value) == "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}"
    assert vhost.queues == {}


def test_a_queue_with_an_argument_of_another_type_of_queue_is_not_declared(vhost: VHost) -> None:
    with pytest.raises(PreconditionFailed, match="of queue type rabbit_classic_queue"):
        new_queue(vhost, arguments_={"x-delivery-limit": 3})
    assert vhost.queues == {}


def test_the_arguments_of_a_queue_that_exists_are_compared_not_checked(vhost: VHost) -> None:
    new_queue(vhost)
    with pytest.raises(PreconditionFailed, match="inequivalent arg"):
        new_queue(vhost, arguments_={"x-expires": 0})


def test_queues_may_be_limited(vhost: VHost) -> None:
    vhost.queue_max = 1
    new_queue(vhost, "a")
    new_queue(vhost, "a")
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(vhost, "b")
    assert str(caught.value) == "cannot declare queue 'b': queue limit in vhost '/' (1) is reached"


def test_a_queue_that_must_be_empty_is_not_deleted_with_ready_messages(vhost: VHost) -> None:
    queue = new_queue(vhost)
    vhost.check_deletable(queue, if_unused=True, if_empty=True)
    queue.push(new_message())
    with pytest.raises(PreconditionFailed) as caught:
        vhost.check_deletable(queue, if_unused=False, if_empty=True)
    assert str(caught.value) == "queue 'q' in vhost '/' not empty"
    vhost.check_deletable(queue, if_unused=True, if_empty=False)


def test_a_queue_that_must_be_unused_is_not_deleted_with_consumers(vhost: VHost) -> None:
    queue = new_queue(vhost)
    Taker(queue).start()
    with pytest.raises(PreconditionFailed) as caught:
        vhost.check_deletable(queue, if_unused=True, if_empty=False)
    assert str(caught.value) == "queue 'q' in vhost '/' in use"
    vhost.check_deletable(queue, if_unused=False, if_empty=True)


def test_a_queue_goes_with_its_messages_bindings_and_consumers(vhost: VHost) -> None:
    queue, exchange = new_queue(vhost), vhost.exchange("amq.fanout")
    bind(exchange, queue, vhost)
    taker = Taker(queue, prefetch=1).start()
    queue.push(new_message())
    queue.push(new_message())
    vhost.remove_queue(queue)
    assert queue.is_deleted
    assert taker.is_bereft
    assert (vhost.queues, exchange.bindings, queue.consumers, queue.ready_count) == ({}, {}, [], 0)


def test_an_auto_delete_queue_that_is_deleted_is_deleted_once(vhost: VHost) -> None:
    queue = new_queue(vhost, is_auto_delete=True)
    taker = Taker(queue).start()
    vhost.remove_queue(queue)
    assert taker.is_bereft
    assert new_queue(vhost) is not queue


# Bindings


def test_binding_twice_makes_one_binding(vhost: VHost) -> None:
    exchange, queue = vhost.exchange("amq.direct"), new_queue(vhost)
    for _ in range(2):
        bind(exchange, queue, vhost, "key", a=1)
    assert len(exchange.bindings) == len(queue.incoming) == 1
    unbind(exchange, queue, vhost, "key", a=1)
    assert routed(vhost, exchange, "key") == []


def test_bindings_with_other_arguments_are_others(vhost: VHost) -> None:
    exchange, queue = vhost.exchange("amq.direct"), new_queue(vhost)
    bind(exchange, queue, vhost, "key", a=1)
    bind(exchange, queue, vhost, "key", a=2)
    unbind(exchange, queue, vhost, "key", a=1)
    assert routed(vhost, exchange, "key") == ["q"]


def test_a_binding_that_the_exchange_cannot_have_is_not_made(vhost: VHost) -> None:
    exchange, queue = vhost.exchange("amq.headers"), new_queue(vhost)
    with pytest.raises(PreconditionFailed, match="Invalid x-match"):
        vhost.bind(exchange, queue, "", {"x-match": "some"})
    assert (exchange.bindings, queue.incoming) == ({}, {})


def test_an_auto_delete_exchange_goes_with_its_last_binding(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", is_auto_delete=True), new_queue(vhost)
    bind(exchange, queue, vhost, "a")
    bind(exchange, queue, vhost, "b")
    unbind(exchange, queue, vhost, "a")
    assert "x" in vhost.exchanges
    unbind(exchange, queue, vhost, "b")
    assert "x" not in vhost.exchanges


def test_an_auto_delete_exchange_goes_with_the_last_queue_bound_to_it(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", is_auto_delete=True), new_queue(vhost)
    bind(exchange, queue, vhost, "a")
    bind(exchange, queue, vhost, "b")
    vhost.remove_queue(queue)
    assert "x" not in vhost.exchanges


def test_an_auto_delete_exchange_that_was_never_bound_stays(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", is_auto_delete=True)
    bind(vhost.exchange("amq.fanout"), exchange, vhost)
    unbind(vhost.exchange("amq.fanout"), exchange, vhost)
    assert "x" in vhost.exchanges


def test_a_chain_of_auto_delete_exchanges_goes_with_its_end(vhost: VHost) -> None:
    chain = [new_exchange(vhost, f"x{number}", is_auto_delete=True) for number in range(3)]
    queue = new_queue(vhost)
    bind(chain[0], chain[1], vhost)
    bind(chain[1], chain[2], vhost)
    bind(chain[2], queue, vhost)
    vhost.remove_queue(queue)
    assert not any(exchange.name in vhost.exchanges for exchange in chain)


def test_a_ring_of_auto_delete_exchanges_can_be_deleted(vhost: VHost) -> None:
    ring = [new_exchange(vhost, f"x{number}", is_auto_delete=True) for number in range(3)]
    for number in range(3):
        bind(ring[number], ring[(number + 1) % 3], vhost)
    bind(ring[0], ring[0], vhost)
    vhost.delete_exchange("x0", if_unused=False)
    assert not any(exchange.name in vhost.exchanges for exchange in ring)


# Routing


def test_the_default_exchange_goes_to_the_queue_of_that_name(vhost: VHost) -> None:
    new_queue(vhost, "a")
    new_queue(vhost, "b")
    assert routed(vhost, vhost.default_exchange, "a") == ["a"]
    assert routed(vhost, vhost.default_exchange, "c") == []
    assert routed(vhost, vhost.default_exchange, "a", "b", "a", "c") == ["a", "b"]


def test_a_queue_gets_one_copy_however_many_ways_lead_to_it(vhost: VHost) -> None:
    queue, direct, fanout = new_queue(vhost), vhost.exchange("amq.direct"), vhost.exchange("amq.fanout")
    bind(direct, queue, vhost, "a")
    bind(direct, queue, vhost, "b")
    bind(direct, fanout, vhost, "a")
    bind(fanout, queue, vhost)
    queues, _ = vhost.route(direct, ("a", "b"), {})
    assert queues == [queue]


def test_exchanges_may_lead_in_a_circle(vhost: VHost) -> None:
    one, other, queue = new_exchange(vhost, "one"), new_exchange(vhost, "other"), new_queue(vhost)
    bind(one, other, vhost)
    bind(other, one, vhost)
    bind(one, one, vhost)
    bind(other, queue, vhost)
    assert routed(vhost, one) == ["q"]


def test_what_matches_nothing_goes_to_the_alternate_exchange(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "direct", arguments_={"alternate-exchange": "amq.fanout"})
    bound, unrouted = new_queue(vhost, "bound"), new_queue(vhost, "unrouted")
    bind(exchange, bound, vhost, "key")
    bind(vhost.exchange("amq.fanout"), unrouted, vhost)
    assert routed(vhost, exchange, "key") == ["bound"]
    assert routed(vhost, exchange, "other") == ["unrouted"]


def test_one_match_among_several_keys_is_enough_to_bypass_the_alternate_exchange(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "direct", arguments_={"alternate-exchange": "amq.fanout"})
    bind(exchange, new_queue(vhost, "bound"), vhost, "key")
    bind(vhost.exchange("amq.fanout"), new_queue(vhost, "unrouted"), vhost)
    assert routed(vhost, exchange, "other", "key") == ["bound"]


def test_alternate_exchanges_may_lead_on_and_in_a_circle(vhost: VHost) -> None:
    first = new_exchange(vhost, "first", "direct", arguments_={"alternate-exchange": "second"})
    second = new_exchange(vhost, "second", "direct", arguments_={"alternate-exchange": "first"})
    assert routed(vhost, first, "key") == []
    bind(second, new_queue(vhost), vhost, "key")
    assert routed(vhost, first, "key") == ["q"]


def test_an_alternate_exchange_that_is_missing_takes_nothing(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", arguments_={"alternate-exchange": "missing"})
    assert routed(vhost, exchange, "key") == []


def test_the_default_exchange_as_an_alternate_takes_nothing(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", arguments_={"alternate-exchange": ""})
    new_queue(vhost, "key")
    assert routed(vhost, exchange, "key") == []


def test_a_match_that_leads_nowhere_is_a_match(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", arguments_={"alternate-exchange": "amq.direct"})
    bind(exchange, new_exchange(vhost, "dead end"), vhost)
    bind(vhost.exchange("amq.direct"), new_queue(vhost), vhost, "key")
    assert routed(vhost, exchange, "key") == []


def test_routing_tells_whether_headers_had_a_say(vhost: VHost) -> None:
    direct, headers, queue = vhost.exchange("amq.direct"), vhost.exchange("amq.headers"), new_queue(vhost)
    bind(direct, headers, vhost, "key")
    bind(headers, queue, vhost, a=1)
    assert vhost.route(direct, ("other",), {"a": 1}) == ([], False)
    assert vhost.route(direct, ("key",), {"a": 1}) == ([queue], True)
    assert vhost.route(direct, ("key",), {}) == ([], True)


def test_every_change_of_topology_empties_the_route_caches(vhost: VHost) -> None:
    cache: dict[bytes, Any] = {}
    vhost.route_caches["guest"] = cache
    exchange = vhost.exchange("amq.fanout")
    auto_delete = new_queue(vhost, "auto", is_auto_delete=True)
    taker = Taker(auto_delete).start()

    def delete_queue() -> None:
        vhost.remove_queue(vhost.queues["q"])

    changes = [
        lambda: new_queue(vhost),
        lambda: new_exchange(vhost, "x"),
        lambda: bind(exchange, vhost.queues["q"], vhost),
        lambda: unbind(exchange, vhost.queues["q"], vhost),
        lambda: vhost.delete_exchange("x", if_unused=True),
        delete_queue,
        taker.stop,
    ]
    for change in changes:
        cache[b"route"] = object()
        change()
        assert cache == {}, change


def test_what_changes_nothing_leaves_the_route_caches_alone(vhost: VHost) -> None:
    queue, exchange = new_queue(vhost), vhost.exchange("amq.fanout")
    bind(exchange, queue, vhost)
    cache: dict[bytes, Any] = {b"route": object()}
    vhost.route_caches["guest"] = cache
    new_queue(vhost)
    bind(exchange, queue, vhost)
    vhost.delete_exchange("missing", if_unused=False)
    assert cache


@pytest.mark.parametrize("name", ["amq.", "amq.anything"])
def test_names_with_the_reserved_prefix_are_the_brokers(name: str) -> None:
    with pytest.raises(AccessRefused) as caught:
        check_reserved("queue", name)
    assert str(caught.value) == f"queue name '{name}' contains reserved prefix 'amq.*'"


@pytest.mark.parametrize("name", ["", "amq", "amqp.x", "AMQ.x", "my.amq.x"])
def test_other_names_are_everybodys(name: str) -> None:
    check_reserved("queue", name)


def test_a_queue_of_a_deleted_name_is_a_new_one(vhost: VHost) -> None:
    old = new_queue(vhost)
    old.push(new_message())
    vhost.remove_queue(old)
    new = new_queue(vhost)
    assert isinstance(new, Queue)
    assert new is not old
    assert new.ready_count == 0
