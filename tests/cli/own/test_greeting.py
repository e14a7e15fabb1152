from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.cli.own.greeting import lines
from compat.waiting import wait_until
from tests.cli.program import TIMEOUT_S, environment, program
from tests.client import Client
from tests.running import RunningServer

# Windows has no pseudoterminals.
pty = pytest.importorskip("pty")


class AtTerminal:
    """A running `amqp-broker serve` at a terminal, its output so far, and its ports."""

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        self._ports_file = folder / "ports.json"
        terminal, child = pty.openpty()
        command = [*program(), "serve", "--port", "0", "--ports-file", str(self._ports_file), *options]
        self.process = subprocess.Popen(command, env=environment(**variables), stdin=child, stdout=child, stderr=child)
        os.close(child)
        os.set_blocking(terminal, False)
        self._terminal = terminal
        self._read = b""

    @property
    def ports(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self._ports_file.read_text("utf-8"))
        return found

    def output(self) -> str:
        try:
            while chunk := os.read(self._terminal, 65536):
                self._read += chunk
        except (BlockingIOError, OSError):
            pass
        return self._read.decode().replace("\r\n", "\n")


@contextmanager
def at_terminal(folder: Path, *options: str, **variables: str) -> Iterator[AtTerminal]:
    started = AtTerminal(folder, *options, **variables)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait(TIMEOUT_S)
        os.close(started._terminal)


def test_a_start_at_a_terminal_prints_three_lines(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with at_terminal(tmp_path, "--data-dir", str(store), AMQP_BROKER_EPHEMERAL="false") as broker:
        wait_until(lambda: "Ctrl-C" in broker.output())
        amqp, page = broker.ports["amqp"], broker.ports["management"]
        three = (
            f"amqp-broker serves amqp://guest:guest@localhost:{amqp}\n"
            f"Web page: http://localhost:{page}/ (user guest, password guest)\n"
            f"Data: {store}. Ctrl-C stops the broker.\n"
        )
        assert broker.output() == three
        broker.process.send_signal(signal.SIGINT)
        assert broker.process.wait(TIMEOUT_S) == 0
        # The shell's prompt does not stand behind the ^C of the terminal.
        assert broker.output().startswith(three + "\n")
        assert "[info] <0.1.0> SIGINT received - shutting down\n" in broker.output()


def test_the_log_follows_the_three_lines(tmp_path: Path) -> None:
    with at_terminal(tmp_path, "--ephemeral") as broker:
        wait_until(lambda: "Ctrl-C" in broker.output())
        Client(broker.ports["amqp"]).open().close()
        wait_until(lambda: "[info] <0.2.0> accepting AMQP connection" in broker.output())


def test_a_warning_of_the_start_is_shown(tmp_path: Path) -> None:
    with at_terminal(tmp_path, "--ephemeral", "--host", "0.0.0.0", "--remote-guest") as broker:
        wait_until(lambda: "Ctrl-C" in broker.output())
        first, *others = broker.output().splitlines()
        assert "[warning] <0.1.0>" in first
        assert len(others) == 3


@pytest.mark.parametrize("option", [("--log-format", "text"), ("--log-level", "debug")])
def test_a_chosen_format_or_level_has_the_whole_log(tmp_path: Path, option: tuple[str, str]) -> None:
    with at_terminal(tmp_path, "--ephemeral", *option) as broker:
        wait_until(lambda: "Server startup complete" in broker.output())
        assert "Ctrl-C" not in broker.output()


def test_a_failed_start_has_its_reason_alone(tmp_path: Path) -> None:
    with at_terminal(tmp_path, "--ephemeral", "--host", "203.0.113.1") as broker:
        assert broker.process.wait(TIMEOUT_S) == 68
        assert broker.output().startswith("amqp-broker: cannot listen on port 0 of '203.0.113.1'")


def greeting(**settings: Any) -> list[str]:
    with RunningServer(**settings) as running:
        ports = running.server.ports
        shown = "\n".join(running.ask(lambda server: list(lines(server))))
        for name, port in ports.items():
            shown = shown.replace(f":{port}", f":<{name}>")
        return shown.split("\n")


def test_a_password_is_shown_only_if_everybody_knows_it() -> None:
    assert greeting(default_user="tea pot", default_pass="secret", default_vhost="v", management=True) == [
        "amqp-broker serves amqp://tea%20pot@localhost:<amqp>/v",
        "Web page: http://localhost:<management>/",
        "Data: in memory only. Ctrl-C stops the broker.",
    ]


def test_a_broker_without_a_page_says_so() -> None:
    assert greeting()[1] == "Web page: none"


def test_a_broker_with_tls_alone_has_its_address(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("listeners.tcp = none\n", "utf-8")
    with at_terminal(tmp_path, "--ephemeral", "--config", str(file), "--tls", "auto", "--tls-port", "0") as broker:
        wait_until(lambda: "Ctrl-C" in broker.output())
        port = broker.ports["amqps"]
        assert broker.output().startswith(f"amqp-broker serves amqps://guest:guest@localhost:{port}\n")
