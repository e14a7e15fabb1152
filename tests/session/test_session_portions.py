"""Reads with more methods than are done at once."""

from __future__ import annotations

import pytest
from pamqp import commands, frame
from pamqp.common import FieldValue

from amqp_broker.broker.broker import PORTION_STEPS
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.scheduling.portions import WORK_MAX, Steps
from amqp_broker.session.wire.dispatch import METHOD_WORK
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer
from tests.restarting import durable_lab

METHODS_MAX = WORK_MAX // METHOD_WORK
COUNT = 3 * METHODS_MAX + 10


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return lab.connect()


def declare_many(peer: Peer, *others: bytes, durable: bool = False) -> None:
    """Declare queues, and send other frames, in one read."""
    methods = [commands.Queue.Declare(queue=f"q{number}", durable=durable) for number in range(COUNT)]
    peer.send_bytes(b"".join([*(frame.marshal(method, 1) for method in methods), *others]))


def test_others_are_served_between_the_methods_of_one_read(lab: Lab, peer: Peer) -> None:
    declare_many(peer)
    assert len(lab.vhost.queues) == METHODS_MAX
    assert peer.session.blocking.is_blocked
    other = lab.connect()
    assert other.declare("other").queue == "other"
    assert lab.broker.drain_on()
    assert len(lab.vhost.queues) == 2 * METHODS_MAX + 1
    lab.drain()
    assert [peer.expect(commands.Queue.DeclareOk).queue for _ in range(COUNT)] == [f"q{n}" for n in range(COUNT)]
    peer.expect_nothing()
    assert not peer.session.blocking.is_blocked


def test_later_frames_wait_for_their_turn(lab: Lab, peer: Peer) -> None:
    declare_many(peer)
    peer.publish(f"q{COUNT - 1}", b"m")
    lab.drain()
    for _ in range(COUNT):
        peer.expect(commands.Queue.DeclareOk)
    assert peer.get(f"q{COUNT - 1}") is not None


def test_a_read_with_the_most_methods_leaves_nothing_behind(lab: Lab, peer: Peer) -> None:
    peer.send(*[commands.Basic.Qos()] * METHODS_MAX)
    lab.drain()
    for _ in range(METHODS_MAX):
        peer.expect(commands.Basic.QosOk)
    assert peer.declare("q").queue == "q"


def test_a_connection_that_ends_meanwhile_declares_nothing_more(lab: Lab, peer: Peer) -> None:
    declare_many(peer)
    peer.disconnect()
    lab.drain()
    assert len(lab.vhost.queues) == METHODS_MAX


def test_an_error_ends_the_rest_of_the_read(lab: Lab, peer: Peer) -> None:
    declare_many(peer, frame.marshal(commands.Queue.Declare(queue="q", passive=True, nowait=True), 2))
    lab.drain()
    for _ in range(COUNT):
        peer.expect(commands.Queue.DeclareOk)
    assert "expected 'channel.open'" in peer.expect_connection_close(504)


def test_an_error_in_a_later_step_ends_the_connection(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Steps[None]:
        for _ in range(2 * PORTION_STEPS):
            yield
        raise ZeroDivisionError

    peer.session.work(failing())
    peer.expect_nothing()
    peer.lab.drain()
    assert peer.expect(commands.Connection.Close, channel=0).reply_code == 541
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        f"{peer.session.name}: internal error"
    ]
    caplog.clear()


def test_answers_wait_for_their_commits() -> None:
    lab = durable_lab("4.3")
    journal, peer = lab.broker.journal, lab.connect()
    assert isinstance(journal, MemoryJournal)
    declare_many(peer, durable=True)
    journal.commit()
    lab.drain()
    assert peer.session.outbox.held_until == journal.batch
    journal.commit()
    lab.broker.on_committed()
    assert not peer.session.outbox.held_until


@pytest.mark.parametrize("action", ["cut", "close_channel", "close_connection", "black_hole"])
def test_a_fault_acts_where_the_keys_of_a_message_take_several_portions(lab: Lab, peer: Peer, action: str) -> None:
    peer.declare("q")
    for number in range(100):
        peer.call(commands.Queue.Bind(queue="q", exchange="amq.topic", routing_key=f"*.{number}.#"))
    peer.call(commands.Confirm.Select())
    rule = lab.broker.faults.add(Rule(action, on="confirm"))
    keys: list[FieldValue] = [f"a.{number}.b" for number in range(9000)]
    peer.publish("a.1.b", b"x", exchange="amq.topic", headers={"CC": keys})
    assert peer.session.is_working
    lab.drain()
    assert rule.hits == 1
    if action == "close_channel":
        assert "closed by a fault" in peer.expect_channel_close(406)
    elif action == "close_connection":
        assert "closed by a fault" in peer.expect_connection_close(320)
    else:
        peer.expect_nothing()
        assert peer.is_dropped == (action == "cut")
        assert lab.vhost.queues["q"].ready_count == 1
