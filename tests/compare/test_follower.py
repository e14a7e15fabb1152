from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.compare import follower
from compat.waiting import wait_until
from tests.client import Client
from tests.compare.running import RunningProxy
from tests.running import RunningServer


def test_ours_delivers_no_more_while_it_is_far_ahead_and_goes_on_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "AHEAD_MAX", 50)
    with RunningServer() as upstream, RunningProxy(upstream) as proxy:
        slow = Client(proxy.port, receive_bytes=4096).open()
        slow.declare("q")
        slow.consume("q", no_ack=True)
        with Client(proxy.port).open() as client:
            for _ in range(200):
                client.publish("q", bytes(100_000))
            client.sync()
        proxy.until(lambda: any(link.follower.session.is_paused for link in proxy.proxy.links.values()))
        for _ in range(200):
            slow.expect_delivery()
        slow.sync()
        assert not any(link.follower.session.is_paused for link in proxy.proxy.links.values())
    assert proxy.found == []


def test_what_ours_does_unasked_is_heard() -> None:
    with RunningServer() as upstream, RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        arguments: dict[str, Any] = {
            "x-message-ttl": 50,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "late",
        }
        client.declare("q", arguments=arguments)
        client.declare("late")
        client.consume("late", no_ack=True)
        client.publish("q", b"m")
        client.expect_delivery()
        wait_until(lambda: proxy.report.compared_count >= 6)
    assert proxy.found == []


def test_a_connection_that_ours_forces_shut_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqp_broker.compare.connection.PATIENCE_MS", 100)
    with RunningServer() as upstream, RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()

        def force(server: Any) -> None:
            for session in list(server.broker.connections):
                session.force_close("enough", server.clock.now())
            server.flush()

        proxy.ask(force)
        wait_until(lambda: proxy.report.differences)
        client.call(commands.Basic.Qos())
    ((said, ours),) = proxy.found
    assert said == "nothing"
    assert ours.startswith("connection.close reply_code=320")
