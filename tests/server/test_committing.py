"""When a batch is committed: the loop, its timers and the disk are driven by the test."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Queue, Tx

from amqp_broker.server.committing import COMMIT_DELAY_S, LARGE_BATCH_BYTES, WAITS_SKIPPED, Committing
from tests.memory_journal import MemoryJournal
from tests.peer import NOW, Lab, Peer, publish_bytes
from tests.present import present

# Compiled code takes no other clock than its own.
pytestmark = pytest.mark.interpreted


class Timer:
    def __init__(self, delay_s: float, call: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Loop:
    """A loop of which the test runs each turn and each timer."""

    def __init__(self) -> None:
        self.ready: deque[Callable[[], None]] = deque()
        self.timers: list[Timer] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.ready.append(call)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay_s, call))
        return self.timers[-1]

    def turn(self) -> None:
        """Call what was ready before the sockets are read once more."""
        for _ in range(len(self.ready)):
            self.ready.popleft()()

    def wait(self) -> None:
        """Let all timers run out."""
        timers, self.timers = self.timers, []
        for timer in timers:
            if timer.call is not None:
                timer.call()

    def delays(self) -> None:
        """Let the delays of commits run out, but no wait for clients."""
        waits = [timer for timer in self.timers if timer.delay_s != COMMIT_DELAY_S]
        self.timers = [timer for timer in self.timers if timer.delay_s == COMMIT_DELAY_S]
        self.wait()
        self.timers += waits


class Clock:
    def now(self) -> int:
        return NOW

    real_now = now


class Disk:
    """A store whose commits end when the test says so. `commits` counts those that began."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.journal = journal
        self.is_idle = True
        self.is_failing = False
        self.commits = 0

    @property
    def can_commit(self) -> bool:
        return self.is_idle and not self.is_failing and self.journal.has_work

    def commit(self) -> None:
        assert self.is_idle
        self.is_idle = False
        self.commits += 1
        self.journal.take_batch()

    def release(self) -> None:
        pass


