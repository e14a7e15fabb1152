from __future__ import annotations

from typing import Any

import pytest

from tests.management.asking import Desk

QUORUM = "/api/queues/quorum"
ON_NODE = f"{QUORUM}/replicas/on"


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.ask("PUT", "/api/queues/%2F/q", {})
    desk.ask("PUT", "/api/queues/%2F/qq", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    return desk


def test_the_one_replica_of_a_quorum_queue_leads(desk: Desk) -> None:
    status, (replica,) = desk.get(f"{QUORUM}/%2F/qq/status")
    assert (status, replica["Node Name"], replica["Raft State"]) == (200, desk.broker.node, "leader")


def test_other_queues_have_no_replicas(desk: Desk) -> None:
    assert desk.get(f"{QUORUM}/%2F/none/status") == (404, "Not Found")
    assert desk.get(f"{QUORUM}/%2F/q/status") == (503, {"status": "failed", "reason": "classic_queue_not_supported"})
    body = {"node": desk.broker.node}
    for method, task in (("POST", "add"), ("DELETE", "delete")):
        assert desk.ask(method, f"{QUORUM}/%2F/q/replicas/{task}", body) == (503, "classic_queue_not_supported")
        assert desk.ask(method, f"{QUORUM}/%2F/none/replicas/{task}", body) == (503, "not_found")


def test_a_replica_on_this_node_can_be_added_but_not_deleted(desk: Desk) -> None:
    body = {"node": desk.broker.node}
    assert desk.ask("POST", f"{QUORUM}/%2F/qq/replicas/add", body) == (204, None)
    assert desk.ask("DELETE", f"{QUORUM}/%2F/qq/replicas/delete", body) == (503, "last_node")


@pytest.mark.parametrize(
    ("body", "reason"), [({"node": "x@y"}, "Node is not a cluster member"), ({}, "[{key_missing,node}]")]
)
def test_no_other_node_has_replicas(desk: Desk, body: dict[str, Any], reason: str) -> None:
    for method, task in (("POST", "add"), ("DELETE", "delete")):
        assert desk.ask(method, f"{QUORUM}/%2F/qq/replicas/{task}", body) == (400, reason)


def test_growing_and_shrinking_change_nothing_on_one_node(desk: Desk) -> None:
    body = {"vhost_pattern": ".*", "queue_pattern": ".*", "strategy": "all"}
    assert desk.ask("POST", f"{ON_NODE}/{desk.broker.node}/grow", body) == (204, None)
    assert desk.ask("DELETE", f"{ON_NODE}/{desk.broker.node}/shrink") == (202, None)
    assert desk.ask("POST", f"{ON_NODE}/x@y/grow", body) == (404, "Not Found")
    assert desk.ask("DELETE", f"{ON_NODE}/x@y/shrink") == (404, "Not Found")
    assert "qq" in desk.broker.vhosts["/"].queues


def test_growing_requires_all_patterns(desk: Desk) -> None:
    status, reason = desk.ask("POST", f"{ON_NODE}/{desk.broker.node}/grow", {"strategy": "all"})
    assert (status, reason) == (400, "[{key_missing,vhost_pattern},{key_missing,queue_pattern}]")
