"""Deletions of objects with more bindings than one batch removes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqp_broker.amqp.errors import NotFound, PreconditionFailed
from amqp_broker.broker.broker import PORTION_STEPS
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import CollectingConsumer, bind, new_connection, new_exchange, new_queue, new_vhost, push
from tests.memory_journal import MemoryJournal

COUNT = PORTION_STEPS + 10


@pytest.fixture
def vhost() -> VHost:
    return new_vhost(MemoryJournal())


def finish(vhost: VHost) -> None:
    while vhost.broker.drain_on():
        pass


def bind_often(exchange: Exchange, destination: Queue | Exchange, vhost: VHost, count: int = COUNT) -> None:
    for number in range(count):
        bind(exchange, destination, vhost, f"k{number}")


def routed(vhost: VHost, exchange: Exchange, key: str) -> list[str]:
    queues, _ = vhost.route(exchange, (key,), {}, None)
    return sorted(queue.name for queue in queues)


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", "headers"])
def test_a_queue_gets_nothing_from_the_first_step_on_and_other_queues_go_on(vhost: VHost, kind: str) -> None:
    exchange, queue, other = new_exchange(vhost, "x", kind), new_queue(vhost), new_queue(vhost, "other")
    bind_often(exchange, queue, vhost)
    bind(exchange, other, vhost, f"k{COUNT - 1}")
    vhost.remove_queue(queue)
    assert queue.incoming
    with pytest.raises(NotFound):
        vhost.queue("q")
    assert routed(vhost, exchange, f"k{COUNT - 1}") == ["other"]
    finish(vhost)
    assert (queue.incoming, len(exchange.bindings)) == ({}, 1)
    assert routed(vhost, exchange, f"k{COUNT - 1}") == ["other"]


@pytest.mark.parametrize("kind", ["x-random", "x-modulus-hash", "x-consistent-hash"])
@pytest.mark.parametrize("is_published_before", [False, True])
def test_a_queue_that_is_being_deleted_is_never_chosen(vhost: VHost, kind: str, is_published_before: bool) -> None:
    exchange, queue = new_exchange(vhost, "x", kind), new_queue(vhost)
    others = {name: new_queue(vhost, name) for name in ("a", "z")}
    for weight in range(1, 30):
        bind(exchange, queue, vhost, str(weight))
    for other in others.values():
        bind(exchange, other, vhost, "1")
    if is_published_before:
        assert "q" in {name for number in range(60) for name in routed(vhost, exchange, str(number))}
    chosen: list[list[list[str]]] = []
    for _ in vhost.deletions.of_queue(queue):
        chosen.append([routed(vhost, exchange, str(number)) for number in range(60)])
    assert len(chosen) == 29
    assert all(names in (["a"], ["z"]) for step in chosen for names in step)
    assert {name for [name] in chosen[-1]} == {"a", "z"}
    if kind != "x-random":
        # As soon as a hash has met the deleted queue, each stays with its queue.
        assert all(step == chosen[-1] for step in chosen[1:])


@pytest.mark.parametrize("kind", ["x-random", "x-modulus-hash", "x-consistent-hash"])
def test_an_exchange_that_chooses_has_no_match_when_all_its_destinations_are_being_deleted(
    vhost: VHost, kind: str
) -> None:
    exchange = new_exchange(vhost, "x", kind, arguments={"alternate-exchange": "amq.fanout"})
    queues = [new_queue(vhost, name) for name in ("q", "r")]
    alternate = new_queue(vhost, "alternate")
    bind(vhost.exchange("amq.fanout"), alternate, vhost)
    for queue in queues:
        for weight in range(1, 10):
            bind(exchange, queue, vhost, str(weight))
    deletions = [vhost.deletions.of_queue(queue) for queue in queues]
    for steps in deletions:
        next(steps)
    for _ in range(8):
        assert {name for number in range(20) for name in routed(vhost, exchange, str(number))} == {"alternate"}
        for steps in deletions:
            next(steps)


def test_an_exchange_whose_queue_is_deleted_passes_messages_to_its_alternate(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "direct", arguments={"alternate-exchange": "amq.fanout"})
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    bind(vhost.exchange("amq.fanout"), other, vhost)
    bind_often(exchange, queue, vhost)
    vhost.remove_queue(queue)
    assert routed(vhost, exchange, f"k{COUNT - 1}") == ["other"]


def test_an_exchange_between_others_is_out_of_reach_from_the_first_step_on(vhost: VHost) -> None:
    source, between, queue = new_exchange(vhost, "s", "direct"), new_exchange(vhost, "b"), new_queue(vhost)
    bind_often(source, between, vhost)
    bind(between, queue, vhost)
    vhost.delete_exchange("b", if_unused=False)
    assert source.bindings
    assert routed(vhost, source, f"k{COUNT - 1}") == []
    finish(vhost)
    assert (source.bindings, queue.incoming) == ({}, {})


def test_routes_are_found_anew_after_the_last_step(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x"), new_queue(vhost)
    bind_often(exchange, queue, vhost)
    vhost.remove_queue(queue)
    vhost.route_cache.of("guest").update({b"route": object()})  # type: ignore[dict-item]
    finish(vhost)
    assert vhost.route_cache.of("guest") == {}


def test_an_auto_delete_exchange_goes_with_the_last_binding_of_a_deleted_queue(vhost: VHost) -> None:
    first, second = (new_exchange(vhost, name, "direct", is_auto_delete=True) for name in "xy")
    queue = new_queue(vhost)
    bind(first, second, vhost, "k")
    bind_often(second, queue, vhost)
    vhost.remove_queue(queue)
    assert {"x", "y"} <= set(vhost.exchanges)
    finish(vhost)
    assert not {"x", "y"} & set(vhost.exchanges)


def test_an_exchange_whose_queues_are_being_deleted_is_unused(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", "direct"), new_queue(vhost)
    bind_often(exchange, queue, vhost)
    with pytest.raises(PreconditionFailed, match="in use"):
        vhost.delete_exchange("x", if_unused=True)
    vhost.remove_queue(queue)
    vhost.delete_exchange("x", if_unused=True)
    finish(vhost)
    assert (queue.incoming, "x" in vhost.exchanges) == ({}, False)


def test_both_ends_of_bindings_may_be_deleted_at_the_same_time(vhost: VHost) -> None:
    exchange, queue, journal = (
        new_exchange(vhost, "x", "direct", is_durable=True),
        new_queue(vhost),
        vhost.broker.journal,
    )
    durable = new_queue(vhost, "durable", is_durable=True)
    bind_often(exchange, queue, vhost)
    bind_often(exchange, durable, vhost)
    events: list[str] = []
    vhost.broker.events.listen(lambda name, headers: events.append(name))
    vhost.remove_queue(queue)
    vhost.delete_exchange("x", if_unused=False)
    vhost.remove_queue(durable)
    finish(vhost)
    assert (exchange.bindings, queue.incoming, durable.incoming) == ({}, {}, {})
    assert events.count("binding.deleted") == 2 * COUNT
    assert isinstance(journal, MemoryJournal)
    journal.commit()
    assert not [key for key in journal.disk.definitions if key[0] == "binding"]


def declare_queue_again(vhost: VHost) -> None:
    bind_often(vhost.exchange("x"), new_queue(vhost, is_durable=True), vhost, 1)


def declare_exchange_again(vhost: VHost) -> None:
    bind_often(new_exchange(vhost, "x", "direct", is_durable=True), vhost.queue("q"), vhost, 1)


@pytest.mark.parametrize("declare_again", [declare_queue_again, declare_exchange_again])
def test_an_object_of_the_same_name_keeps_its_own_bindings(
    vhost: VHost, declare_again: Callable[[VHost], None]
) -> None:
    exchange, queue = new_exchange(vhost, "x", "direct", is_durable=True), new_queue(vhost, is_durable=True)
    bind_often(exchange, queue, vhost)
    if declare_again is declare_queue_again:
        vhost.remove_queue(queue)
    else:
        vhost.delete_exchange("x", if_unused=False)
    declare_again(vhost)
    finish(vhost)
    journal = vhost.broker.journal
    assert isinstance(journal, MemoryJournal)
    journal.commit()
    assert [key[2:6] for key in journal.disk.definitions if key[0] == "binding"] == [("x", "queue", "q", "k0")]
    assert routed(vhost, vhost.exchange("x"), "k0") == ["q"]
    assert routed(vhost, vhost.exchange("x"), "k1") == []


def test_an_auto_delete_exchange_that_went_with_a_queue_may_be_declared_anew(vhost: VHost) -> None:
    exchange, other = new_exchange(vhost, "x", "direct", is_auto_delete=True), new_exchange(vhost, "o", "direct")
    queue = new_queue(vhost)
    bind(exchange, queue, vhost, "k")
    bind_often(other, exchange, vhost)
    vhost.remove_queue(queue)
    assert "x" not in vhost.exchanges
    assert exchange.incoming
    again = new_exchange(vhost, "x", "direct", is_auto_delete=True)
    assert (exchange.incoming, other.bindings) == ({}, {})
    finish(vhost)
    assert vhost.exchanges["x"] is again


def test_consumers_are_cancelled_in_steps_and_may_leave_meanwhile(vhost: VHost) -> None:
    queue = new_queue(vhost)
    collectors = [CollectingConsumer(queue, tag=f"{number:06}").start() for number in range(COUNT)]
    vhost.remove_queue(queue)
    collectors[-1].stop()
    finish(vhost)
    assert queue.consumers == {}
    assert [collector.has_lost_queue for collector in collectors] == [*[True] * (COUNT - 1), False]


def test_steps_that_a_caller_gives_up_are_done_in_batches(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", "direct"), new_queue(vhost)
    bind_often(exchange, queue, vhost, 3 * PORTION_STEPS)
    actors: set[str] = set()
    vhost.broker.events.listen(lambda name, headers: actors.add(headers["user_who_performed_action"]))
    vhost.broker.events.actor = "anna"
    steps = vhost.deletions.of_queue(queue)
    next(steps)
    vhost.broker.events.actor = "someone else"
    steps.close()
    assert queue.incoming
    finish(vhost)
    assert (queue.incoming, actors) == ({}, {"anna"})


def test_a_vhost_finishes_deletions_before_it_is_deleted(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", "direct", is_durable=True), new_queue(vhost, is_durable=True)
    bind_often(exchange, queue, vhost)
    vhost.remove_queue(queue)
    vhost.broker.delete_vhost("/")
    assert queue.incoming == {}
    finish(vhost)


def test_a_reader_of_a_stream_that_is_being_deleted_finds_nothing_more(vhost: VHost) -> None:
    queue = new_queue(vhost, arguments={"x-queue-type": "stream"}, is_durable=True)
    bind_often(new_exchange(vhost, "x"), queue, vhost)
    reader = CollectingConsumer(queue, prefetch=1, arguments={"x-stream-offset": "first"}).start()
    journal = vhost.broker.journal
    assert isinstance(journal, MemoryJournal)
    for body in (b"1", b"2"):
        push(queue, body)
        journal.commit()
        vhost.broker.on_committed()
    vhost.remove_queue(queue)
    journal.commit()
    reader.ack()
    finish(vhost)
    assert (reader.bodies, reader.has_lost_queue) == ([b"1"], True)


def test_the_queues_of_a_connection_that_ends_are_out_of_reach_at_once_and_their_names_free(vhost: VHost) -> None:
    connection, broker = new_connection(), vhost.broker
    broker.admit(connection, broker.users["guest"], "/")
    queues = [new_queue(vhost, f"q{number}", owner=connection) for number in range(COUNT)]
    last = queues[-1]
    bind_often(new_exchange(vhost, "x"), last, vhost)
    events: list[str] = []
    broker.events.listen(lambda name, headers: events.append(name))
    broker.dismiss(connection)
    assert vhost.queues == {}
    assert 0 < events.count("queue.deleted") < COUNT
    again = new_queue(vhost, last.name)
    bind_often(vhost.exchange("x"), again, vhost)
    vhost.remove_queue(again)
    third = new_queue(vhost, last.name)
    finish(vhost)
    assert (vhost.queues, connection.exclusive_queues) == ({last.name: third}, set())
    assert (last.incoming, again.incoming, vhost.exchange("x").bindings) == ({}, {}, {})
    assert events.count("queue.deleted") == COUNT + 1


def test_the_messages_of_the_queues_of_a_connection_that_ends_leave_the_sums_at_once(vhost: VHost) -> None:
    connection, broker = new_connection(), vhost.broker
    broker.admit(connection, broker.users["guest"], "/")
    queues = [new_queue(vhost, f"q{number}", owner=connection) for number in range(COUNT)]
    for queue in queues:
        vhost.counts.sample_lengths(queue, (1, 1, 0))
    assert vhost.counts.lengths == (COUNT, COUNT, 0)
    broker.changed_queues[queues[0]] = None
    broker.dismiss(connection)
    assert connection.exclusive_queues
    assert (vhost.counts.lengths, list(broker.changed_queues)) == ((0, 0, 0), [])
    finish(vhost)
    assert (vhost.counts.lengths, connection.exclusive_queues) == ((0, 0, 0), set())


def test_the_queues_of_a_connection_that_ends_are_deleted_by_their_names(vhost: VHost) -> None:
    connection, broker = new_connection(), vhost.broker
    broker.admit(connection, broker.users["guest"], "/")
    names = [f"q{number}" for number in range(9)]
    for name in reversed(names):
        new_queue(vhost, name, owner=connection)
    deleted: list[object] = []
    broker.events.listen(lambda name, headers: deleted.append(headers["name"]) if name == "queue.deleted" else None)
    broker.dismiss(connection)
    finish(vhost)
    assert deleted == names
