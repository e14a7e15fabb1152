"""The single executable: it runs where there is no Python, as one process, and as RabbitMQ's tools."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pika
import pytest

from compat.oracles import debian_root
from compat.waiting import wait_until

PROJECT = Path(__file__).parents[2]
SIZE_MAX = 40_000_000
PORTS = ("--port", "0", "--management-port", "0", "--prometheus-port", "0", "--ports-file", "ports.json")

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("built") / "amqp-broker"
    done = subprocess.run(
        ["make", "executable", f"EXECUTABLE={path}"], cwd=PROJECT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Provide an environment without Python's, and with a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AMQP", "RABBITMQ"))}
    return {**kept, "PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def run(environment: dict[str, str], folder: Path, *command: str | Path) -> str:
    """Run a command and return its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def serving(executable: Path, environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([executable, "serve", "--ephemeral", *PORTS], cwd=folder, env=environment) as process:
        try:
            wait_until((folder / "ports.json").exists)
            yield process
        finally:
            process.terminate()


def test_it_is_small_and_compiled(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    assert executable.stat().st_size < SIZE_MAX
    assert run(environment, tmp_path, executable, "--version").endswith("(compiled)\n")


def test_it_unpacks_itself_once(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    first = [subprocess.Popen([executable, "--version"], env=environment, cwd=tmp_path) for _ in range(4)]
    assert [process.wait() for process in first] == [0] * 4
    [program] = (tmp_path / "cache/amqp-broker").iterdir()
    unpacked = program.stat().st_mtime_ns
    run(environment, tmp_path, executable, "--version")
    assert [one.stat().st_mtime_ns for one in (tmp_path / "cache/amqp-broker").iterdir()] == [unpacked]


def test_a_damaged_folder_is_unpacked_again(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    run(environment, tmp_path, executable, "--version")
    [library] = (tmp_path / "cache").glob("amqp-broker/*/_internal/libpython*")
    library.unlink()
    assert run(environment, tmp_path, executable, "--version")


def test_it_unpacks_where_it_can(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    place = {**environment, "XDG_CACHE_HOME": "/proc/x", "HOME": "/proc/y", "TMPDIR": str(tmp_path)}
    assert run(place, tmp_path, executable, "--version")
    assert (tmp_path / f"amqp-broker-{os.getuid()}").is_dir()
    del place["XDG_CACHE_HOME"], place["HOME"]
    assert run(place, tmp_path, executable, "--version")
    lost = subprocess.run(
        [executable, "--version"],
        env={**place, "TMPDIR": "/proc/z"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (lost.returncode, lost.stdout) == (73, "")
    assert "Set XDG_CACHE_HOME to a folder that can be written." in lost.stderr


def test_a_client_the_page_and_rabbitmqadmin_are_served(
    executable: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with serving(executable, environment, tmp_path):
        ports = json.loads((tmp_path / "ports.json").read_text("utf-8"))
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", ports["amqp"])) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("orders", durable=True)
            channel.basic_publish("", "orders", b"order 1", mandatory=True)
        for path, text in (("", b"<title>"), ("style.css", b"{"), ("cli/rabbitmqadmin", b"rabbitmqadmin")):
            with urlopen(f"http://127.0.0.1:{ports['management']}/{path}") as answer:
                assert text in answer.read()


def test_it_is_one_process_that_can_be_killed(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    with serving(executable, environment, tmp_path) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert children.read_text("utf-8") == ""
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert run(environment, tmp_path, executable, "--version")


def test_the_shims_are_rabbitmqs_tools(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    run(environment, tmp_path, executable, "install-shims", "shims")
    tools = "shims/rabbitmqctl -q list_vhosts && shims/rabbitmqadmin --help && shims/rabbitmq-diagnostics ping"
    shown = run(environment, tmp_path, executable, "run", "--", "sh", "-c", tools)
    assert "Usage: rabbitmqadmin" in shown
    assert "Ping succeeded" in shown
    assert "amqp-broker serve" in run(environment, tmp_path, tmp_path / "shims/rabbitmq-server", "--help")
    # They do not depend on what was unpacked.
    shutil.rmtree(tmp_path / "cache")
    assert run(environment, tmp_path, tmp_path / "shims/rabbitmqctl", "version").startswith("4.")


def test_a_link_to_it_is_the_tool_of_its_name(executable: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "rabbitmqctl").symlink_to(executable)
    assert run(environment, tmp_path, tmp_path / "rabbitmqctl", "version").startswith("4.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can enter another root folder")
@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_it_runs_in_a_debian_without_python(executable: Path, release: str, tmp_path: Path) -> None:
    root = tmp_path / release
    debian_root.create(release, root, ["base-files"])
    assert not list(root.glob("usr/bin/python*"))
    (root / "amqp-broker").write_bytes(executable.read_bytes())
    (root / "amqp-broker").chmod(0o755)
    ping = "/amqp-broker run -- /amqp-broker diagnostics ping"
    enter = f"mount -t proc proc {shlex.quote(str(root))}/proc && exec chroot {shlex.quote(str(root))} {ping}"
    shown = run(
        {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}, tmp_path, *debian_root.ALONE, "sh", "-c", enter
    )
    assert "Ping succeeded" in shown
