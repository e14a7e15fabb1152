from __future__ import annotations

import socket

import pytest

from tests.client import Client
from tests.running import RunningServer


def go(running: RunningServer, verb: str, state: str) -> None:
    running.ask(lambda server: getattr(server.node, verb)())
    running.until(lambda server: server.node.state == state)


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_stopped_app_has_no_clients_and_no_ports_until_it_starts() -> None:
    with RunningServer(management=True) as running:
        ports = dict(running.server.ports)
        client = Client(running.port).open()
        go(running, "stop_app", "stopped")
        assert not running.server.transports
        assert [is_open(port) for port in ports.values()] == [False, False]
        assert running.server.node.listeners() == []
        client.close()
        go(running, "start_app", "running")
        assert running.server.ports == ports
        assert [is_open(port) for port in ports.values()] == [True, True]
        Client(running.port).open().close()


def test_suspended_listeners_refuse_new_clients_and_keep_old_ones() -> None:
    with RunningServer() as running:
        client = Client(running.port).open()
        go(running, "suspend_listeners", "suspended")
        assert not is_open(running.port)
        assert len(running.server.transports) == 1
        go(running, "resume_listeners", "running")
        assert is_open(running.port)
        client.close()


def test_requests_run_in_order_and_repeated_requests_run_once() -> None:
    with RunningServer() as running:

        def hurry(server: object) -> None:
            for verb in ("stop_app", "start_app", "stop_app", "stop_app", "start_app", "suspend_listeners"):
                getattr(running.server.node, verb)()

        running.ask(hurry)
        # The state is "running" before the first request as well.
        running.until(lambda server: server.node.state == "suspended")
        go(running, "resume_listeners", "running")
        Client(running.port).open().close()


def test_a_port_taken_during_a_pause_is_reported() -> None:
    with RunningServer() as running:
        go(running, "stop_app", "stopped")
        with socket.create_server(("127.0.0.1", running.port)):
            running.ask(lambda server: server.node.start_app())
            running.until(lambda server: server.node.problem != "")
            assert running.server.node.state == "stopped"
        go(running, "start_app", "running")


def test_a_failed_request_is_reported_and_does_not_affect_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise RuntimeError("the socket is lost")

    with RunningServer() as running:
        with monkeypatch.context() as patch:
            patch.setattr(running.server, "disconnect", fail)
            running.ask(lambda server: server.node.stop_app())
            running.until(lambda server: server.node.problem == "the socket is lost")
        go(running, "stop_app", "stopped")
        go(running, "start_app", "running")
        assert is_open(running.port)


@pytest.mark.parametrize("verb", ["stop_app", "suspend_listeners"])
def test_a_paused_server_can_be_stopped(verb: str) -> None:
    with RunningServer(management=True) as running:
        go(running, verb, "stopped" if verb == "stop_app" else "suspended")
