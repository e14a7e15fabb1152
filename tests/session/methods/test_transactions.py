"""Class tx: nothing takes effect before the commit, and what is rolled back never was."""

from __future__ import annotations

import pytest
from pamqp import base
from pamqp.commands import Basic, Channel, Connection, Queue, Tx
from pamqp.common import FieldTable

from amqp_broker.session.methods import transactions
from tests.peer import Lab, Peer, blamed, shown
from tests.present import present


@pytest.fixture
def worker(peer: Peer) -> Peer:
    """A client with the queue q in a transaction."""
    peer.declare("q")
    peer.call(Tx.Select())
    return peer


def counts(lab: Lab) -> tuple[int, int]:
    """Ready and unacked of q."""
    queue = lab.vhost.queues["q"]
    return queue.ready_count, queue.unacked_count


def bodies(peer: Peer) -> list[bytes]:
    found = []
    while (got := peer.get("q")) is not None:
        found.append(got[1].body)
    return found


def pull(worker: Peer, other: Peer, *messages: bytes) -> None:
    """Have the worker hold messages, under the tags from 1 on."""
    for message in messages:
        other.publish("q", message)
        assert worker.get("q", no_ack=False) is not None


# Publishing


def test_publishes_take_effect_in_order_at_the_commit(worker: Peer, other: Peer) -> None:
    worker.publish("q", b"1")
    worker.publish("q", b"23", frame_size=1)
    worker.publish("q", b"4", delivery_mode=2, headers={"n": 1})
    assert other.get("q") is None
    worker.call(Tx.Commit())
    assert bodies(other) == [b"1", b"23", b"4"]


def test_all_messages_of_a_commit_precede_the_dead_letters_that_they_cause(worker: Peer, other: Peer) -> None:
    dead_letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    other.declare("full", arguments={"x-max-length": 1, **dead_letters})
    for body, queue in ((b"1", "full"), (b"2", "full"), (b"3", "q")):
        worker.publish(queue, body)
    worker.call(Tx.Commit())
    assert bodies(other) == [b"3", b"1"]


def test_a_rollback_drops_publishes(worker: Peer, other: Peer) -> None:
    worker.publish("q", b"lost")
    worker.call(Tx.Rollback())
    worker.publish("q", b"kept")
    worker.call(Tx.Commit())
    assert bodies(other) == [b"kept"]


@pytest.mark.parametrize("end", ["channel close", "channel error", "connection close", "disconnect"])
def test_closing_the_channel_drops_uncommitted_publishes(lab: Lab, worker: Peer, other: Peer, end: str) -> None:
    pull(worker, other, b"1", b"2", b"3")
    worker.publish("q", b"lost")
    worker.send(Basic.Ack(1), Basic.Reject(2, requeue=False))
    match end:
        case "channel close":
            worker.call(Channel.Close(200, "bye", 0, 0))
        case "channel error":
            worker.send(Queue.Declare(queue="missing", passive=True))
        case "connection close":
            worker.call(Connection.Close(200, "bye", 0, 0), channel=0)
        case "disconnect":
            worker.disconnect()
    assert counts(lab) == (3, 0)
    assert bodies(other) == [b"1", b"2", b"3"]


def test_a_committed_message_is_counted_once(worker: Peer, other: Peer) -> None:
    worker.publish("q", b"1")
    for _ in range(3):
        worker.call(Tx.Commit())
    assert bodies(other) == [b"1"]


def test_unroutable_mandatory_messages_are_returned_at_the_commit(worker: Peer) -> None:
    worker.publish("missing", b"back", mandatory=True)
    worker.expect_nothing()
    worker.send(Tx.Commit())
    assert worker.expect(Basic.Return).reply_code == 312
    assert worker.expect_content().body == b"back"
    worker.expect(Tx.CommitOk)


def test_a_queue_deleted_before_the_commit_gets_nothing_and_others_do(lab: Lab, worker: Peer, other: Peer) -> None:
    other.declare("p")
    for queue in ("p", "q"):
        other.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    worker.publish(exchange="amq.fanout", message=b"1", mandatory=True)
    other.call(Queue.Delete(queue="p"))
    worker.send(Tx.Commit())
    worker.expect_channel_close(406)
    assert bodies(other) == [b"1"]


