from __future__ import annotations

from pamqp import commands

from tests.management.asking import Desk


def test_a_consumer_is_listed_with_its_queue_and_channel() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Basic.Consume(queue="q", consumer_tag="c", no_ack=True, arguments={"x-priority": 3}))
    (row,) = desk.get("/api/consumers")[1]
    details = row.pop("channel_details")
    assert row == {
        "ack_required": False,
        "active": True,
        "activity_status": "up",
        "arguments": {"x-priority": 3},
        "consumer_tag": "c",
        "exclusive": False,
        "prefetch_count": 0,
        "consumer_timeout": 1_800_000,
        "queue": {"name": "q", "vhost": "/"},
    }
    assert (details["number"], details["user"], details["peer_host"]) == (1, "guest", "127.0.0.1")
    assert len(desk.get("/api/consumers/%2F")[1]) == 1
    assert desk.get("/api/consumers/nope") == (404, "Not Found")
    desk.be("management", configure="", write="", read="")
    assert desk.get("/api/consumers") == (200, [])
