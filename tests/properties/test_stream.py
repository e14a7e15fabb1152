"""A stream's offsets are always dense, and a reader sees each message once, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.broker.queues.stream import StreamQueue
from tests.broker.queues.test_stream import Stream, offsets
from tests.broker_parts import new_message

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 2000)),
        st.tuples(st.just("commit"), st.just(0)),
        st.tuples(st.just("fail"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 700)),
        st.tuples(st.just("crash"), st.just(0)),
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(0, 5000), st.sampled_from([1, 300, 3000]))
def test_committed_messages_within_the_limits_are_there(
    actions: list[tuple[str, int]], bytes_max: int, segment_bytes: int
) -> None:
    stream = Stream(x_max_length_bytes=bytes_max, x_max_age="1s", x_stream_max_segment_size_bytes=segment_bytes)
    told: list[bytes] = []
    safe = 0
    for number, (action, value) in enumerate(actions):
        if action == "push":
            told.append(b"%d:" % number + b"x" * value)
            stream.queue.push(new_message(told[-1]))
        elif action == "commit":
            stream.commit()
            safe = len(told)
        elif action == "fail":
            stream.journal.take_batch()
            stream.journal.take_back()
        elif action == "wait":
            stream.broker.tick(stream.broker.now + value)
        else:
            now = stream.broker.now
            stream = stream.after_crash()
            stream.broker.now = now
            del told[safe:]
        check(stream, told, safe, bytes_max)


def check(stream: Stream, told: list[bytes], safe: int, bytes_max: int) -> None:
    queue: StreamQueue = stream.queue
    log = queue.log
    assert (log.committed, log.next) == (safe, len(told))
    assert queue.ready_count > 0 or not safe
    collector = stream.read(prefetch=10_000)
    while stream.broker.drain_on():
        pass
    assert offsets(collector) == list(range(log.first, safe))
    assert collector.bodies == told[log.first : safe]
    collector.stop()
    head = log.first_head()
    if head is not None:
        assert log.content_bytes <= bytes_max or log.next > safe, "more than one chunk, and too much"
    assert log.content_bytes == sum(len(new_message(body).with_delivery_mode().content) for body in told[log.first :])
