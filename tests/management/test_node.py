from __future__ import annotations

import pytest

from amqp_broker.management.node import Node
from tests.management.asking import StillNode

VERBS = [name for name in vars(Node) if not name.startswith("_")]


def test_a_node_alone_knows_nothing() -> None:
    with pytest.raises(NotImplementedError):
        Node().now()


@pytest.mark.parametrize("name", ["now", "listeners", "memory_used", "disk_free", "descriptors", "flush"])
def test_the_node_of_the_tests_tells_what_a_node_tells(name: str) -> None:
    assert name in VERBS
    getattr(StillNode(), name)()
