from __future__ import annotations

import errno
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from amqp_broker.server import log_output
from amqp_broker.server.log_output import File, JsonFormatter, Stream, TextFormatter, Writer
from amqp_broker.settings.settings import Settings
from compat.waiting import wait_until

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d"


def record(message: str, *, name: str = "amqp_broker.server", level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, message, None, None)


def failure() -> logging.LogRecord:
    try:
        raise KeyError("x\x1b[2J")
    except KeyError:
        return logging.LogRecord("amqp_broker.session", logging.ERROR, __file__, 1, "failed", None, sys.exc_info())


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Provide the root logger, and restore it afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    source: object = getattr(logging, "_srcfile")  # noqa: B009
    switches = (logging.raiseExceptions, logging.logThreads, logging.logProcesses, logging.logMultiprocessing)
    yield root
    setattr(logging, "_srcfile", source)  # noqa: B010
    root.handlers[:], root.level = handlers, level
    logging.getLogger("amqp_broker").setLevel(logging.NOTSET)
    logging.raiseExceptions, logging.logThreads, logging.logProcesses, logging.logMultiprocessing = switches
    root.setLevel(level)


# Text


def test_a_line_has_the_format_of_rabbitmq() -> None:
    assert re.fullmatch(
        TIME + r" \[info\] <0\.1\.0> Server startup complete\n",
        TextFormatter().format(record("Server startup complete")),
    )


def test_the_time_is_local_with_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        told = record("x")
        told.created = 1_700_000_000.25
        assert TextFormatter().format(told).startswith("2023-11-15 03:43:20.250000+05:30 [info]")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_every_line_of_a_message_has_the_prefix() -> None:
    lines = TextFormatter().format(record("a\n * b\n", level=logging.WARNING)).splitlines()
    assert len({line[:51] for line in lines}) == 1
    assert [re.sub(TIME, "T", line) for line in lines] == [
        "T [warning] <0.1.0> a",
        "T [warning] <0.1.0>  * b",
        "T [warning] <0.1.0> ",
    ]


def test_a_line_has_the_process_id_of_its_connection() -> None:
    told = record("x")
    told.pid = "<0.7.0>"
    assert "[info] <0.7.0> x" in TextFormatter().format(told)


def test_control_characters_are_replaced() -> None:
    assert TextFormatter().format(record("a\x1b[2J\rb\u202e")).endswith("> a?[2J?b?\n")
    assert all(line.isprintable() for line in TextFormatter().format(failure()).split("\n"))


def test_a_traceback_belongs_to_the_message() -> None:
    text = TextFormatter().format(failure())
    assert "Traceback (most recent call last):" in text
    assert all(re.match(TIME + r" \[error\] <0\.1\.0> ", line) for line in text.splitlines())


# JSON


def test_json_has_the_keys_of_rabbitmq_on_one_line() -> None:
    told = record("a\n * 'b' é\x1b", name="amqp_broker.connection")
    told.pid = "<0.7.0>"
    line = JsonFormatter().format(told)
    assert line.count("\n") == 1
    values = json.loads(line)
    assert re.fullmatch(TIME, values.pop("time"))
    assert values == {
        "level": "info",
        "msg": "a\n * 'b' é\x1b",
        "domain": "rabbitmq.connection",
        "pid": "<0.7.0>",
    }


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("amqp_broker.channel", "rabbitmq.channel"),
        ("amqp_broker.store", "rabbitmq"),
        ("asyncio", "asyncio"),
    ],
)
def test_json_has_the_domains_of_rabbitmq(name: str, domain: str) -> None:
    assert json.loads(JsonFormatter().format(record("x", name=name)))["domain"] == domain


def test_invalid_utf_8_is_written_escaped(tmp_path: Path) -> None:
    writer = Writer(File(tmp_path / "log"))
    for formatter in (JsonFormatter(), logging.Formatter()):
        writer.setFormatter(formatter)
        writer.handle(record("a\udcffb"))
    writer.flush()
    line = (tmp_path / "log").read_bytes().decode().splitlines()[0]
    assert json.loads(line)["msg"] == "a\udcffb"


# Writing


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n", "utf-8")
    File(path).write(b"after\n")
    assert path.read_text("utf-8") == "before\nafter\n"


