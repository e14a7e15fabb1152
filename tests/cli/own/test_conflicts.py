from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.cli.own.conflicts import Wanted, _options, is_taken
from amqp_broker.settings.settings import Settings
from compat.brokers import free_port
from compat.waiting import wait_until
from tests.cli.program import Serving, environment, program, run, serving

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A broker on fixed ports, with its data in a folder."""
    folder = tmp_path_factory.mktemp("first")
    ports = [str(free_port()) for _ in range(3)]
    options = ("--port", ports[0], "--management-port", ports[1], "--prometheus-port", ports[2])
    data = ("--data-dir", str(folder / "store"))
    with serving(folder, "--host", HOST, *options, *data, AMQP_BROKER_EPHEMERAL="false") as broker:
        yield broker


def refused(*words: str, **variables: str) -> tuple[int, list[str]]:
    done = run("serve", "--host", HOST, *words, **variables)
    assert not done.stdout.startswith("Traceback")
    return done.returncode, done.stderr.splitlines()


def test_all_ports_and_the_folder_that_a_broker_holds_are_named_at_once(first: Serving) -> None:
    store = first.ports_file.parent / "store"
    amqp, page, metrics = (str(first.ports[name]) for name in ("amqp", "management", "prometheus"))
    ports = ("--port", amqp, "--management-port", page, "--prometheus-port", metrics)
    code, lines = refused(*ports, "--data-dir", str(store), AMQP_BROKER_EPHEMERAL="false")
    # It is one process.
    assert re.fullmatch(
        rf"amqp-broker: an amqp-broker \(pid (\d+)\) serves amqp://{HOST}:{amqp} already; "
        rf"ports {page} and {metrics} are in use, too; '{store}' is in use by process \1\. "
        "A second broker starts with:",
        lines[0],
    )
    command = lines[1].split()
    assert command[:5] == ["amqp-broker", "serve", "--host", HOST, "--port"]
    assert command[-2:] == ["--data-dir", f"{store}-{command[5]}"]
    assert code == os.EX_TEMPFAIL


def test_the_command_that_is_named_starts_a_broker(first: Serving, tmp_path: Path) -> None:
    code, lines = refused("--port", str(first.port))
    assert (code, len(lines)) == (os.EX_UNAVAILABLE, 2)
    ports_file = tmp_path / "ports.json"
    words = [*program(), *lines[1].split()[1:], "--ports-file", str(ports_file)]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL) as second:
        wait_until(ports_file.exists)
        second.terminate()
        assert second.wait(60) == 0


def test_another_program_on_a_port_is_named_as_such() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        code, lines = refused("--port", "0", "--management-port", str(port))
        assert (code, lines[0]) == (
            os.EX_UNAVAILABLE,
            f"amqp-broker: port {port} is in use by another program. A second broker starts with:",
        )
        command = lines[1].split()
        assert command[:-1] == ["amqp-broker", "serve", "--host", HOST, "--port", "0", "--management-port"]
        assert int(command[-1]) > port
        assert is_taken(HOST, port)
    assert not is_taken(HOST, port)


def test_an_option_for_each_port_that_was_given_is_named() -> None:
    with socket.create_server((HOST, 0)) as one, socket.create_server((HOST, 0)) as two:
        ports = [taken.getsockname()[1] for taken in (one, two)]
        _, lines = refused("--port", str(ports[0]), "--management-port", str(ports[1]))
    command = lines[1].split()
    assert command[:-3] == ["amqp-broker", "serve", "--host", HOST, "--port"]
    assert command[-2] == "--management-port"
    assert len({command[-3], command[-1], *map(str, ports)}) == 4


def test_a_broker_in_its_own_way_is_named_without_a_command() -> None:
    port = str(free_port())
    code, lines = refused("--port", port, "--management-port", port)
    assert (code, lines) == (
        os.EX_UNAVAILABLE,
        [f"amqp-broker: port {port} of '{HOST}' is in use by another program."],
    )


def test_behind_the_last_port_there_is_any() -> None:
    settings = Settings(host=HOST, port=65535, management=False, prometheus=False)
    assert _options(settings, [Wanted("--port", HOST, 65535)]) == {"--port": "0"}
