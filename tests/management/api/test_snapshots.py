from __future__ import annotations

from pamqp import commands

from tests.management.asking import NOW, Desk


def test_a_snapshot_is_saved_and_restored_over_http() -> None:
    desk = Desk()
    desk.lab.now = NOW
    peer = desk.lab.connect()
    peer.send(commands.Queue.Declare(queue="q", durable=True))
    peer.publish("q", b"\xff")
    status, snapshot = desk.get("/_broker/snapshot/%2F")
    assert status == 200
    assert desk.ask("PUT", "/_broker/snapshot/%2F", snapshot) == (
        412,
        "vhost '/' is not empty; clear=true deletes its contents first",
    )
    assert desk.ask("PUT", "/_broker/snapshot/%2F", snapshot, query={"clear": "true"})[0] == 204
    assert desk.ask("PUT", "/_broker/snapshot/copy", snapshot)[0] == 201
    assert desk.user.can_open("copy")
    assert [message.body for message in desk.broker.vhosts["copy"].queues["q"].messages()] == [b"\xff"]


def test_snapshots_require_an_administrator() -> None:
    desk = Desk()
    desk.be("monitoring", configure=".*", write=".*", read=".*")
    assert desk.get("/_broker/snapshot/%2F")[0] == 401


def test_an_invalid_snapshot_is_refused() -> None:
    desk = Desk()
    assert desk.ask("PUT", "/_broker/snapshot/%2F", b"{")[0] == 400
    assert desk.ask("PUT", "/_broker/snapshot/%2F", {"format": 1})[0] == 400


def test_a_snapshot_of_a_missing_vhost_is_not_found() -> None:
    assert Desk().get("/_broker/snapshot/none")[0] == 404
