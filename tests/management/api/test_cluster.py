from __future__ import annotations

from tests.management.asking import Desk


def test_operations_on_clusters_do_nothing() -> None:
    desk = Desk()
    assert desk.ask("PUT", "/api/queues/%2F/q")[0] == 201
    assert desk.ask("DELETE", "/api/reset")[0] == 204
    assert desk.ask("DELETE", f"/api/reset/{desk.broker.node}")[0] == 204
    assert desk.ask("DELETE", "/api/reset/none") == (404, "Not Found")
    assert desk.ask("POST", "/api/rebalance/queues")[0] == 204
    assert list(desk.broker.vhosts["/"].queues) == ["q"]
