from __future__ import annotations

from amqp_broker.management.metrics import exposition
from tests.management.asking import Desk
from tests.management.metrics.test_exposition import body, request, value


def test_memory_is_broken_down_by_category() -> None:
    desk = Desk()
    text = body(exposition.get_memory_breakdown(request(desk)))
    assert value(text, "rabbitmq_memory_other_erlang_process_bytes") == desk.node.memory_used()
    assert value(text, "rabbitmq_memory_binary_heap_bytes") == 0
    assert text.count(b"# TYPE rabbitmq_memory_") == 26
