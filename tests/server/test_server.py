from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings
from amqp_broker.store.environment import StoreInaccessible
from compat.brokers import free_port
from compat.waiting import wait_until
from tests.client import PROTOCOL_HEADER, Client
from tests.running import RunningServer
from tests.server.addresses import accepts, needs_ipv6
from tests.server.stalling import BODY_BYTES, MESSAGES, stalled_consumer

NewLoop = Callable[[], asyncio.AbstractEventLoop]

SHUTDOWN = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"


# Starting


def test_a_started_server_accepts_clients_on_its_reported_port(running: RunningServer) -> None:
    assert running.server.ports.keys() == {"amqp"}
    assert accepts("127.0.0.1", running.port)


@needs_ipv6
def test_every_listener_serves(new_loop: NewLoop) -> None:
    with RunningServer(new_loop, host="::") as running:
        for host in ("127.0.0.1", "::1"):
            Client(running.port, host).open().close()


def test_additional_listeners_serve_clients(new_loop: NewLoop) -> None:
    port = free_port()
    with RunningServer(new_loop, extra_listeners=f"127.0.0.1:{port}") as running:
        for number in (running.port, port):
            Client(number).open().close()


def test_if_one_listener_fails_none_is_open(new_loop: NewLoop) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        further = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen, match="in use"), RunningServer(new_loop, port=port, extra_listeners=further):
            pass
    assert not accepts("127.0.0.1", port)


def test_the_ports_file_exists_once_clients_are_served(new_loop: NewLoop, tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    with RunningServer(new_loop, ports_file=str(path)) as running:
        assert json.loads(path.read_text("utf-8")) == running.server.ports
    assert not path.exists()


def test_a_default_folder_that_cannot_be_created_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path / "file" / "share" / "amqp-broker")
    with pytest.raises(StoreInaccessible) as caught:
        Server(Settings(management=False))
    assert f"'{tmp_path / 'file' / 'share'}' cannot be created: Not a directory; " in str(caught.value)
    assert "--data-dir" in str(caught.value)
    assert "--ephemeral" in str(caught.value)


def test_a_server_that_cannot_write_its_ports_file_closes_its_listeners(new_loop: NewLoop, tmp_path: Path) -> None:
    port = free_port()
    running = RunningServer(new_loop, port=port, ports_file=str(tmp_path / "missing" / "ports.json"))
    with pytest.raises(FileNotFoundError), running:
        pass
    wait_until(lambda: not accepts("127.0.0.1", port))


def test_a_port_in_use_is_reported(running: RunningServer, new_loop: NewLoop) -> None:
    with pytest.raises(CannotListen) as caught, RunningServer(new_loop, port=running.port):
        pass
    assert (caught.value.port, caught.value.error.errno) == (running.port, errno.EADDRINUSE)
    Client(running.port).open().close()


# Time


def test_an_unfinished_handshake_ends_in_time(new_loop: NewLoop) -> None:
    with RunningServer(new_loop, handshake_timeout_ms=50) as running:
        silent, begun, logged_in = Client(running.port), Client(running.port), Client(running.port)
        begun.send_bytes(PROTOCOL_HEADER)
        begun.expect(commands.Connection.Start, channel=0)
        logged_in.log_in()
        for client in (silent, begun, logged_in):
            assert client.expect_end() == b""
        running.until(lambda server: not server.transports)


def test_an_earlier_deadline_moves_the_timer(new_loop: NewLoop) -> None:
    # The first deadline is an hour away; the heartbeats are set later and due earlier.
    with RunningServer(new_loop, handshake_timeout_ms=3_600_000) as running:
        waiting = Client(running.port)
        with Client(running.port).open(heartbeat=1) as client:
            assert client.socket.recv(100)[:1] == b"\x08"
        waiting.close()


