from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.amqp.message import failures_of
from amqp_broker.broker.operations import restoring as operations
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.snapshots import (
    NotEmpty,
    SnapshotError,
    restore,
    restoring,
    take_snapshot,
    taking,
)
from tests.broker_parts import new_broker
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer
from tests.stepping import counted


@pytest.fixture(params=[False, True], ids=["in memory", "durable"])
def lab(request: pytest.FixtureRequest) -> Lab:
    lab = Lab()
    if request.param:
        lab.broker.journal = MemoryJournal()
    return lab


def test_a_snapshot_with_a_transient_queue_is_refused_where_none_is_permitted() -> None:
    lab, other = Lab(), Lab(compat="4.3")
    lab.connect().send(commands.Queue.Declare(queue="q"))
    with pytest.raises(SnapshotError, match="queue 'q' is neither durable nor exclusive, which is not permitted here"):
        restore(other.broker, as_json(take_snapshot(lab.broker, "/")), "/", clear=True)
    assert not other.vhost.queues


def commit(lab: Lab) -> None:
    journal = lab.broker.journal
    if isinstance(journal, MemoryJournal):
        journal.commit()
        lab.broker.on_committed()


def declared(lab: Lab, **arguments: Any) -> Peer:
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments=arguments))
    return peer


def as_json(snapshot: dict[str, Any]) -> Any:
    return json.loads(json.dumps(snapshot))


def moved(lab: Lab) -> Queue:
    """The queue as a snapshot of "/" gives it to another vhost."""
    commit(lab)
    lab.broker.now = lab.now
    assert restore(lab.broker, as_json(take_snapshot(lab.broker, "/")), "copy")
    commit(lab)
    found: Queue = lab.broker.vhosts["copy"].queues["q"]
    return found


def state(queue: Queue) -> list[tuple[bytes, bytes, str, bool]]:
    return [(message.body, message.property_list, message.routing_key, old) for _, message, old in queue.peek()]


def pulled(queue: Queue) -> list[bytes]:
    found = []
    while (one := queue.pull()) is not None:
        found.append(one[0].body)
    return found


KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "priority": {"x-max-priority": 9},
    "quorum": {"x-queue-type": "quorum"},
    "bounded": {"x-max-length-bytes": 1000},
}


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_restored_in_order_with_their_properties(lab: Lab, kind: str) -> None:
    peer = declared(lab, **KINDS[kind])
    for number in range(12):
        priority = (0, 9, 5)[number % 3]
        peer.publish("q", b"%d" % number, priority=priority, headers={"n": number}, delivery_mode=number % 2 + 1)
    # Some come back, so that there is a past, and an order other than that of arrival.
    peer.send(*[commands.Basic.Get(queue="q")] * 4)
    peer.send(commands.Basic.Nack(3, requeue=True), commands.Basic.Nack(1, requeue=True), commands.Basic.Ack(2))
    peer.send(commands.Basic.Nack(4, requeue=True))
    commit(lab)
    queue = lab.vhost.queues["q"]
    copy = moved(lab)
    assert (copy.ready_count, len(state(queue))) == (11, 11)
    assert state(copy) == state(queue)
    assert pulled(copy) == pulled(queue)


@pytest.mark.parametrize("kind", [*KINDS, "stream"])
def test_a_snapshot_in_steps_has_everything_as_it_was_at_the_first_step(lab: Lab, kind: str) -> None:
    peer = declared(lab, **KINDS.get(kind, {"x-queue-type": "stream"}))
    peer.send(commands.Queue.Declare(queue="other", durable=True))
    for number in range(6):
        peer.publish("q", b"%d" % number, priority=number, delivery_mode=2)
    if kind != "stream":
        peer.send(*[commands.Basic.Get(queue="q")] * 3)
        peer.send(commands.Basic.Nack(2, requeue=True))
    commit(lab)
    lab.broker.now = lab.now
    expected, steps = take_snapshot(lab.broker, "/"), taking(lab.broker, "/")
    next(steps)
    if kind != "stream":
        peer.send(*[commands.Basic.Get(queue="q", no_ack=True)] * 2, commands.Basic.Ack(1), commands.Basic.Nack(3))
    peer.publish("q", b"new", delivery_mode=2)
    peer.publish("other", b"new", delivery_mode=2)
    steps_done = sum(1 for _ in range(3) if next(steps, True) is None)
    commit(lab)
    peer.send(commands.Queue.Delete(queue="q"))
    assert (steps_done, msgspec.to_builtins(finished(steps))) == (3, expected)