def test_a_moved_file_is_reopened(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = File(path)
    file.write(b"1")
    path.rename(tmp_path / "log.1")
    file.write(b"2")
    path.unlink()
    file.write(b"3")
    assert (tmp_path / "log.1").read_bytes() == b"1"
    assert path.read_bytes() == b"3"


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    File(tmp_path / "a" / "b" / "log").write(b"x")
    assert (tmp_path / "a" / "b" / "log").read_bytes() == b"x"


def test_writing_is_retried_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.mkdir()
    writer = Writer(File(path))
    writer.setFormatter(TextFormatter())
    writer.handle(record("lost"))
    writer.flush()
    path.rmdir()
    writer.handle(record("found"))
    writer.flush()
    assert path.read_text("utf-8").endswith("found\n")


def test_the_log_goes_on_where_sleeping_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under libfaketime."""

    def fail(duration_s: float) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    # Other threads of the tests go on sleeping.
    monkeypatch.setattr(log_output, "time", SimpleNamespace(**{**vars(time), "sleep": fail}))
    writer = Writer(File(tmp_path / "log"))
    writer.setFormatter(TextFormatter())
    for text in ("one", "two"):
        writer.handle(record(text))
        writer.flush()
    assert (tmp_path / "log").read_text("utf-8").count("\n") == 2


def test_a_stalled_reader_blocks_nothing_and_lost_messages_are_counted() -> None:
    reading, writing = os.pipe()
    writer = Writer(Stream(writing))
    writer.setFormatter(logging.Formatter("%(message)s\n"))
    # More than a pipe holds, so the writer blocks.
    writer.handle(record("x" * 1_000_000))
    wait_until(lambda: not writer._texts)
    for number in range(log_output.WAITING_MAX + 5000):
        writer.handle(record(str(number)))
    read = bytearray()

    def drain() -> None:
        while octets := os.read(reading, 1 << 16):
            read.extend(octets)

    thread = threading.Thread(target=drain, daemon=True)
    thread.start()
    wait_until(lambda: b"messages were lost" in read)
    writer.flush()
    os.close(writing)
    thread.join()
    os.close(reading)
    lines = read.decode().splitlines()
    [told] = [line for line in lines if line.endswith("messages were lost: the log was not read")]
    assert told.startswith("5000 ")
    assert len(lines) == 1 + log_output.WAITING_MAX + 1


def test_no_error_of_a_write_ends_the_log() -> None:
    class Failing:
        def __init__(self) -> None:
            self.written: list[bytes] = []

        def write(self, octets: bytes) -> None:
            self.written.append(octets)
            if len(self.written) == 1:
                raise ValueError("embedded null byte")

    sink = Failing()
    writer = Writer(sink)
    writer.setFormatter(logging.Formatter("%(message)s"))
    for text in ("lost", "kept"):
        writer.handle(record(text))
        writer.flush()
    assert sink.written == [b"lost", b"kept"]


def test_a_closed_stream_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = Writer(Stream(writing))
    writer.handle(record("x"))
    writer.flush()
    os.close(writing)


# Settings


def test_a_file_has_its_own_level_and_folder(tmp_path: Path, root: logging.Logger) -> None:
    log_output.start(
        Settings(log_console=False, log_file="a.log", log_dir=str(tmp_path), log_level="error", log_file_level="debug")
    )
    logging.getLogger("amqp_broker.store").debug("seen")
    [writer] = log_output.writers()
    writer.flush()
    assert (tmp_path / "a.log").read_text("utf-8").endswith("[debug] <0.1.0> seen\n")


def test_a_file_has_the_general_level_by_default(tmp_path: Path, root: logging.Logger) -> None:
    log_output.start(Settings(log_console=False, log_file=str(tmp_path / "log"), log_level="warning"))
    assert not logging.getLogger("amqp_broker.connection").isEnabledFor(logging.INFO)


def test_a_file_that_cannot_be_opened_is_reported(
    tmp_path: Path, root: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    log_output.start(Settings(log_console=False, log_file=str(tmp_path)))
    assert f"the log cannot be written to '{tmp_path}': Is a directory" in caplog.text


def test_the_level_is_changed_at_run_time(tmp_path: Path, root: logging.Logger) -> None:
    log_output.start(Settings(log_console=False, log_file=str(tmp_path / "log"), log_level="warning"))
    logger = logging.getLogger("amqp_broker.connection")
    logger.info("1")
    log_output.set_level("info")
    logger.info("2")
    log_output.set_level("error")
    logger.warning("3")
    [writer] = log_output.writers()
    writer.flush()
    assert [line[-1] for line in (tmp_path / "log").read_text("utf-8").splitlines()] == ["2"]


def test_an_embedding_program_keeps_its_logging() -> None:
    program = (
        "import logging\n"
        "from amqp_broker.settings.settings import Settings\n"
        "from amqp_broker.server.server import Server\n"
        "Server(Settings(ephemeral=True))\n"
        "root = logging.getLogger()\n"
        "assert not root.handlers and root.level == logging.WARNING\n"
        "assert logging.getLevelName(logging.INFO) == 'INFO' and logging.raiseExceptions\n"
        "assert not logging.getLogger('amqp_broker').handlers\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
