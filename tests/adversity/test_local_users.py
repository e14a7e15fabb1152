"""Another user of the machine, who has made the folder of the control sockets before a broker did."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.control import control_folder
from tests.cli.program import run

pytestmark = pytest.mark.verify

SECRET = "a-secret-of-alice"


@pytest.fixture
def shared() -> Iterator[Path]:
    """Provide a folder that all users can write, as /tmp; with a short path, as sockets need."""
    with tempfile.TemporaryDirectory() as short:
        Path(short).chmod(0o1777)
        yield Path(short)


@pytest.fixture
def folder(shared: Path) -> Path:
    """Return the control folder; the other user lets all users write to it."""
    folder = Path(control_folder({"TMPDIR": str(shared)}))
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def stranger(folder: Path) -> Iterator[socket.socket]:
    """Provide the other user's socket, which listens where a broker's would be."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "5672.sock"))
        listener.listen()
        listener.setblocking(False)
        yield listener


@pytest.mark.parametrize(
    "words",
    [
        ("ctl", "add_user", "alice", SECRET),
        ("ctl", "-n", "5672", "change_password", "alice", SECRET),
        ("diagnostics", "-q", "ping"),
        ("ctl", "--timeout", "1", "await_startup"),
        ("clock", "show"),
    ],
    ids=lambda words: words[1],
)
def test_no_command_connects_to_the_socket_of_another_user(
    stranger: socket.socket, shared: Path, words: tuple[str, ...]
) -> None:
    done = run(*words, TMPDIR=str(shared), XDG_RUNTIME_DIR="")
    assert done.returncode == 77
    assert "is not this user's alone" in done.stderr
    with pytest.raises(BlockingIOError):
        stranger.accept()


def test_no_broker_serves_with_a_control_folder_that_others_can_write(folder: Path, shared: Path) -> None:
    done = run("serve", "--port", "0", TMPDIR=str(shared), XDG_RUNTIME_DIR="")
    assert done.returncode == 78
    assert "is not this user's alone" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
def test_no_broker_deletes_sockets_where_the_link_of_another_user_leads(shared: Path) -> None:
    victim = shared / "mine"
    victim.mkdir(mode=0o700)
    (victim / "5672.sock").touch()
    folder = Path(control_folder({"TMPDIR": str(shared)}))
    folder.symlink_to(victim)
    os.lchown(folder, 12345, 12345)
    done = run("serve", "--port", "0", TMPDIR=str(shared), XDG_RUNTIME_DIR="")
    assert done.returncode == 78
    assert list(victim.iterdir()) == [victim / "5672.sock"]