class Committed(Lab):
    """A broker whose journal is committed by a `Committing`."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = MemoryJournal()
        self.broker.journal = self.journal
        self.loop = Loop()
        self.disk = Disk(self.journal)
        self.errors: list[Exception | None] = []
        disk: Any = self.disk
        clock: Any = Clock()
        loop: Any = self.loop
        self.committing = Committing(self.broker, disk, clock, loop, self.flush, self.errors.append)

    def flush(self) -> None:
        self.dirty.clear()
        self.committing.check()

    def begin(self) -> None:
        """Have the loop turn until a commit begins."""
        before = self.disk.commits
        self.loop.turn()
        assert self.disk.commits == before
        self.loop.turn()
        assert self.disk.commits == before + 1

    def end(self, error: Exception | None = None) -> None:
        """End the commit that is under way."""
        self.disk.is_idle = True
        if error is None:
            self.journal.on_committed()
        else:
            self.journal.take_back()
        self.committing.on_done(error)

    def commit(self) -> None:
        """Commit what is collected, and what becomes due by that."""
        self.flush()
        while self.journal.has_changes:
            self.loop.turn()
            self.loop.turn()
            self.loop.wait()
            if not self.disk.is_idle:
                self.end()

    @property
    def bodies_on_disk(self) -> list[bytes]:
        return [
            stored.message.body for _, stored in sorted(self.journal.disk.messages.items(), key=lambda item: item[0])
        ]


@pytest.fixture
def lab() -> Committed:
    return Committed()


@pytest.fixture
def publisher(lab: Committed) -> Peer:
    """A client in confirm mode, and a durable queue q."""
    peer = lab.connect()
    peer.call(Confirm.Select())
    peer.declare("q", durable=True)
    lab.commit()
    return peer


def publish(peer: Peer, *bodies: bytes) -> None:
    """Publish persistent messages in one read."""
    peer.send_bytes(b"".join(publish_bytes("q", body, delivery_mode=2) for body in bodies))
    flush(peer)


def ack(peer: Peer) -> None:
    """Ack all deliveries in one read."""
    peer.send(*[Basic.Ack(present(delivery.delivery_tag)) for delivery, _ in peer.deliveries()])
    flush(peer)


def flush(peer: Peer) -> None:
    assert isinstance(peer.lab, Committed)
    peer.lab.flush()


def confirmed(peer: Peer) -> tuple[int, bool]:
    """Return tag and `multiple` of the next confirm."""
    confirm = peer.expect(Basic.Ack)
    return present(confirm.delivery_tag), confirm.multiple


@pytest.fixture
def consumer(lab: Committed, publisher: Peer) -> Peer:
    """A consumer of q that has just settled its first message faster than the disk."""
    peer = lab.connect()
    peer.consume("q")
    publish(publisher, b"first")
    lab.begin()
    ack(peer)
    lab.end()
    lab.commit()
    assert publisher.expect(Basic.Ack).delivery_tag == 1
    return peer


def test_a_batch_has_what_the_sockets_bring_before_its_commit(lab: Committed, publisher: Peer) -> None:
    publish(publisher, b"1")
    lab.loop.turn()
    publish(publisher, b"2")
    lab.loop.turn()
    publish(publisher, b"3")
    assert lab.disk.commits == 2
    lab.end()
    assert confirmed(publisher) == (2, True)
    assert lab.bodies_on_disk == [b"1", b"2"]


def test_a_window_that_was_split_over_two_commits_grows_together(lab: Committed, publisher: Peer) -> None:
    publish(publisher, b"1", b"2")
    lab.begin()
    publish(publisher, b"3", b"4")
    lab.end()
    lab.loop.turn()
    lab.loop.turn()
    assert lab.disk.is_idle
    # The first half was confirmed, so the publisher goes on.
    publish(publisher, b"5", b"6")
    lab.begin()
    lab.end()
    assert lab.bodies_on_disk == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_a_publisher_that_does_not_go_on_delays_no_other_for_long(lab: Committed, publisher: Peer) -> None:
    publish(publisher, b"1")
    lab.begin()
    publish(publisher, b"2")
    lab.end()
    lab.loop.wait()
    lab.begin()
    lab.end()
    assert lab.bodies_on_disk == [b"1", b"2"]


def test_declarations_one_after_another_wait_for_no_publisher(lab: Committed, publisher: Peer) -> None:
    publish(publisher, b"1")
    lab.begin()
    lab.end()
    for queue in ("a", "b"):
        publisher.send(Queue.Declare(queue=queue, durable=True))
        lab.flush()
        lab.begin()
        lab.end()


def test_changes_that_no_client_waits_for_delay_no_publisher(lab: Committed, publisher: Peer) -> None:
    other = lab.connect()
    publish(other, b"1")
    lab.loop.wait()
    assert not lab.disk.is_idle
    publish(publisher, b"2")
    lab.end()
    lab.begin()


def test_messages_that_are_settled_at_once_are_confirmed_without_a_commit(
    lab: Committed, publisher: Peer, consumer: Peer
) -> None:
    commits = lab.disk.commits
    publish(publisher, b"2", b"3")
    publisher.expect_nothing()
    ack(consumer)
    assert confirmed(publisher) == (3, True)
    assert lab.disk.commits == commits
    lab.commit()
    assert lab.bodies_on_disk == []


def test_a_message_that_one_of_two_queues_still_has_is_confirmed_after_its_commit(
    lab: Committed, publisher: Peer, consumer: Peer
) -> None:
    publisher.declare("other", durable=True)
    for queue in ("other", "q"):
        publisher.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    lab.commit()
    publisher.publish(exchange="amq.fanout", message=b"both", delivery_mode=2)
    lab.flush()
    ack(consumer)
    publisher.expect_nothing()
    lab.commit()
    publisher.expect(Basic.Ack)
    assert lab.bodies_on_disk == [b"both"]


def test_removals_are_written_though_their_batch_was_passed_over(
    lab: Committed, publisher: Peer, consumer: Peer
) -> None:
    publish(publisher, b"2")
    # The consumer hesitates, so the message is written.
    lab.loop.wait()
    lab.begin()
    lab.end()
    assert publisher.expect(Basic.Ack).delivery_tag == 2
    assert lab.bodies_on_disk == [b"2"]
    publish(publisher, b"3")
    ack(consumer)
    assert publisher.expect(Basic.Ack).delivery_tag == 3
    lab.commit()
    assert lab.bodies_on_disk == []


def test_after_a_wait_in_vain_for_a_consumer_the_next_commits_do_not_wait(
    lab: Committed, publisher: Peer, consumer: Peer
) -> None:
    publish(publisher, b"slow")
    assert not lab.loop.ready
    lab.loop.wait()
    lab.begin()
    ack(consumer)
    lab.end()
    for number in range(WAITS_SKIPPED - 1):
        publish(publisher, b"%d" % number)
        lab.begin()
        ack(consumer)
        lab.end()
    publish(publisher, b"last")
    assert not lab.loop.ready


def test_a_transaction_is_never_answered_without_a_commit(lab: Committed, publisher: Peer, consumer: Peer) -> None:
    lab.commit()
    commits = lab.disk.commits
    other = lab.connect()
    other.call(Tx.Select())
    publish(other, b"2")
    other.send(Tx.Commit())
    lab.flush()
    ack(consumer)
    assert other.session.outbox.held_until
    lab.commit()
    assert not other.session.outbox.held_until
    assert lab.disk.commits > commits


def test_a_transaction_waits_for_no_consumer(lab: Committed, publisher: Peer, consumer: Peer) -> None:
    other = lab.connect()
    other.call(Tx.Select())
    publish(other, b"2")
    other.send(Tx.Commit())
    lab.flush()
    lab.begin()


def test_a_large_batch_waits_while_consumers_have_messages(lab: Committed, publisher: Peer) -> None:
    consumer = lab.connect()
    consumer.send(Basic.Qos(prefetch_count=1))
    consumer.expect(Basic.QosOk)
    consumer.consume("q")
    publish(publisher, *[bytes(LARGE_BATCH_BYTES // 4)] * 5)
    assert not lab.loop.ready
    lab.loop.wait()
    assert not lab.disk.is_idle


def test_a_delayed_commit_waits_once_more_for_consumers_and_writes_what_is_left(
    lab: Committed, publisher: Peer, consumer: Peer
) -> None:
    # This makes a commit due that no client waits for.
    other = lab.connect()
    publish(other, b"unconfirmed")
    publish(publisher, b"2")
    commits = lab.disk.commits
    lab.loop.delays()
    assert lab.disk.commits == commits
    ack(consumer)
    assert publisher.expect(Basic.Ack).delivery_tag == 2
    assert lab.disk.commits == commits + 1
    lab.end()
    assert lab.bodies_on_disk == []


def test_a_delayed_commit_waits_for_consumers_once_only(lab: Committed, publisher: Peer, consumer: Peer) -> None:
    publish(lab.connect(), b"1")
    commits = lab.disk.commits
    lab.loop.delays()
    assert lab.disk.commits == commits
    lab.loop.delays()
    assert lab.disk.commits == commits + 1


def test_a_batch_that_has_become_large_meanwhile_is_not_committed_at_once(
    lab: Committed, publisher: Peer, consumer: Peer
) -> None:
    publish(publisher, b"in vain")
    lab.loop.wait()
    lab.begin()
    ack(consumer)
    lab.end()
    commits = lab.disk.commits
    publish(publisher, b"small")
    lab.loop.turn()
    publish(publisher, bytes(LARGE_BATCH_BYTES))
    lab.loop.turn()
    assert lab.disk.commits == commits
    ack(consumer)
    assert confirmed(publisher) == (2, False)
    assert confirmed(publisher) == (4, True)
    assert lab.bodies_on_disk == [b"in vain"]


def test_a_failed_commit_is_tried_again_later(lab: Committed, publisher: Peer) -> None:
    publish(publisher, b"1")
    lab.begin()
    error = OSError("no space")
    lab.end(error)
    publisher.expect_nothing()
    assert lab.errors[-1] is error
    lab.loop.wait()
    lab.end()
    assert publisher.expect(Basic.Ack).delivery_tag == 1
    assert lab.bodies_on_disk == [b"1"]


def test_no_timer_is_left_after_the_end(lab: Committed, publisher: Peer, consumer: Peer) -> None:
    publish(publisher, b"1")
    other = lab.connect()
    publish(other, b"2")
    lab.committing.stop()
    commits = lab.disk.commits
    lab.loop.wait()
    assert lab.disk.commits == commits