def test_delayed_messages_that_become_due_stay_in_a_snapshot_that_is_being_taken(lab: Lab) -> None:
    peer = lab.connect()
    arguments: FieldTable = {"x-delayed-type": "fanout"}
    peer.send(commands.Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    for number in range(3):
        peer.publish("", b"%d" % number, exchange="x", headers={"x-delay": 10})
    lab.broker.now = lab.now
    expected, steps = take_snapshot(lab.broker, "/"), taking(lab.broker, "/")
    next(steps)
    lab.advance(10)
    assert msgspec.to_builtins(finished(steps)) == expected
    assert not take_snapshot(lab.broker, "/")["exchanges"][0]["delayed"]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_failures_that_dead_letters_have_brought_are_restored(kind: str) -> None:
    lab = Lab(compat="4.3")
    peer = declared(lab, **KINDS[kind])
    dying: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    peer.send(commands.Queue.Declare(queue="dying", durable=True, arguments=dying))
    peer.publish("dying", b"dead")
    peer.send(commands.Basic.Get(queue="dying"), commands.Basic.Reject(1, requeue=False))
    copy = moved(lab)
    found = [(queue, queue.pull()) for queue in (copy, lab.vhost.queues["q"])]
    shown = [
        (failures_of(one[0]), one[2], queue.as_delivered(*one[:2]).property_list)
        for queue, one in found
        if one is not None
    ]
    assert shown[0] == shown[1]
    assert shown[0][:2] == (1, True)


def test_a_restored_queue_counts_its_octets_against_its_limit(lab: Lab) -> None:
    peer = declared(lab, **{"x-max-length-bytes": 10})
    peer.publish("q", b"12345")
    peer.publish("q", b"67890")
    copy = moved(lab)
    assert isinstance(copy, BacklogQueue)
    assert copy.limit.ready_bytes == 10
    copy.offer(next(copy.messages()))
    assert copy.ready_count == 2


def test_remaining_times_to_live_are_restored(lab: Lab) -> None:
    peer = declared(lab)
    peer.publish("q", b"m", expiration="1000")
    lab.advance(400)
    copy = moved(lab)
    lab.advance(599)
    assert copy.ready_count == 1
    lab.advance(1)
    assert copy.ready_count == 0


def test_delivery_counts_are_restored(lab: Lab) -> None:
    peer = declared(lab, **{"x-queue-type": "quorum", "x-delivery-limit": 1})
    peer.publish("q", b"m")
    peer.send(commands.Basic.Get(queue="q"))
    commit(lab)
    # It is unacknowledged, which counts as one return.
    copy = moved(lab)
    one = copy.pull()
    assert one is not None
    copy.unacked_count += 1
    copy.requeue(one[1], one[0])
    assert copy.ready_count == 0


def test_a_stream_keeps_offsets_and_times(lab: Lab) -> None:
    peer = declared(lab, **{"x-queue-type": "stream"})
    for body in (b"a", b"b", b"c"):
        peer.publish("q", body)
        commit(lab)
        lab.advance(1000)
    stream = lab.vhost.queues["q"]
    assert isinstance(stream, StreamQueue)
    head = stream.log.first_head()
    assert head is not None
    stream.log.drop_first(head)
    stream.log.forget(0)
    copy = moved(lab)
    assert isinstance(copy, StreamQueue)
    assert (copy.log.first, copy.log.committed) == (1, 3)
    assert state(copy) == state(stream)
    assert copy.log.offset_since(lab.now - 1500) == 2
    assert copy.log.content_bytes == stream.log.content_bytes


def test_delayed_messages_are_restored_with_the_remaining_delay(lab: Lab) -> None:
    peer = declared(lab)
    delayed: FieldTable = {"x-delayed-type": "fanout"}
    peer.send(commands.Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=delayed))
    peer.send(commands.Queue.Bind(queue="q", exchange="x"))
    peer.publish("", b"m", exchange="x", headers={"x-delay": 1000})
    lab.advance(300)
    copy = moved(lab)
    lab.advance(699)
    assert copy.ready_count == 0
    lab.advance(1)
    assert copy.ready_count == 1


