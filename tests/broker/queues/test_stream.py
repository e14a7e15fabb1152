"""Streams by their methods; test_stream_sessions.py tests what clients see."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import NotImplemented_, PreconditionFailed
from amqp_broker.amqp.message import Message
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.operations import restoring
from amqp_broker.broker.queues.stream import NEAR, StreamQueue, filter_of
from tests.broker_parts import CollectingConsumer, new_broker, new_message, new_queue
from tests.memory_journal import MemoryJournal

DAY_MS = 86_400_000


class Stream:
    """A stream, and the journal that it is in."""

    def __init__(self, journal: MemoryJournal | None = None, **arguments: Any) -> None:
        self.journal = journal or MemoryJournal()
        self.broker = new_broker(self.journal)
        given = {name.replace("_", "-"): value for name, value in arguments.items()}
        queue = new_queue(self.broker.vhosts["/"], is_durable=True, arguments={"x-queue-type": "stream", **given})
        assert isinstance(queue, StreamQueue)
        self.queue = queue
        self.commit()

    def commit(self) -> None:
        self.journal.commit()
        self.broker.on_committed()

    def put(self, *bodies: bytes, **properties: Any) -> None:
        """Each is a chunk of its own."""
        for body in bodies:
            self.queue.push(new_message(body, **properties))
            self.commit()

    def read(self, offset: Any = "first", prefetch: int = 1000, **arguments: Any) -> CollectingConsumer:
        """A reader that has subscribed; None is no x-stream-offset."""
        collector = CollectingConsumer(self.queue, prefetch=prefetch)
        collector.arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
        if offset is not None:
            collector.arguments["x-stream-offset"] = offset
        return collector.start()

    def after_crash(self) -> Stream:
        """The stream as a restart finds it."""
        again = Stream.__new__(Stream)
        again.journal = MemoryJournal(self.journal.disk)
        again.broker = Broker(self.broker.settings, self.broker.entropy, again.journal)
        again.journal.is_restoring = True
        assert restoring.restore(again.broker, again.journal.definitions_of)
        again.journal.is_restoring = False
        queue = again.broker.vhosts["/"].queues["q"]
        assert isinstance(queue, StreamQueue)
        again.queue = queue
        return again


def offset_of(message: Message) -> int:
    headers = message.properties().headers
    assert headers is not None
    return int(headers["x-stream-offset"])


def offsets(collector: CollectingConsumer) -> list[int]:
    return [offset_of(delivery.message) for delivery in collector.taken]


# Where readers begin


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("first", [0, 1, 2, 3]),
        ("last", [2, 3]),
        ("next", [3]),
        (None, [3]),
        (b"first", [0, 1, 2, 3]),
        (0, [0, 1, 2, 3]),
        (2, [2, 3]),
        (-1, [0, 1, 2, 3]),
        (fields.Long(3), [3]),
        (4, []),
        (fields.Timestamp(0), [0, 1, 2, 3]),
        (fields.Timestamp(1), [1, 2, 3]),
        (fields.Timestamp(2), [2, 3]),
        (fields.Timestamp(99), [3]),
        ("1s", [2, 3]),
        ("2s", [1, 2, 3]),
        ("7D", [0, 1, 2, 3]),
    ],
)
def test_a_reader_begins_at_its_offset(offset: Any, expected: list[int]) -> None:
    for stream in (Stream(), in_memory()):
        for now_ms in (0, 1001, 2001):
            stream.broker.now = now_ms
            stream.put(b"x")
        stream.broker.now = 3000
        collector = stream.read(offset)
        stream.put(b"3")
        assert offsets(collector) == expected


def in_memory() -> Stream:
    """A stream of a broker that keeps nothing."""
    stream = Stream.__new__(Stream)
    stream.broker = new_broker()
    queue = new_queue(stream.broker.vhosts["/"], is_durable=True, arguments={"x-queue-type": "stream"})
    assert isinstance(queue, StreamQueue)
    stream.queue = queue
    stream.commit = lambda: None  # type: ignore[method-assign] # there is nothing to commit
    return stream


def test_a_reader_at_the_last_chunk_gets_the_whole_chunk() -> None:
    stream = Stream()
    stream.put(b"a")
    stream.queue.push(new_message(b"b"))
    stream.queue.push(new_message(b"c"))
    stream.commit()
    assert stream.read("last").bodies == [b"b", b"c"]
    assert stream.read(2).bodies == [b"c"]


def test_readers_get_messages_only_after_their_commit() -> None:
    stream = Stream()
    collector = stream.read()
    stream.queue.push(new_message(b"a"))
    assert collector.bodies == []
    assert stream.queue.ready_count == 0
    stream.commit()
    assert collector.bodies == [b"a"]
    assert stream.queue.ready_count == 1


def test_readers_are_independent() -> None:
    stream = Stream()
    stream.put(b"a", b"b", b"c")
    slow, fast, late = stream.read(prefetch=1), stream.read(), stream.read("next")
    stream.put(b"d")
    assert (slow.bodies, fast.bodies, late.bodies) == ([b"a"], [b"a", b"b", b"c", b"d"], [b"d"])
    slow.ack()
    assert slow.bodies == [b"a", b"b"]


def test_chunks_are_kept_in_memory_until_the_last_of_the_readers_nearby_has_them() -> None:
    stream = Stream()
    stream.put(b"a", b"b", b"c")
    cache = stream.journal.chunk_cache
    slow = stream.read(prefetch=1)
    assert len(cache) == 0
    stream.read()
    assert len(cache) == 2
    slow.ack()
    slow.ack()
    assert (slow.bodies, len(cache)) == ([b"a", b"b", b"c"], 0)


def test_chunks_are_not_kept_for_readers_far_behind() -> None:
    stream = Stream()
    for _ in range(NEAR + 10):
        stream.queue.push(new_message())
    stream.commit()
    stream.put(b"last")
    stream.read(prefetch=1)
    assert stream.read("last").bodies == [b"last"]
    assert len(stream.journal.chunk_cache) == 0


def test_deliveries_are_not_redelivered_and_keep_their_address() -> None:
    stream = Stream()
    stream.put(b"a")
    for _ in range(2):
        collector = stream.read()
        assert [(delivery.redelivered, delivery.message.routing_key) for delivery in collector.taken] == [(False, "q")]
        collector.give_back()
        collector.stop()


@pytest.mark.parametrize("settle", [lambda collector: collector.ack(), lambda collector: collector.give_back(0)])
def test_settling_a_message_makes_room_for_the_next(settle: Any) -> None:
    stream = Stream()
    stream.put(b"a", b"b", b"c")
    collector = stream.read(prefetch=1)
    settle(collector)
    assert collector.bodies == [b"a", b"b"]
    assert (stream.queue.unacked_count, stream.queue.ready_count) == (1, 3)


def test_a_rejected_message_stays_in_the_stream() -> None:
    stream = Stream()
    stream.put(b"a")
    collector = stream.read()
    stream.queue.reject(0, collector.held.pop().message)
    assert (stream.queue.unacked_count, stream.read().bodies) == (0, [b"a"])


def test_an_unsubscribed_reader_gets_no_messages() -> None:
    stream = Stream()
    collector = stream.read()
    collector.stop()
    stream.put(b"a")
    assert collector.bodies == []
    assert stream.queue.readers == {}


def test_a_stream_takes_no_exclusive_consumer() -> None:
    stream = Stream()
    for _ in range(2):
        collector = CollectingConsumer(stream.queue, is_exclusive=True, prefetch=1).start()
        stream.put(b"a")
        assert collector.bodies == [b"a"]


def test_large_amounts_are_delivered_in_batches() -> None:
    stream = Stream()
    for _ in range(40):
        stream.queue.push(new_message(b"x" * 20_000))
    stream.commit()
    collector = stream.read()
    assert 0 < len(collector.taken) < 20
    while stream.broker.drain_on():
        pass
    assert offsets(collector) == list(range(40))


def test_a_suspended_reader_continues_at_its_offset() -> None:
    stream = Stream()
    collector = stream.read()
    stream.put(b"a")
    stream.queue.rotation.suspend(collector)
    stream.put(b"b", b"c")
    assert collector.bodies == [b"a"]
    stream.queue.resume(collector)
    assert offsets(collector) == [0, 1, 2]


# Filters


def test_a_reader_gets_the_messages_that_match_its_filter() -> None:
    stream = Stream()
    for value in ("a", "b", None, "a", "c"):
        stream.put(b"", headers=None if value is None else {"x-stream-filter-value": value})
    assert offsets(stream.read(x_stream_filter="a")) == [0, 3]
    assert offsets(stream.read(x_stream_filter=["a", "c", 5])) == [0, 3, 4]
    assert offsets(stream.read(x_stream_filter=["b"], x_stream_match_unfiltered=True)) == [1, 2]
    assert offsets(stream.read(x_stream_match_unfiltered=True)) == [0, 1, 2, 3, 4]


def test_messages_of_one_chunk_are_filtered_one_by_one() -> None:
    stream = Stream()
    for value in "abab":
        stream.queue.push(new_message(headers={"x-stream-filter-value": value}))
    stream.commit()
    assert offsets(stream.read(x_stream_filter="b")) == [1, 3]


def test_a_chunk_without_a_match_is_not_read() -> None:
    stream = Stream()
    for _ in range(10):
        stream.put(b"", headers={"x-stream-filter-value": "a"})
    # Chunks that another one reads are kept for this reader.
    stream.read(prefetch=1)
    assert offsets(stream.read(x_stream_filter="b")) == []
    assert stream.journal.chunk_cache.bytes == 0
    assert len(offsets(stream.read(x_stream_filter="a"))) == 10
    assert stream.journal.chunk_cache.bytes > 0


def test_a_long_search_for_a_match_is_made_in_batches() -> None:
    stream = Stream()
    for _ in range(300):
        stream.put(b"", headers={"x-stream-filter-value": "a"})
    stream.put(b"", headers={"x-stream-filter-value": "b"})
    collector = stream.read(x_stream_filter="b")
    assert len(stream.broker.undrained) == 1
    while stream.broker.drain_on():
        pass
    assert offsets(collector) == [300]


def test_a_filter_is_a_string_or_a_list_of_them() -> None:
    assert filter_of({}) is None
    assert filter_of({"x-stream-filter": 5}) is None
    assert filter_of({"x-stream-filter": "a"}) == (frozenset("a"), False)
    assert filter_of({"x-stream-filter": [], "x-stream-match-unfiltered": True}) == (frozenset(), True)


# Retention


def test_a_stream_drops_its_first_chunks_beyond_its_limit_in_bytes() -> None:
    size = len(new_message(b"0").with_delivery_mode().content)
    stream = Stream(x_max_length_bytes=3 * size)
    stream.put(*(str(number).encode() for number in range(10)))
    assert (stream.queue.log.first, stream.queue.ready_count) == (7, 3)
    assert offsets(stream.read()) == [7, 8, 9]
    assert offsets(stream.read(2)) == [7, 8, 9]
    stream.commit()
    assert len(stream.journal.disk.chunks) == 3


def test_the_newest_chunk_stays_however_large_it_is() -> None:
    stream = Stream(x_max_length_bytes=0)
    stream.put(b"a", b"b")
    assert offsets(stream.read()) == [1]


def test_a_stream_drops_messages_when_they_reach_the_maximum_age() -> None:
    stream = Stream(x_max_age="1D")
    for number in range(3):
        stream.broker.tick(number * 1000)
        stream.put(b"")
    stream.broker.tick(DAY_MS - 1)
    assert stream.queue.ready_count == 3
    stream.broker.tick(DAY_MS)
    assert stream.queue.ready_count == 2
    stream.broker.tick(DAY_MS * 10)
    assert (stream.queue.log.first, stream.queue.ready_count) == (2, 1)


def test_a_reader_behind_the_first_offset_continues_there() -> None:
    stream = Stream(x_max_length_bytes=0)
    stream.put(b"a")
    collector = stream.read(prefetch=1)
    stream.put(b"b", b"c", b"d")
    collector.ack()
    assert offsets(collector) == [0, 3]


def test_a_segment_size_makes_chunks_smaller() -> None:
    stream = Stream(x_max_length_bytes=1, x_stream_max_segment_size_bytes=1)
    for body in (b"a", b"b"):
        stream.queue.push(new_message(body))
    stream.commit()
    assert stream.queue.ready_count == 1


def test_a_policy_overrides_the_argument() -> None:
    stream = Stream(x_max_length_bytes=0)
    vhost = stream.broker.vhosts["/"]
    vhost.policies.set(Policy("p", "", {"max-length-bytes": 1_000_000}, apply_to="streams"))
    stream.put(b"a", b"b")
    assert stream.queue.ready_count == 2
    vhost.policies.set(Policy("p", "", {"max-age": "1h"}, apply_to="streams"))
    assert stream.queue.ready_count == 1, "the argument counts again"
    stream.put(b"c", b"d")
    assert stream.queue.settings.age_max_ms == 3_600_000


# Unsupported operations


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        ("pull", "basic.get not supported by stream queues queue 'q' in vhost '/'"),
        ("purge", "queue.purge not supported by stream queues queue 'q' in vhost '/'"),
    ],
)
def test_pulling_from_and_purging_a_stream_are_refused(verb: str, text: str) -> None:
    with pytest.raises(NotImplemented_) as caught:
        getattr(Stream().queue, verb)()
    assert str(caught.value) == text


def test_a_reader_must_have_a_prefetch_and_acks() -> None:
    queue = Stream().queue
    with pytest.raises(PreconditionFailed, match="consumer prefetch count is not set for stream queue 'q' in vhost"):
        queue.check_consumer(0, no_ack=True)
    with pytest.raises(NotImplemented_, match="automatic acknowledgement not supported by stream queue 'q' in vhost"):
        queue.check_consumer(1, no_ack=True)


def test_messages_to_a_stream_do_not_expire() -> None:
    stream = Stream()
    assert stream.queue.offer(new_message(b"a"))
    stream.queue.push_with_extras(new_message(b"b"), expiration_ms=0)
    stream.commit()
    stream.broker.tick(DAY_MS)
    assert stream.read().bodies == [b"a", b"b"]


def test_a_stream_is_deleted_with_its_messages_and_readers() -> None:
    stream = Stream(x_max_age="1h")
    stream.put(b"a", b"b")
    collector = stream.read()
    stream.queue.check_deletable(if_unused=True, if_empty=True)
    stream.broker.vhosts["/"].remove_queue(stream.queue)
    stream.commit()
    assert collector.has_lost_queue
    assert (stream.journal.disk.chunks, stream.journal.disk.states) == ({}, {})
    stream.broker.tick(DAY_MS)


# Restarts


def test_a_reader_gets_all_committed_messages_after_a_crash() -> None:
    stream = Stream(x_max_age="1D")
    stream.put(b"a", b"b", delivery_mode=1)
    stream.queue.push(new_message(b"never committed"))
    again = stream.after_crash()
    assert again.queue.ready_count == 2
    assert again.read(1).bodies == [b"b"]
    again.put(b"c")
    assert offsets(again.read()) == [0, 1, 2]
    again.broker.tick(DAY_MS * 2)
    assert again.queue.ready_count == 1


def test_offsets_are_never_reused() -> None:
    stream = Stream(x_max_length_bytes=0)
    stream.put(b"a", b"b", b"c")
    stream.commit()
    again = stream.after_crash()
    again.put(b"d")
    assert offsets(again.read()) == [3]


def test_a_delivery_may_cause_further_publishes() -> None:
    """A trace of deliveries may go to the stream that is read."""
    stream = in_memory()
    vhost = stream.broker.vhosts["/"]
    vhost.bind(vhost.exchange("amq.rabbitmq.trace"), stream.queue, "deliver.#", {})
    vhost.tracing.start()
    stream.put(b"a", b"b")
    collector = stream.read()
    while stream.broker.drain_on():
        pass
    assert offsets(collector) == list(range(stream.queue.ready_count))
    assert stream.queue.ready_count == 4