def test_a_full_queue_makes_the_commit_partial(lab: Lab, worker: Peer) -> None:
    worker.declare("limited", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    for queue in ("limited", "limited", "q"):
        worker.publish(queue)
    worker.send(Tx.Commit())
    assert worker.expect_channel_close(406) == "PRECONDITION_FAILED - partial tx completion"
    assert lab.vhost.queues["limited"].ready_count == lab.vhost.queues["q"].ready_count == 1


def declare_limited(peer: Peer, name: str, queue_type: str, length: int) -> None:
    limit: FieldTable = {"x-queue-type": queue_type, "x-max-length": length, "x-overflow": "reject-publish"}
    peer.call(Queue.Declare(queue=name, durable=True, arguments=limit))
    peer.call(Queue.Bind(queue=name, exchange="amq.fanout"))


@pytest.mark.parametrize("compat", ["3.13", "4.0", "4.2", "4.3"])
def test_a_quorum_queue_takes_all_messages_of_a_commit_or_none(compat: str) -> None:
    """Each commit succeeds, as at RabbitMQ 3.10.8, 4.0.5 and 4.3.6 (rabbitmq-server 8966)."""
    lab = Lab(compat=compat)
    worker = lab.connect()
    declare_limited(worker, "limited", "quorum", 5)
    worker.call(Tx.Select())
    lengths = []
    for count in (3, 6, 6, 1):
        for _ in range(count):
            worker.publish("limited", b"1")
        worker.call(Tx.Commit())
        lengths.append(lab.vhost.queues["limited"].ready_count)
    assert lengths == [3, 9, 9, 9]


def test_a_channel_that_a_quorum_queue_does_not_know_is_refused_from_its_first_commit_on(
    lab: Lab, worker: Peer
) -> None:
    declare_limited(worker, "limited", "quorum", 0)
    worker.publish("limited", b"1")
    worker.call(Tx.Commit())
    other = lab.connect()
    other.call(Tx.Select())
    other.publish("limited", b"2")
    other.call(Tx.Commit())
    assert lab.vhost.queues["limited"].ready_count == 1


def test_a_quorum_queue_with_room_again_takes_the_next_commit(lab: Lab, worker: Peer) -> None:
    declare_limited(worker, "limited", "quorum", 5)
    for _ in range(2):
        for _ in range(6):
            worker.publish("limited", b"1")
        worker.call(Tx.Commit())
    assert lab.vhost.queues["limited"].ready_count == 6
    for _ in range(2):
        worker.get("limited")
    worker.publish("limited", b"1")
    worker.call(Tx.Commit())
    assert lab.vhost.queues["limited"].ready_count == 5


def test_a_message_that_a_quorum_queue_refuses_does_not_fail_the_commit_at_a_full_classic_queue(
    lab: Lab, worker: Peer
) -> None:
    """The channel no longer waits for the classic queue's answer. Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    for name, queue_type in (("classic", "classic"), ("quorum", "quorum")):
        declare_limited(worker, name, queue_type, 0)
    worker.publish("quorum", b"1")
    worker.call(Tx.Commit())
    worker.publish(exchange="amq.fanout", message=b"2")
    worker.call(Tx.Commit())
    worker.publish(exchange="amq.fanout", message=b"3")
    worker.publish("classic", b"4")
    worker.send(Tx.Commit())
    assert worker.expect_channel_close(406) == "PRECONDITION_FAILED - partial tx completion"
    assert lab.vhost.queues["quorum"].ready_count == 1


def test_acks_take_effect_in_a_commit_that_a_quorum_queue_refuses(lab: Lab, worker: Peer, other: Peer) -> None:
    declare_limited(worker, "limited", "quorum", 0)
    other.publish("limited", b"1")
    pull(worker, other, b"1", b"2")
    worker.publish("limited", b"lost")
    worker.send(Basic.Ack(1))
    worker.call(Tx.Commit())
    assert counts(lab) == (0, 1)


def test_an_invalid_publish_is_reported_at_once(worker: Peer) -> None:
    worker.publish(exchange="missing")
    assert worker.expect_channel_close(404) == "NOT_FOUND - no exchange 'missing' in vhost '/'"


# Settling


@pytest.mark.parametrize(
    ("methods", "after"),
    [
        ([Basic.Ack(1)], (0, 2)),
        ([Basic.Ack(2, multiple=True)], (0, 1)),
        ([Basic.Ack(0, multiple=True)], (0, 0)),
        ([Basic.Reject(1, requeue=False), Basic.Nack(3, requeue=False)], (0, 1)),
        ([Basic.Reject(1, requeue=True), Basic.Nack(3, requeue=True)], (2, 1)),
        ([Basic.Nack(0, multiple=True, requeue=True)], (3, 0)),
        ([Basic.Ack(2), Basic.Reject(1, requeue=True), Basic.Ack(3)], (1, 0)),
    ],
    ids=shown,
)
def test_settling_takes_effect_at_the_commit_or_never(
    lab: Lab, worker: Peer, other: Peer, methods: list[base.Frame], after: tuple[int, int]
) -> None:
    pull(worker, other, b"1", b"2", b"3")
    worker.send(*methods)
    assert counts(lab) == (0, 3)
    worker.call(Tx.Rollback())
    assert counts(lab) == (0, 3)
    worker.send(*methods)
    worker.call(Tx.Commit())
    assert counts(lab) == after
    worker.expect_nothing()


def test_a_tag_can_be_settled_once_even_before_the_commit(worker: Peer, other: Peer) -> None:
    pull(worker, other, b"1")
    worker.send(Basic.Ack(1), Basic.Ack(1))
    assert worker.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 1"


def test_after_a_rollback_a_tag_can_be_settled_again_and_in_order(lab: Lab, worker: Peer, other: Peer) -> None:
    pull(worker, other, b"1", b"2", b"3")
    worker.send(Basic.Ack(3), Basic.Reject(1, requeue=True))
    worker.call(Tx.Rollback())
    worker.send(Basic.Ack(2, multiple=True))
    worker.call(Tx.Commit())
    assert counts(lab) == (0, 1)
    worker.call(Channel.Close(200, "bye", 0, 0))
    assert bodies(other) == [b"3"]


def test_recover_takes_effect_at_once_except_for_what_the_commit_settles(lab: Lab, worker: Peer, other: Peer) -> None:
    pull(worker, other, b"1", b"2", b"3")
    worker.send(Basic.Ack(1))
    worker.call(Basic.Recover(requeue=True))
    assert counts(lab) == (2, 1)
    worker.call(Tx.Rollback())
    assert counts(lab) == (2, 1)
    worker.send(Basic.Ack(1))
    worker.call(Tx.Commit())
    assert (counts(lab), bodies(other)) == ((2, 0), [b"2", b"3"])


def test_an_unknown_tag_is_reported_at_once(worker: Peer) -> None:
    worker.send(Basic.Ack(99))
    assert worker.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 99"


def test_requeues_of_a_commit_precede_its_publishes(worker: Peer, other: Peer) -> None:
    pull(worker, other, b"old")
    worker.publish("q", b"new")
    worker.send(Basic.Nack(1, requeue=True))
    worker.call(Tx.Commit())
    assert bodies(other) == [b"old", b"new"]


def test_prefetch_is_freed_by_the_commit(worker: Peer, other: Peer) -> None:
    worker.call(Basic.Qos(prefetch_count=1))
    worker.consume("q")
    for body in (b"1", b"2"):
        other.publish("q", body)
    assert worker.bodies() == [b"1"]
    worker.send(Basic.Ack(1))
    worker.expect_nothing()
    worker.send(Tx.Commit())
    worker.expect(Tx.CommitOk)
    assert worker.bodies() == [b"2"]


def test_acks_that_were_uncommitted_when_the_channel_was_limited_make_room_at_the_commit(
    lab: Lab, worker: Peer, other: Peer
) -> None:
    worker.consume("q")
    for _ in range(4):
        other.publish("q")
    worker.deliveries()
    worker.send(Basic.Ack(1), Basic.Ack(2))
    worker.call(Basic.Qos(prefetch_count=2, global_=True))
    for body in (b"5", b"6", b"7"):
        other.publish("q", body)
    worker.expect_nothing()
    # Seen at RabbitMQ 3.10.8 and 4.0.5: the limit begins with 3 and 4, and the commit takes two from it.
    worker.send(Tx.Commit())
    worker.expect(Tx.CommitOk)
    assert worker.bodies() == [b"5", b"6"]
    assert counts(lab) == (1, 4)


# Modes


@pytest.mark.parametrize("method", [Tx.Commit(), Tx.Rollback()], ids=lambda method: method.name)
def test_commit_and_rollback_without_a_transaction_are_refused(peer: Peer, method: base.Frame) -> None:
    peer.send(method)
    close = peer.expect(Channel.Close)
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - channel is not transactional")
    assert blamed(close) == method.index


def test_an_empty_transaction_can_be_ended(worker: Peer) -> None:
    for method in (Tx.Commit(), Tx.Rollback(), Tx.Select(), Tx.Commit()):
        worker.call(method)


def test_selecting_again_keeps_the_transaction(worker: Peer, other: Peer) -> None:
    worker.publish("q", b"1")
    worker.call(Tx.Select())
    worker.call(Tx.Commit())
    assert bodies(other) == [b"1"]


def test_transactions_of_channels_are_independent(worker: Peer, other: Peer) -> None:
    worker.open_channel(2)
    worker.call(Tx.Select(), channel=2)
    worker.publish("q", b"1", channel=1)
    worker.publish("q", b"2", channel=2)
    worker.call(Tx.Rollback(), channel=1)
    worker.call(Tx.Commit(), channel=2)
    assert bodies(other) == [b"2"]


def test_before_4_0_a_commit_finds_queues_by_their_names() -> None:
    peer, other = transaction_before_a_deletion("3.13")
    peer.send(Tx.Commit())
    assert peer.expect(Basic.Return).routing_key == "q"
    peer.expect_content()
    peer.expect(Tx.CommitOk)
    peer.publish("late", b"2")
    other.declare("late")
    peer.call(Tx.Commit())
    assert other.get("late") is not None


def test_since_4_0_the_commit_to_a_deleted_classic_queue_is_partial() -> None:
    peer, _ = transaction_before_a_deletion("4.0")
    peer.send(Tx.Commit())
    assert "partial tx completion" in peer.expect_channel_close(406)


def test_since_4_3_a_commit_needs_all_its_queues() -> None:
    peer, other = transaction_before_a_deletion("4.3")
    peer.send(Tx.Commit())
    assert "failed to deliver message: {not_found" in peer.expect_connection_close(506)
    again, _ = transaction_before_a_deletion("4.3", other.lab)
    other.declare("q", durable=True)
    again.send(Tx.Commit())
    assert "partial tx completion" in again.expect_channel_close(406)


@pytest.mark.parametrize("compat", ["4.0", "4.3"])
def test_a_commit_to_a_client_that_has_gone_succeeds(compat: str) -> None:
    lab = Lab(compat=compat)
    peer, other = lab.connect(), lab.connect()
    other.consume("amq.rabbitmq.reply-to", no_ack=True)
    other.declare("requests", durable=True)
    other.publish("requests", b"?", reply_to="amq.rabbitmq.reply-to")
    got = peer.get("requests")
    assert got is not None
    peer.call(Tx.Select())
    peer.publish(present(got[1].properties.reply_to), b"!")
    other.disconnect()
    peer.call(Tx.Commit())


@pytest.mark.interpreted
def test_a_long_commit_without_its_queue_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "COMMITTED_MAX", 0)
    peer, _ = transaction_before_a_deletion("4.3")
    peer.send(Tx.Commit())
    peer.expect_connection_close(506)


def transaction_before_a_deletion(compat: str, lab: Lab | None = None) -> tuple[Peer, Peer]:
    """Return a client with an uncommitted mandatory publish, and another one that has deleted its queue."""
    lab = lab or Lab(compat=compat)
    peer, other = lab.connect(), lab.connect()
    other.declare("q", durable=True)
    peer.call(Tx.Select())
    peer.publish("q", b"1", mandatory=True)
    other.call(Queue.Delete(queue="q"))
    return peer, other