def test_bindings_and_policies_are_restored_with_the_messages(lab: Lab) -> None:
    peer = declared(lab)
    peer.send(commands.Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.*"))
    moved(lab)
    exchange = lab.broker.vhosts["copy"].exchanges["amq.topic"]
    assert [binding.routing_key for binding in exchange.bindings.values()] == ["a.*"]


def test_a_vhost_that_is_not_empty_is_refused_and_stays_unchanged() -> None:
    lab = Lab()
    declared(lab).publish("q", b"m")
    with pytest.raises(NotEmpty, match="vhost '/' is not empty"):
        restore(lab.broker, take_snapshot(lab.broker, "/"), "/")
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_cleared_vhost_has_only_the_contents_of_the_snapshot() -> None:
    lab = Lab()
    peer = declared(lab)
    peer.publish("q", b"m")
    snapshot = take_snapshot(lab.broker, "/")
    peer.publish("q", b"n")
    peer.send(commands.Queue.Declare(queue="other"))
    assert not restore(lab.broker, snapshot, "/", clear=True)
    assert {name: queue.ready_count for name, queue in lab.vhost.queues.items()} == {"q": 1}


def without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda snapshot: snapshot.pop(key)


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "no queues": without("queues"),
    "another format": lambda snapshot: snapshot.update(format=2),
    "queues that are not defined": lambda snapshot: snapshot["definitions"].update(queues=[]),
    "broken properties": lambda snapshot: snapshot["queues"][0]["messages"][0].update(properties="////"),
    "no base64": lambda snapshot: snapshot["queues"][0]["messages"][0].update(body="?"),
    "a long key": lambda snapshot: snapshot["queues"][0]["messages"][0].update(routing_key="k" * 256),
    "a negative time": lambda snapshot: snapshot["queues"][0]["messages"][0].update(expires_in_ms=-1),
    "a line that there is not": lambda snapshot: snapshot["queues"][0]["messages"][0].update(level=32),
    "wrong definitions": lambda snapshot: snapshot["definitions"].update(policies=[{"name": "p"}]),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_invalid_snapshot_changes_nothing(what: str) -> None:
    lab = Lab()
    peer = declared(lab)
    peer.publish("q", b"m")
    snapshot = as_json(take_snapshot(lab.broker, "/"))
    WRONG[what](snapshot)
    with pytest.raises(SnapshotError):
        restore(lab.broker, snapshot, "/", clear=True)
    with pytest.raises(SnapshotError):
        restore(lab.broker, snapshot, "new")
    assert lab.vhost.queues["q"].ready_count == 1
    assert "new" not in lab.broker.vhosts


def test_messages_of_a_stream_are_not_restored_to_another_type_of_queue() -> None:
    lab = Lab()
    declared(lab, **{"x-queue-type": "stream"})
    snapshot = as_json(take_snapshot(lab.broker, "/"))
    snapshot["definitions"]["queues"][0].update(type="classic", arguments={})
    with pytest.raises(SnapshotError, match="is not a stream"):
        restore(lab.broker, snapshot, "new")
    assert "new" not in lab.broker.vhosts


def filled(lab: Lab, count: int) -> dict[str, Any]:
    """A snapshot of queues of all kinds with messages, some of them returned, and of a stream."""
    for name, arguments in KINDS.items():
        peer = lab.connect()
        peer.send(commands.Queue.Declare(queue=name, durable=True, arguments=arguments))
        peer.expect(commands.Queue.DeclareOk)
        for number in range(count):
            peer.publish(name, b"%d" % number, priority=number % 3, delivery_mode=2)
            peer.get(name, no_ack=False) if number < 3 else None
        peer.disconnect()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="s", durable=True, arguments={"x-queue-type": "stream"}))
    peer.publish("s", b"0")
    commit(lab)
    return dict(as_json(take_snapshot(lab.broker, "/")))


