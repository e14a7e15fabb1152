from __future__ import annotations

import http.client
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from amqp_broker.server import management
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from amqp_broker.settings import settings
from amqp_broker.settings.settings import Settings, SettingsError
from compat.brokers import free_port
from tests.client import Client
from tests.running import RunningServer


def test_a_broker_without_listeners_is_refused() -> None:
    with pytest.raises(SettingsError, match="served nowhere"):
        Server(Settings(tcp=False, ephemeral=True))


@pytest.mark.parametrize(("given", "level"), [("debug", logging.DEBUG), ("notice", logging.INFO), ("none", 50)])
def test_the_log_level_has_rabbitmqs_names(given: str, level: int) -> None:
    node, log = Server(Settings(ephemeral=True)).node, logging.getLogger("amqp_broker")
    try:
        node.set_log_level(given)
        assert log.level == level
        with pytest.raises(SettingsError, match="is not one of debug"):
            node.set_log_level("")
    finally:
        log.setLevel(logging.NOTSET)


def test_a_management_port_in_use_is_reported_and_all_listeners_are_closed() -> None:
    with RunningServer(management=True) as running:
        taken = running.server.ports["management"]
        with pytest.raises(CannotListen) as caught, RunningServer(management=True, management_port=taken):
            pass
        assert caught.value.port == taken
        Client(running.port).open().close()


def test_a_page_whose_usual_port_is_in_use_keeps_its_distance_from_amqp(monkeypatch: pytest.MonkeyPatch) -> None:
    with RunningServer(management=True) as running:
        taken, amqp, page = running.server.ports["management"], free_port(), free_port()
        monkeypatch.setattr(management, "MANAGEMENT_PORT", taken)
        monkeypatch.setattr(settings, "AMQP_PORT", amqp - page + taken)
        with RunningServer(management=True, port=amqp, management_port=None) as second:
            assert second.server.ports["management"] == page
        monkeypatch.setattr(settings, "AMQP_PORT", amqp)
        with pytest.raises(CannotListen), RunningServer(management=True, port=amqp, management_port=None):
            pass


def poll(running: RunningServer, target: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", running.server.ports["management"], timeout=30)
    connection.request("GET", target, headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
    response = connection.getresponse()
    value = json.loads(response.read())
    connection.close()
    return response.status, value


def test_a_long_poll_is_answered_by_the_message_that_it_waits_for() -> None:
    with RunningServer(management=True, event_log=True) as running, Client(running.port).open() as client:
        client.declare("q")
        with ThreadPoolExecutor() as threads:
            polled = threads.submit(poll, running, "/_broker/messages?queue=q&count=2&timeout_s=25")
            running.until(lambda server: [log.waits for log in server.broker.event_logs] != [[]])
            client.publish("q", b"1")
            client.publish("q", b"2")
            status, answer = polled.result()
            assert (status, [message["payload"] for message in answer["messages"]]) == (200, ["1", "2"])
            idle = threads.submit(poll, running, "/_broker/idle?timeout_s=25")
            running.until(lambda server: server.broker.queue_waits)
            client.consume("q", no_ack=True)
            assert idle.result() == (200, {"is_idle": True})
        assert running.ask(lambda server: ([r.waits for r in server.broker.event_logs], server.broker.queue_waits)) == (
            [[]],
            [],
        )


def test_a_long_poll_that_times_out_is_a_conflict_and_leaks_nothing() -> None:
    with RunningServer(management=True, event_log=True) as running:
        status, answer = poll(running, "/_broker/messages?count=1&timeout_s=0.05")
        assert (status, answer["error"]) == (409, "not_met")
        assert answer["reason"].startswith("1 wanted, 0 found")
        assert running.ask(lambda server: [log.waits for log in server.broker.event_logs]) == [[]]


def test_time_is_advanced_over_http_while_clients_are_connected() -> None:
    with RunningServer(management=True) as running, Client(running.port).open(heartbeat=10) as client:
        client.declare("q", arguments={"x-message-ttl": 60_000})
        client.publish("q", b"x")
        client.sync()
        connection = http.client.HTTPConnection("127.0.0.1", running.server.ports["management"], timeout=30)
        headers = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
        connection.request("POST", "/_broker/clock/advance", '{"duration": "1m"}', headers)
        told = json.loads(connection.getresponse().read())
        connection.close()
        assert abs(told["offset_ms"] - 60_000) < 5_000
        assert (told["is_frozen"], client.ready_count("q")) == (False, 0)
