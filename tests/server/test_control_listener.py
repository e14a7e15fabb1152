from __future__ import annotations

import http.client
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.management.http.connection import HttpConnection
from amqp_broker.server import certificate_authority
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import SettingsError
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
        path = folder / f"{running.port}.sock"
        assert ask(path, "/api/whoami") == (
            200,
            {"name": "rmq-cli", "tags": ["administrator"], "is_internal_user": True},
        )
    assert not path.exists()


def test_only_its_user_can_open_the_control_socket(folder: Path) -> None:
    with RunningServer(control=True) as running:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / f"{running.port}.sock").stat().st_mode & 0o777 == 0o600


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
    (folder / f"{port}.sock").touch()
    with RunningServer(control=True, port=port):
        assert ask(folder / f"{port}.sock", "/api/whoami")[0] == 200


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
        path = folder / f"{first.port}.sock"
        os.utime(path, (0, 0))
        with RunningServer(control=True):
            assert ask(path, "/api/whoami")[0] == 200
        found = [one.exists() for one in (left, new, note, path)]
    assert found == [False, True, True, True]


def test_brokers_with_one_port_on_two_addresses_have_separate_control_sockets(folder: Path) -> None:
    with RunningServer(control=True) as first:
        path = folder / f"{first.port}.sock"
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
        assert ask(folder / f"{port}.sock", "/api/whoami")[0] == 200


@pytest.mark.parametrize("name", ["x" * 120, "file/in"])
def test_a_broker_serves_without_a_control_socket_if_it_cannot_create_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path / name))
    with RunningServer(control=True) as running:
        Client(running.port).open().close()
    assert "the command line cannot command this broker" in caplog.text


def test_connections_of_the_control_socket_are_not_among_those_without_a_login(folder: Path) -> None:
    """They are the user's own, and none gives way to others."""
    with RunningServer(control=True) as running, socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(folder / f"{running.port}.sock"))
        peer.sendall(b"GET /api/whoami HTTP/1.1\r\nHost: broker\r\n\r\n")
        assert peer.recv(1000).startswith(b"HTTP/1.1 200")

        def counted(server: Server) -> list[int]:
            control = server.http._control
            assert control is not None
            assert control._runner is not None
            assert control._runner.server is not None
            connections = control._runner.server.connections
            return [len(each.unauthenticated) for each in connections if isinstance(each, HttpConnection)]

        assert running.ask(counted) == [0]