def test_a_restore_in_steps_gives_what_one_in_one_piece_does(lab: Lab) -> None:
    snapshot = filled(lab, 6)
    journal = lab.broker.journal
    restore(lab.broker, snapshot, "whole")
    between: dict[int, Callable[[], object]] = {}
    if isinstance(journal, MemoryJournal):
        between = dict.fromkeys(range(1, 30 + 7 * len(KINDS), 3), journal.commit)
    steps, _ = counted(restoring(lab.broker, snapshot, "stepped"), between)
    # Each message is built and put.
    assert steps >= 2 * 6 * len(KINDS)
    commit(lab)
    whole, stepped = lab.broker.vhosts["whole"], lab.broker.vhosts["stepped"]
    assert list(whole.queues) == list(stepped.queues)
    for name in whole.queues:
        assert state(whole.queues[name]) == state(stepped.queues[name]), name
    for part in ("queues", "streams"):
        assert take_snapshot(lab.broker, "whole")[part] == take_snapshot(lab.broker, "stepped")[part]
    for name in KINDS:
        assert pulled(whole.queues[name]) == pulled(stepped.queues[name])


@pytest.mark.parametrize("clear", [False, True])
def test_clients_of_a_restored_vhost_are_closed_and_others_are_not_let_in(clear: bool) -> None:
    lab = Lab()
    snapshot = filled(Lab(), 3)
    peer = lab.connect()

    def look() -> None:
        with pytest.raises(AssertionError, match="vhost '/' is down"):
            lab.peer().open()

    steps, _ = counted(restoring(lab.broker, snapshot, "/", clear=clear))
    assert peer.expect_connection_close(320) == "CONNECTION_FORCED - vhost '/' is down"
    lab.vhost.broker.delete_vhost("/")
    lab.broker.add_defaults()
    counted(restoring(lab.broker, snapshot, "/", clear=clear), {steps // 2: look, steps - 1: look})
    assert lab.connect().get("classic") is not None


def test_a_second_restore_of_a_vhost_is_refused() -> None:
    lab = Lab()
    snapshot = filled(Lab(), 3)
    second = restoring(lab.broker, snapshot, "/")
    next(second)

    def go_on() -> None:
        with pytest.raises(SnapshotError, match="vhost '/' is being deleted or restored"):
            finished(second)

    counted(restoring(lab.broker, snapshot, "/"), {30: go_on})
    assert lab.vhost.queues["classic"].ready_count == 3


def test_a_queue_that_is_deleted_during_a_restore_ends_it() -> None:
    lab = Lab()
    lab.broker.journal = journal = MemoryJournal()
    snapshot = filled(Lab(), 6)
    steps = restoring(lab.broker, snapshot, "/")
    while "classic" not in lab.vhost.queues or not lab.vhost.queues["classic"].ready_count:
        next(steps)
    lab.vhost.remove_queue(lab.vhost.queues["classic"])
    expected = "queue 'classic' in vhost '/' was deleted while the snapshot was restored; vhost '/' has only a part of"
    with pytest.raises(SnapshotError, match=expected):
        finished(steps)
    journal.commit()
    assert not journal.disk.messages
    assert not lab.vhost.is_down


def test_a_new_vhost_whose_restore_fails_is_deleted() -> None:
    lab = Lab()
    snapshot = filled(Lab(), 6)
    steps = restoring(lab.broker, snapshot, "new")
    while "new" not in lab.broker.vhosts or not lab.broker.vhosts["new"].queues:
        next(steps)
    vhost = lab.broker.vhosts["new"]
    vhost.remove_queue(next(iter(vhost.queues.values())))
    with pytest.raises(SnapshotError, match=r"was deleted while the snapshot was restored$"):
        finished(steps)
    assert "new" not in lab.broker.vhosts


class ReportingJournal(MemoryJournal):
    """A journal that keeps what it is to report."""

    def report_damage(self, what: str) -> None:
        self.reported = what


def test_a_restart_reports_that_a_restore_did_not_end() -> None:
    lab = Lab()
    lab.broker.journal = journal = MemoryJournal()
    lab.vhost.remember()
    snapshot = filled(Lab(), 6)
    steps = restoring(lab.broker, snapshot, "new")
    while "new" not in lab.broker.vhosts or not lab.broker.vhosts["new"].queues:
        next(steps)
    journal.commit()
    after = ReportingJournal(journal.disk)
    operations.restore(new_broker(after, has_defaults=False), after.definitions_of)
    assert after.reported == (
        "the broker ended while a snapshot was restored to vhost 'new', which has only a part of it: restore it again"
    )
    finished(steps)
    journal.commit()
    whole = ReportingJournal(journal.disk)
    operations.restore(new_broker(whole, has_defaults=False), whole.definitions_of)
    assert not hasattr(whole, "reported")
