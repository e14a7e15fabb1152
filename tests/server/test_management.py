from __future__ import annotations

import http.client
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.control import control_socket
from amqp_broker.server import certificate_authority
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings, SettingsError
from tests.client import Client
from tests.running import RunningServer


def ask(path: Path, target: str) -> tuple[int, Any]:
    """Return the answer to GET on a control socket."""
    connection = http.client.HTTPConnection("broker")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request("GET", target)
    response = connection.getresponse()
    value = json.loads(response.read())
    connection.close()
    return response.status, value


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # The path of a socket is limited to about a hundred octets; pytest's folders are too long.
    with tempfile.TemporaryDirectory() as short:
        folder = Path(short, "run")
        monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(folder))
        yield folder


def test_the_control_socket_needs_no_login_and_is_removed_by_the_broker(folder: Path) -> None:
    with RunningServer(control=True) as running:
        path = control_socket(folder, running.port)
        assert ask(path, "/api/whoami") == (
            200,
            {"name": "rmq-cli", "tags": ["administrator"], "is_internal_user": True},
        )
    assert not path.exists()


def test_only_its_user_can_open_the_control_socket(folder: Path) -> None:
    with RunningServer(control=True) as running:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert control_socket(folder, running.port).stat().st_mode & 0o777 == 0o600


def test_a_control_folder_that_others_can_write_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SettingsError, match="not this user's alone"), RunningServer(control=True):
        pass


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
def test_a_control_folder_that_another_user_has_linked_is_refused(folder: Path, tmp_path: Path) -> None:
    """Otherwise the broker would delete sockets in a folder of the other user's choice."""
    victim = tmp_path / "5672.sock"
    victim.touch()
    folder.symlink_to(tmp_path)
    os.lchown(folder, 12345, 12345)
    with pytest.raises(SettingsError, match="not this user's alone"), RunningServer(control=True):
        pass
    assert victim.exists()


def test_the_socket_of_a_killed_broker_is_replaced(folder: Path) -> None:
    with RunningServer(control=True) as running:
        port = running.port
    control_socket(folder, port).touch()
    with RunningServer(control=True, port=port):
        assert ask(control_socket(folder, port), "/api/whoami")[0] == 200


def test_the_sockets_of_killed_brokers_are_removed(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    left, new, note = (folder / name for name in ("1.sock", "2.sock", "note.txt"))
    for path in (left, new):
        with socket.socket(socket.AF_UNIX) as killed:
            killed.bind(str(path))
    note.touch()
    for path in (left, note):
        os.utime(path, (0, 0))
    with RunningServer(control=True) as first:
        path = control_socket(folder, first.port)
        os.utime(path, (0, 0))
        with RunningServer(control=True):
            assert ask(path, "/api/whoami")[0] == 200
        found = [one.exists() for one in (left, new, note, path)]
    assert found == [False, True, True, True]


def test_brokers_with_one_port_on_two_addresses_have_separate_control_sockets(folder: Path) -> None:
    with RunningServer(control=True) as first:
        path = control_socket(folder, first.port)
        with RunningServer(control=True, host="127.0.0.2", port=first.port, node_name="second@here"):
            names = sorted(ask(one, "/_broker/node")[1]["name"] for one in folder.iterdir())
            assert len(names) == 2
            assert "second@here" in names
            assert ask(path, "/_broker/node")[1]["name"] != "second@here"
        assert ask(path, "/_broker/node")[0] == 200
        assert list(folder.iterdir()) == [path]


def test_a_control_socket_has_the_tls_port_in_its_name_if_there_is_no_other(folder: Path, tmp_path: Path) -> None:
    own = certificate_authority.certificates(tmp_path / "tls", ["localhost"])
    files: dict[str, Any] = {"tls_cert_file": str(own.server_certificate), "tls_key_file": str(own.server_key)}
    with RunningServer(control=True, tcp=False, tls_port=0, **files) as running:
        port = running.server.ports["amqps"]
        assert ask(control_socket(folder, port), "/api/whoami")[0] == 200


@pytest.mark.parametrize("name", ["x" * 120, "file/in"])
def test_a_broker_serves_without_a_control_socket_if_it_cannot_create_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path / name))
    with RunningServer(control=True) as running:
        Client(running.port).open().close()
    assert "the command line cannot command this broker" in caplog.text


def test_a_broker_without_listeners_is_refused() -> None:
    with pytest.raises(SettingsError, match="served nowhere"):
        Server(Settings(tcp=False, ephemeral=True))


def test_a_management_port_in_use_is_reported_and_all_listeners_are_closed() -> None:
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
            running.until(lambda server: server.broker.idle_waits)
            client.consume("q", no_ack=True)
            assert idle.result() == (200, {"is_idle": True})
        assert running.ask(lambda server: ([r.waits for r in server.broker.event_logs], server.broker.idle_waits)) == (
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
