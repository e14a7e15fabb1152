from __future__ import annotations

from tests.management.asking import Desk


def test_memory_has_each_category_of_rabbitmq() -> None:
    desk = Desk()
    status, value = desk.get(f"/api/nodes/{desk.broker.node}/memory")
    memory = value["memory"]
    used = desk.node.memory_used()
    # Typed clients demand all of them, with the strategy and the total.
    assert (status, len(memory), memory["quorum_ets"]) == (200, 28, 0)
    assert memory["metadata_store"] > 0
    assert sum(octets for name, octets in memory.items() if name not in ("strategy", "total")) == used
    assert memory["total"] == {"erlang": used, "rss": used, "allocated": used}


def test_memory_is_also_reported_in_per_cent() -> None:
    desk = Desk()
    memory = desk.get(f"/api/nodes/{desk.broker.node}/memory/relative")[1]["memory"]
    assert (len(memory), memory["total"], memory["other_proc"], memory["binary"]) == (27, 100, 99, 0)


def test_there_are_no_tables_of_erlang() -> None:
    desk = Desk()
    for path in ("ets", "ets/relative", "ets/management", "ets/management/relative"):
        assert desk.get(f"/api/nodes/{desk.broker.node}/memory/{path}") == (200, {"ets_tables_memory": "no_tables"})
    for path in ("memory", "memory/relative", "memory/ets"):
        assert desk.get(f"/api/nodes/x@y/{path}") == (404, "Not Found")
