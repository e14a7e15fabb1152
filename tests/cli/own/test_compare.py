from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from amqp_broker.cli.own.compare import settings
from amqp_broker.compare.upstream import Upstream
from compat.brokers import free_port
from compat.waiting import wait_until
from tests.cli.program import TIMEOUT_S, environment, program, run
from tests.client import Client
from tests.running import RunningServer

QUEUE_OF_OURS = {"vhosts": [{"name": "/"}], "queues": [{"name": "q", "vhost": "/", "durable": True}]}


class Comparing:
    """A running `amqp-broker compare`."""

    def __init__(self, upstream: RunningServer, folder: Path, *options: str) -> None:
        self.output = folder / "output"
        url = f"amqp://guest:guest@127.0.0.1:{upstream.port}"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*program(), "compare", "--upstream", url, "--port", "0", *options],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        wait_until(lambda: "clients connect to" in self.text or self.process.poll() is not None)

    @property
    def text(self) -> str:
        return self.output.read_text("utf-8")

    @property
    def port(self) -> int:
        found = re.search(r"clients connect to 127\.0\.0\.1:(\d+)", self.text)
        assert found, self.text
        return int(found[1])

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


@contextmanager
def comparing(folder: Path, *options: str) -> Iterator[Comparing]:
    with RunningServer() as upstream:
        running = Comparing(upstream, folder, *options)
        try:
            yield running
        finally:
            running.process.kill()
            running.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_differences_the_exit_code_is_0_after_a_summary(tmp_path: Path, number: int) -> None:
    with comparing(tmp_path) as running:
        with Client(running.port).open() as client:
            client.declare("q")
        assert running.end(number) == 0
        assert running.text.splitlines()[-1] == "1 connection, 3 methods compared, 0 differences"


def test_differences_are_printed_and_written_as_json_and_the_exit_code_is_1(tmp_path: Path) -> None:
    definitions, found = tmp_path / "definitions.json", tmp_path / "found.json"
    definitions.write_text(json.dumps(QUEUE_OF_OURS), "utf-8")
    with comparing(tmp_path, "--definitions", str(definitions), "--json", str(found)) as running:
        with Client(running.port).open() as client:
            client.declare("q")
        assert running.end() == 1
        assert "connection 1, channel 1: queue.declare queue='q'\n  upstream:    queue.declare-ok" in running.text
        assert running.text.endswith("1 connection, 3 methods compared, 1 difference\n")
    report = json.loads(found.read_text("utf-8"))
    (difference,) = report["differences"]
    assert difference["asked"] == "queue.declare queue='q'"
    assert difference["amqp_broker"].startswith("channel.close reply_code=406")
    assert (report["product"], report["profile"], report["methods_compared"]) == ("RabbitMQ", "4.2", 3)


def test_an_unreachable_upstream_is_reported_in_one_sentence() -> None:
    done = run("compare", "--upstream", f"amqp://127.0.0.1:{free_port()}")
    assert done.returncode == 69
    assert done.stderr.startswith("amqp-broker: cannot connect to amqp://127.0.0.1")
    assert done.stderr.count("\n") == 1


def test_an_upstream_that_refuses_the_login_is_reported_in_one_sentence() -> None:
    with RunningServer() as upstream:
        done = run("compare", "--upstream", f"amqp://guest:secret@127.0.0.1:{upstream.port}")
    assert done.returncode == 77
    assert "refuses the login of 'guest'" in done.stderr
    assert "secret" not in done.stderr
    assert done.stderr.endswith("logfile.\n")


@pytest.mark.parametrize("uri", ["http://x", "amqp://", "nonsense"])
def test_an_invalid_uri_is_reported_in_one_sentence(uri: str) -> None:
    done = run("compare", "--upstream", uri)
    assert (done.returncode, done.stderr.count("\n")) == (64, 1)


def test_a_port_in_use_is_reported_in_one_sentence() -> None:
    with RunningServer() as upstream:
        done = run("compare", "--upstream", f"amqp://127.0.0.1:{upstream.port}", "--port", str(upstream.port))
    assert done.returncode == 69
    assert "in use by another program" in done.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "99999"])
def test_an_invalid_port_is_refused(port: str) -> None:
    done = run("compare", "--upstream", "amqp://127.0.0.1:1", "--port", port)
    assert (done.returncode, done.stdout) == (64, "")
    assert f"{port} is not in the range 0<=x<=65535" in done.stderr


def test_a_file_that_cannot_be_written_is_reported_at_once(tmp_path: Path) -> None:
    done = run("compare", "--upstream", "amqp://127.0.0.1:1", "--json", str(tmp_path / "no" / "found.json"))
    assert done.returncode == 73
    assert "cannot write" in done.stderr


def test_the_compared_broker_has_the_limits_of_the_upstream() -> None:
    chosen = settings(Upstream("RabbitMQ", "4.2.0", 100, 1 << 20, 30), "4.2", "")
    assert (chosen.channel_max, chosen.frame_max, chosen.heartbeat_s, chosen.compat) == (100, 1 << 20, 30, "4.2")
    assert settings(Upstream("RabbitMQ", "4.2.0", 0, 0, 0), "4.2", "").frame_max == 131072
