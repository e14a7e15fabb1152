from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.management.documents.capture_file import header_line, skipped_line
from compat.waiting import wait_until
from tests.cli.program import TIMEOUT_S, Serving, environment, program, run, serving

LINES = (
    header_line("/", 0),
    b'{"at_us": 0, "exchange": "", "routing_key": "orders", "body": "1"}\n',
    b'{"at_us": 200000, "exchange": "", "routing_key": "orders", "body": "2"}\n',
    b'{"at_us": 86400000000, "exchange": "", "routing_key": "orders", "body": "3"}\n',
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def url(broker: Serving) -> str:
    with broker.client() as client:
        client.open()
        client.declare("orders")
    return f"amqp://guest:guest@127.0.0.1:{broker.port}/"


def depth(broker: Serving) -> str:
    done = run("ctl", "-n", str(broker.port), "-q", "list_queues", "messages", "--no-table-headers")
    return done.stdout.strip()


def file(folder: Path, *lines: bytes) -> str:
    path = folder / "run.jsonl"
    path.write_bytes(b"".join(lines))
    return str(path)


def test_captured_messages_are_published_again_and_counted(broker: Serving, url: str, tmp_path: Path) -> None:
    before = int(depth(broker))
    done = run("replay", file(tmp_path, *LINES[:3]), "--url", url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 published, 2 confirmed, 0 nacked, 0 returned in ")
    done = run("replay", file(tmp_path, *LINES), "--url", url, "--speed", "max")
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "3 published")
    assert int(depth(broker)) == before + 5


def test_a_capture_may_come_through_a_pipe(broker: Serving, url: str) -> None:
    before = int(depth(broker))
    command = [*program(), "replay", "/dev/stdin", "--url", url]
    done = subprocess.run(command, input=b"".join(LINES[:2]), env=environment(), capture_output=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stderr) == (0, b"")
    assert int(depth(broker)) == before + 1


def test_returned_and_missing_messages_are_reported(url: str, tmp_path: Path) -> None:
    lost = b'{"at_us": 0, "exchange": "", "routing_key": "nowhere", "mandatory": true, "body": ""}\n'
    done = run("replay", file(tmp_path, LINES[0], lost, skipped_line(4)), "--url", url)
    assert done.returncode == 65
    assert done.stdout.splitlines()[1] == "returned: exchange '', routing key 'nowhere': 312 NO_ROUTE"
    assert done.stderr.splitlines() == [
        "4 messages are missing from the capture",
        "amqp-broker: the broker did not accept all messages.",
    ]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--speed", "-1"), 64, "the speed must be 0.001 or more, not -1."),
        (("--speed", "fast"), 64, "Invalid value for '--speed': 'fast' is not a speed like 1, 0.5 or max."),
        (("--url", "http://localhost"), 64, '"http://localhost" not a valid URI.'),
        (("--url", "amqp:///v"), 64, '"amqp:///v" names no host.'),
        (("--exchange", "gone"), 69, "404 NOT_FOUND - no exchange 'gone' in vhost '/'."),
        (("--vhost", "gone"), 69, "530 NOT_ALLOWED - vhost gone not found."),
    ],
)
def test_an_invalid_replay_is_reported(
    broker: Serving, url: str, tmp_path: Path, options: tuple[str, str], code: int, sentence: str
) -> None:
    before = depth(broker)
    done = run("replay", file(tmp_path, *LINES), "--url", url, *options)
    assert (done.returncode, done.stderr.splitlines()[0]) == (code, f"amqp-broker: {sentence}")
    assert depth(broker) == before


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((*LINES[:3], LINES[3][:20]), "line 4 is incomplete; remove it to replay the messages before it."),
        ((LINES[0].replace(b'"version": 1', b'"version": 9'),), "this capture file has version 9; only version 1 is"),
        ((b"{}\n",), "this is not a capture file: its first line lacks the format 'amqp-broker capture'."),
    ],
)
def test_no_message_of_an_invalid_file_is_published(
    broker: Serving, url: str, tmp_path: Path, lines: tuple[bytes, ...], sentence: str
) -> None:
    before, path = depth(broker), file(tmp_path, *lines)
    done = run("replay", path, "--url", url, "--speed", "max")
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.startswith(f"amqp-broker: '{path}': {sentence}")
    assert depth(broker) == before


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    done = run("replay", path)
    assert (done.returncode, done.stderr) == (66, f"amqp-broker: cannot read '{path}': No such file or directory.\n")


def test_a_refused_login_has_its_own_exit_code(broker: Serving, url: str, tmp_path: Path) -> None:
    done = run("replay", file(tmp_path, *LINES), "--url", url.replace("guest:guest", "guest:wrong"))
    assert done.returncode == 77
    assert "ACCESS_REFUSED" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_replay_prints_its_counts(
    broker: Serving, url: str, tmp_path: Path, number: signal.Signals
) -> None:
    before = int(depth(broker))
    command = [*program(), "replay", file(tmp_path, *LINES), "--url", url]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    wait_until(lambda: int(depth(broker)) == before + 2)
    process.send_signal(number)
    _, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert told.startswith("2 published, ")
