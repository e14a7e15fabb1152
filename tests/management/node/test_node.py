from __future__ import annotations

import pytest

from amqp_broker.management.node.node import Node
from tests.management.asking import StillNode

METHODS = sorted(Node.__abstractmethods__)


def test_a_node_must_implement_the_whole_interface() -> None:
    assert len(METHODS) > 20
    with pytest.raises(TypeError, match="abstract"):
        Node()  # type: ignore[abstract] # the point of the test


@pytest.mark.parametrize("name", ["now", "listeners", "memory_used", "disk_free", "descriptors", "flush"])
def test_the_node_of_the_tests_answers_each_method(name: str) -> None:
    assert name in METHODS
    getattr(StillNode(), name)()
