from __future__ import annotations

from pamqp import commands

from tests.management.asking import Desk


def test_the_report_of_a_vhost_has_lives_topology_and_clock() -> None:
    desk = Desk()
    desk.broker.event_logs.start(desk.broker.vhosts["/"])
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"body")
    status, report = desk.get("/_broker/report/%2F")
    assert (status, report["vhost"], report["lives"][0]["payload"]) == (200, "/", "body")
    assert [row["name"] for row in report["queues"]] == ["q"]
    assert report["clock"]["is_frozen"] is False


def test_only_an_administrator_gets_a_report() -> None:
    desk = Desk()
    desk.be("monitoring", configure=".*", write=".*", read=".*")
    assert desk.get("/_broker/report/%2F")[0] == 401


def test_a_missing_vhost_is_not_found() -> None:
    assert Desk().get("/_broker/report/none")[0] == 404
