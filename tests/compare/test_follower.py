from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.compare import follower
from compat.waiting import wait_until
from tests.client import Client
from tests.compare.proxy_run import RunningProxy
from tests.running import RunningServer


def test_deliveries_pause_while_the_local_broker_is_far_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "AHEAD_MAX", 50)
    with RunningServer() as upstream, RunningProxy(upstream) as proxy:
        slow = Client(proxy.port, receive_bytes=4096).open()
        slow.declare("q")
        slow.consume("q", no_ack=True)
        with Client(proxy.port).open() as client:
            for _ in range(200):
                client.publish("q", bytes(100_000))
            client.sync()
        proxy.until(lambda: any(link.follower.session.is_backpressured for link in proxy.proxy.links.values()))
        for _ in range(200):
            slow.expect_delivery()
        slow.sync()
        assert not any(link.follower.session.is_backpressured for link in proxy.proxy.links.values())
    assert proxy.found == []


def test_unsolicited_local_output_is_compared() -> None:
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


def test_a_connection_that_the_local_broker_closes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqp_broker.compare.connection_pair.PATIENCE_MS", 100)
    with RunningServer() as upstream, RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()

        def force(server: Any) -> None:
            for session in list(server.broker.connections):
                session.force_close("enough", server.clock.now())
            server.flush()

        proxy.ask(force)
        wait_until(lambda: proxy.report.differences)
        client.call(commands.Basic.Qos())
    ((said, local),) = proxy.found
    assert said == "nothing"
    assert local.startswith("connection.close reply_code=320")
