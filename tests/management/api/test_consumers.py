from __future__ import annotations

from pamqp import commands

from tests.management.asking import Desk
from tests.stepping import counted


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


def test_consumers_are_listed_in_steps_without_those_that_leave_meanwhile() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    for queue in ("q", "other"):
        peer.declare(queue)
    for tag in ("a", "b", "c"):
        peer.consume("q", tag)
    peer.consume("other", "d")
    changes = {
        1: lambda: peer.call(commands.Basic.Cancel(consumer_tag="c")),
        2: lambda: peer.call(commands.Queue.Delete(queue="other")),
    }
    steps, rows = counted(desk.steps("GET", "/api/consumers"), changes)
    assert [row["consumer_tag"] for row in rows] == ["a", "b"]
    # One for each consumer of a queue and one for each queue.
    assert steps == 5


def test_a_queue_is_shown_in_a_step_for_each_consumer() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.declare("q")
    for number in range(20):
        peer.consume("q", f"c{number}")
    steps, row = counted(desk.steps("GET", "/api/queues/%2F/q"))
    assert len(row["consumer_details"]) == 20
    assert steps >= 20
