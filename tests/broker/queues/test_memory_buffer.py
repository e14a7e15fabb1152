from __future__ import annotations

from amqp_broker.broker.queues.memory_buffer import MemoryBuffer
from tests.broker_parts import new_message


def test_messages_leave_in_order_of_arrival() -> None:
    buffer = MemoryBuffer({})
    messages = [new_message(body) for body in (b"a", b"bb", b"ccc")]
    for position, message in zip((3, 8, 9), messages, strict=True):
        buffer.append(position, message, None)
    assert (len(buffer), buffer.ready_bytes, buffer.head_position()) == (3, 6, 3)
    assert list(buffer) == messages
    assert list(buffer.items()) == list(zip((3, 8, 9), messages, strict=True))
    assert [buffer.pop_head() for _ in range(3)] == list(zip((3, 8, 9), messages, strict=True))
    assert not buffer


def test_clearing_removes_the_deadlines_of_its_messages() -> None:
    deadlines = {1: 5}
    buffer = MemoryBuffer(deadlines)
    buffer.append(2, new_message(), 1000)
    buffer.append(3, new_message(), None)
    assert deadlines == {1: 5, 2: 1000}
    buffer.clear()
    assert (len(buffer), deadlines) == (0, {1: 5})
