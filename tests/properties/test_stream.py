"""Whatever happens to a stream, its offsets are dense and a reader sees each message that is there once, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.broker.stream_queue import StreamQueue
from tests.broker.test_stream_queue import Stream, offsets
from tests.taker import new_message

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
def test_what_is_committed_and_not_too_much_or_too_old_is_there(
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
    taker = stream.read(prefetch=10_000)
    while stream.broker.drain_on():
        pass
    assert offsets(taker) == list(range(log.first, safe))
    assert taker.bodies == told[log.first : safe]
    taker.stop()
    head = log.first_head()
    if head is not None:
        assert log.content_bytes <= bytes_max or log.next > safe, "more than one chunk, and too much"
    assert log.content_bytes == sum(len(new_message(body).content) for body in told[log.first :])
