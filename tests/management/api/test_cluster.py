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


def test_a_reset_of_statistics_lets_samples_begin_anew() -> None:
    desk = Desk()
    desk.node.rates.start()
    peer = desk.lab.connect()
    peer.declare("q")
    for _ in range(6):
        peer.publish("q")
        desk.lab.advance(5000)
    desk.broker.now = desk.lab.now
    assert desk.ask("DELETE", "/api/reset")[0] == 204
    query = {
        f"{group}_{name}": count for group in ("msg_rates", "lengths") for name, count in (("age", "20"), ("incr", "5"))
    }
    for path in ("/api/queues/%2F/q", "/api/overview", "/api/vhosts/%2F"):
        row = desk.get(path, **query)[1]
        assert {one["sample"] for one in row["message_stats"]["publish_details"]["samples"]} == {6}
        assert row["message_stats"]["publish_details"]["rate"] == 0.0
        lengths = row.get("queue_totals", row)["messages_details"]["samples"]
        assert [one["sample"] for one in lengths] == [6, 0, 0, 0, 0]
