"""The log of `amqp-broker serve`: text in RabbitMQ's format, or JSON lines, to standard output and to a file.

All modules log to the standard library's loggers `amqp_broker.*`. Only `amqp-broker serve` installs the handlers of
this module; a program that embeds a broker configures logging itself.

A thread writes the log, so that a slow reader of standard output never blocks the broker. Messages that exceed the
buffer are dropped and counted.
Source of the formats: rabbit_logger_text_fmt.erl and rabbit_logger_json_fmt.erl, and what 3.10.8 writes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import sys
import threading
import time
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

from amqp_broker.settings.settings import Settings

logger = logging.getLogger("amqp_broker.server")

# The process id of lines that belong to no connection.
BROKER_PID: Final = "<0.1.0>"
# The domains of RabbitMQ's categories; all other loggers of the broker have the domain `rabbitmq`.
DOMAINS: Final = {"amqp_broker.connection": "rabbitmq.connection", "amqp_broker.channel": "rabbitmq.channel"}
_DOMAIN: Final = "rabbitmq"

# Messages that wait for a slow reader.
WAITING_MAX: Final = 10_000
# Time that the end of the process waits for them to be written.
FLUSH_S: Final = 1.0
# Time for which messages are gathered for one write.
GATHER_S: Final = 0.01


def _time(record: logging.LogRecord) -> str:
    """Return local time with its offset from UTC, such as `2026-11-21 02:05:29.669462+00:00`."""
    second = int(record.created)
    date, offset = _second(second)
    return f"{date}.{int((record.created - second) * 1_000_000):06d}{offset}"


@lru_cache(maxsize=1)
def _second(second: int) -> tuple[str, str]:
    text = datetime.fromtimestamp(second).astimezone().isoformat(" ")
    return text[:19], text[19:]


def _level(record: logging.LogRecord) -> str:
    return record.levelname.lower()


def _pid(record: logging.LogRecord) -> str:
    """Return the Erlang-style process id of the connection that logs."""
    return getattr(record, "pid", BROKER_PID)


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message


class TextFormatter(logging.Formatter):
    """`time [level] <pid> message` for each line of a message, without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"{_time(record)} [{_level(record)}] {_pid(record)} "
        message = _message(record)
        if message.isprintable():
            return f"{prefix}{message}\n"
        return "".join(f"{prefix}{_printable(line)}\n" for line in message.split("\n"))


def _printable(line: str) -> str:
    # Most lines have nothing to replace, and looking at each letter is slow.
    return line if line.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in line)


class JsonFormatter(logging.Formatter):
    """A JSON object per line, with the keys of RabbitMQ."""

    def format(self, record: logging.LogRecord) -> str:
        is_own = record.name.startswith("amqp_broker")
        values = {
            "time": _time(record),
            "level": _level(record),
            "msg": _message(record),
            "domain": DOMAINS.get(record.name, _DOMAIN if is_own else record.name),
            "pid": _pid(record),
        }
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"


class Sink(Protocol):
    """A destination of log lines; `write` raises OSError if they are lost."""

    def write(self, octets: bytes) -> None: ...


class Stream:
    """An open descriptor, such as standard output."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, octets: bytes) -> None:
        view = memoryview(octets)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # another program has made the descriptor non-blocking
                select.select([], [self._descriptor], [])


class File:
    """A file to append to, which is reopened after it was moved or removed, for example by logrotate."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Open or reopen the file if necessary. Raise OSError."""
        if self._descriptor is not None:
            try:
                state = self.path.stat()
            except FileNotFoundError:
                pass
            else:
                if (state.st_dev, state.st_ino) == self._identity:
                    return
            os.close(self._descriptor)
            self._descriptor = None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o640)
        self._descriptor, state = descriptor, os.fstat(descriptor)
        self._identity = state.st_dev, state.st_ino

    def write(self, octets: bytes) -> None:
        self.open()
        assert self._descriptor is not None
        view = memoryview(octets)
        while view:
            view = view[os.write(self._descriptor, view) :]


