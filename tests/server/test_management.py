from __future__ import annotations

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.config import Config, ConfigError
from amqp_broker.control import control_socket
from amqp_broker.server import authority
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from tests.client import Client
from tests.running import RunningServer


def ask(path: Path, target: str) -> tuple[int, Any]:
    """What the broker behind a control socket answers to GET."""
    connection = http.client.HTTPConnection("broker")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request("GET", target)
    response = connection.getresponse()
    value = json.loads(response.read())
    connection.close()
    return response.status, value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def test_the_control_socket_needs_no_login_and_goes_with_the_broker(folder: Path) -> None:
    with RunningServer(control=True) as running:
        path = control_socket(folder, running.port)
        assert ask(path, "/api/whoami") == (
            200,
            {"name": "rmq-cli", "tags": ["administrator"], "is_internal_user": True},
        )
    assert not path.exists()


def test_the_control_socket_is_its_users_alone(folder: Path) -> None:
    with RunningServer(control=True) as running:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert control_socket(folder, running.port).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_can_write_is_no_place_for_a_control_socket(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ConfigError, match="not this user's alone"), RunningServer(control=True):
        pass


def test_what_a_killed_broker_left_is_taken_over(folder: Path) -> None:
    with RunningServer(control=True) as running:
        port = running.port
    control_socket(folder, port).touch()
    with RunningServer(control=True, port=port):
        assert ask(control_socket(folder, port), "/api/whoami")[0] == 200


def test_brokers_on_one_port_of_two_addresses_have_a_control_socket_each(folder: Path) -> None:
    with RunningServer(control=True) as first:
        path = control_socket(folder, first.port)
        with RunningServer(control=True, host="127.0.0.2", port=first.port, node_name="second@here"):
            names = sorted(ask(one, "/_broker/node")[1]["name"] for one in folder.iterdir())
            assert len(names) == 2
            assert "second@here" in names
            assert ask(path, "/_broker/node")[1]["name"] != "second@here"
        assert ask(path, "/_broker/node")[0] == 200
        assert list(folder.iterdir()) == [path]


def test_a_broker_that_speaks_tls_only_has_a_control_socket_named_after_that_port(folder: Path, tmp_path: Path) -> None:
    own = authority.certificates(tmp_path / "tls", ["localhost"])
    files = {"tls_cert_file": str(own.server_certificate), "tls_key_file": str(own.server_key)}
    with RunningServer(control=True, tcp=False, tls_port=0, **files) as running:
        port = running.server.ports["amqps"]
        assert ask(control_socket(folder, port), "/api/whoami")[0] == 200


@pytest.mark.parametrize("name", ["x" * 120, "file/in"])
def test_a_broker_without_a_place_for_a_control_socket_serves_all_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path / name))
    with RunningServer(control=True) as running:
        Client(running.port).open().close()
    assert "the command line cannot command this broker" in caplog.text


def test_a_broker_that_would_listen_nowhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="served nowhere"):
        Server(Config(tcp=False, ephemeral=True))


def test_a_management_port_that_is_taken_is_told_and_nothing_stays_open() -> None:
    with RunningServer(management=True) as running:
        taken = running.server.ports["management"]
        with pytest.raises(CannotListen) as caught, RunningServer(management=True, management_port=taken):
            pass
        assert caught.value.port == taken
        Client(running.port).open().close()


def poll(running: RunningServer, target: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", running.server.ports["management"], timeout=30)
    connection.request("GET", target, headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
    response = connection.getresponse()
    value = json.loads(response.read())
    connection.close()
    return response.status, value


def test_a_long_poll_is_answered_by_the_message_that_it_waits_for() -> None:
    with RunningServer(management=True, record=True) as running, Client(running.port).open() as client:
        client.declare("q")
        with ThreadPoolExecutor() as threads:
            polled = threads.submit(poll, running, "/_broker/messages?queue=q&count=2&timeout_s=25")
            running.until(lambda server: [record.waits for record in server.broker.records] != [[]])
            client.publish("q", b"1")
            client.publish("q", b"2")
            status, answer = polled.result()
            assert (status, [message["payload"] for message in answer["messages"]]) == (200, ["1", "2"])
            idle = threads.submit(poll, running, "/_broker/idle?timeout_s=25")
            running.until(lambda server: server.broker.idle_waits)
            client.consume("q", no_ack=True)
            assert idle.result() == (200, {"is_idle": True})
        assert running.ask(lambda server: ([r.waits for r in server.broker.records], server.broker.idle_waits)) == (
            [[]],
            [],
        )


def test_a_long_poll_in_vain_is_a_conflict_and_leaves_nothing() -> None:
    with RunningServer(management=True, record=True) as running:
        status, answer = poll(running, "/_broker/messages?count=1&timeout_s=0.05")
        assert (status, answer["error"]) == (409, "not_met")
        assert answer["reason"].startswith("1 wanted, 0 there")
        assert running.ask(lambda server: [record.waits for record in server.broker.records]) == [[]]


def test_time_is_moved_over_http_while_clients_are_connected() -> None:
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