def test_the_handshake_timeout_follows_real_time(running: RunningServer, client: Client) -> None:
    with Client(running.port) as silent:
        running.until(lambda server: len(server.transports) == 2)
        running.live_through(running.settings.handshake_timeout_ms - 5000)
        assert running.ask(lambda server: len(server.transports)) == 2
        running.live_through(5000)
        assert silent.expect_end() == b""
    client.sync()


# Stopping


def stop(running: RunningServer) -> None:
    running.stop()
    assert not accepts("127.0.0.1", running.port)


def test_a_shutdown_closes_connections_with_320(running: RunningServer) -> None:
    clients = [Client(running.port).open() for _ in range(3)]

    def answer(client: Client) -> None:
        close = client.expect(commands.Connection.Close, channel=0)
        assert (close.reply_code, close.reply_text, close.class_id, close.method_id) == (320, SHUTDOWN, 0, 0)
        client.send(commands.Connection.CloseOk(), channel=0)
        assert client.expect_end() == b""

    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(answer, client) for client in clients]
        stop(running)
        for each in answers:
            each.result()


def test_a_shutdown_does_not_wait_for_clients_that_do_not_answer(running: RunningServer, client: Client) -> None:
    stop(running)
    close = client.expect(commands.Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (320, SHUTDOWN)
    assert client.expect_end() == b""


def test_a_shutdown_drops_clients_that_have_not_logged_in(running: RunningServer) -> None:
    silent, begun, logged_in = Client(running.port), Client(running.port), Client(running.port)
    begun.send_bytes(PROTOCOL_HEADER)
    begun.expect(commands.Connection.Start, channel=0)
    logged_in.log_in()
    running.until(lambda server: len(server.transports) == 3)
    stop(running)
    for client in (silent, begun, logged_in):
        assert client.expect_end() == b""


def test_a_shutdown_does_not_wait_for_a_full_socket(running: RunningServer, client: Client) -> None:
    stalled = stalled_consumer(running, client, "q")
    stop(running)
    assert len(stalled.expect_end()) < MESSAGES * BODY_BYTES


def test_a_shutdown_ends_connections_that_are_closing(running: RunningServer, client: Client) -> None:
    client.send_bytes(b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert client.expect(commands.Connection.Close, channel=0).reply_code == 501
    stop(running)
    assert client.expect_end() == b""


def test_a_server_without_clients_stops(running: RunningServer) -> None:
    stop(running)


def test_a_pattern_that_takes_too_long_is_logged_once(running: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    pattern = f"^(a|aa|{running.port})+$"  # a pattern that was not tried before
    running.ask(lambda server: server.broker.vhosts["/"].policies.set(Policy("p", pattern, {"max-length": 1})))
    with Client(running.port).open() as client:
        for number in range(3):
            client.declare("a" * 60 + f"-{number}")
    told = [record for record in caplog.records if record.levelname == "WARNING" and pattern in record.getMessage()]
    assert [record.name for record in told] == ["amqp_broker.server"]


# Logins from other machines


def warnings(caplog: pytest.LogCaptureFixture, **settings: Any) -> list[str]:
    caplog.clear()
    with RunningServer(**settings):
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_remote_guest_with_the_default_password_logs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    [warning] = warnings(caplog, host="0.0.0.0", remote_guest=True)
    assert "can log in as guest with the password guest" in warning
    assert warning.endswith("or leave out --remote-guest")
    [warning] = warnings(caplog, host="0.0.0.0", loopback_users="")
    assert warning.endswith("or have guest among the loopback_users")
    assert "0.0.0.0:" in warning


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "127.0.0.1", "remote_guest": True},
        {"host": "0.0.0.0"},
        {"host": "0.0.0.0", "remote_guest": True, "default_pass": "secret"},
        {"host": "0.0.0.0", "remote_guest": True, "default_user": "maria"},
    ],
)
def test_a_safe_configuration_logs_no_warning(caplog: pytest.LogCaptureFixture, settings: dict[str, object]) -> None:
    assert warnings(caplog, **settings) == []