class Writer(logging.Handler):
    """Formats log records and writes them in a thread."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink = sink
        self.lost = 0
        self._texts: list[str] = []
        # Held only briefly, unlike the lock of the handler, which is held during the final flush.
        self._texts_lock = threading.Lock()
        self._has_texts = threading.Event()
        self._is_writing = False
        threading.Thread(target=self._write_on, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        with self._texts_lock:
            if len(self._texts) >= WAITING_MAX:
                self.lost += 1
                return
            self._texts.append(text)
        if not self._has_texts.is_set():
            self._has_texts.set()

    def flush(self) -> None:
        """Wait until all messages are written, at most `FLUSH_S`."""
        give_up = time.monotonic() + FLUSH_S
        while (self._texts or self._is_writing) and time.monotonic() < give_up:
            _pause(GATHER_S / 2)

    def _write_on(self) -> None:
        while True:
            self._has_texts.wait()
            # Waking up for each message would cost the broker more than formatting and writing them.
            _pause(GATHER_S)
            self._has_texts.clear()
            self._is_writing = True
            with self._texts_lock:
                texts, self._texts = self._texts, []
                lost, self.lost = self.lost, 0
            self._write("".join(texts))
            if lost:
                self._write(self.format(_record(logging.WARNING, f"{lost} messages were lost: the log was not read")))
            self._is_writing = False

    def _write(self, text: str) -> None:
        # A failed write has no place to be reported, and must not end the thread. Names may contain bytes that are not
        # UTF-8.
        with contextlib.suppress(Exception):
            self.sink.write(text.encode("utf-8", "backslashreplace"))


def _pause(duration_s: float) -> None:
    # Under libfaketime a sleep may fail, which must not end the log.
    with contextlib.suppress(OSError):
        time.sleep(duration_s)


def _record(level: int, message: str) -> logging.LogRecord:
    return logging.LogRecord(logger.name, level, "", 0, message, None, None)


def start(settings: Settings) -> None:
    """Install the handlers of the settings. An error of the log file is logged to standard output."""
    # Errors of logging itself have no place to be reported.
    logging.raiseExceptions = False
    # The formats have neither thread nor process names.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # Nor do they have source locations ("Logging HOWTO", Optimization).
    setattr(logging, "_srcfile", None)  # noqa: B010
    root, problem = logging.getLogger(), ""
    level, file_level = (_number(name) for name in (settings.log_level, settings.log_file_level or settings.log_level))
    # Without standard output sys.stdout is None, and its descriptor may be another file.
    if settings.log_console and sys.stdout is not None:
        _install(Writer(Stream(sys.stdout.fileno())), settings, level)
    if settings.log_path is not None:
        file = File(settings.log_path)
        try:
            file.open()
        except OSError as error:
            problem = f"the log cannot be written to '{file.path}': {error.strerror}"
        _install(Writer(file), settings, file_level)
    root.setLevel(min((handler.level for handler in writers()), default=logging.CRITICAL))
    if problem:
        logger.error("%s", problem)


def _install(writer: Writer, settings: Settings, level: int) -> None:
    writer.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    writer.setLevel(level)
    logging.getLogger().addHandler(writer)


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def writers() -> list[Writer]:
    """Return the handlers that `start` has installed."""
    return [handler for handler in logging.getLogger().handlers if isinstance(handler, Writer)]


def flush() -> None:
    """Wait until all messages are written."""
    for writer in writers():
        writer.flush()


def set_console_level(level: int) -> None:
    """Set the level of standard output alone."""
    for writer in writers():
        if isinstance(writer.sink, Stream):
            writer.setLevel(level)


def set_level(level: str) -> None:
    """Set the level of the broker's loggers and handlers. Other handlers of the program are left alone."""
    logging.getLogger("amqp_broker").setLevel(_number(level))
    for writer in writers():
        writer.setLevel(_number(level))
