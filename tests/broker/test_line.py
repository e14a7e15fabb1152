from __future__ import annotations

from amqp_broker.broker.line import Line
from tests.taker import new_message, new_queue


def test_messages_leave_in_the_order_in_which_they_came() -> None:
    line = Line(new_queue())
    messages = [new_message(body) for body in (b"a", b"bb", b"ccc")]
    for position, message in zip((3, 8, 9), messages, strict=True):
        line.append(position, message, None)
    assert (len(line), line.ready_bytes, line.head_position()) == (3, 6, 3)
    assert list(line) == messages
    assert list(line.items()) == list(zip((3, 8, 9), messages, strict=True))
    assert [line.popleft() for _ in range(3)] == list(zip((3, 8, 9), messages, strict=True))
    assert not line


def test_deadlines_are_its_queues_and_go_when_it_is_cleared() -> None:
    queue = new_queue()
    line = Line(queue)
    queue.deadlines[1] = 5
    line.append(2, new_message(), 1000)
    line.append(3, new_message(), None)
    assert queue.deadlines == {1: 5, 2: 1000}
    line.clear()
    assert (len(line), queue.deadlines) == (0, {1: 5})
