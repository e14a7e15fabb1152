from __future__ import annotations

from amqp_broker.management.metrics import exposition
from amqp_broker.management.metrics.memory_metrics import CATEGORIES, NAMES
from amqp_broker.management.node.memory_use import OF_QUEUES
from tests.management.asking import Desk
from tests.management.metrics.test_exposition import body, request, value


def test_memory_is_broken_down_by_category() -> None:
    desk = Desk()
    text = body(exposition.get_memory_breakdown(request(desk)))
    exchanges = value(text, "rabbitmq_memory_modern_metadata_store_bytes")
    assert exchanges > 0
    assert value(text, "rabbitmq_memory_other_erlang_process_bytes") == desk.node.memory_used() - exchanges
    assert value(text, "rabbitmq_memory_binary_heap_bytes") == 0
    assert text.count(b"# TYPE rabbitmq_memory_") == 26


def test_each_category_of_the_node_has_a_metric() -> None:
    assert NAMES.keys() >= {*OF_QUEUES.values(), "queue_procs", "code", "other_proc"}
    assert set(NAMES.values()) <= CATEGORIES.keys()
