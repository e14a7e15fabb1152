"""What the log of a broker looks like, and where it goes: lines as RabbitMQ's, or a JSON object on each, on the
standard output and in a file.

Everything logs through the standard library's loggers `amqp_broker.*`; what is here is installed by `amqp-broker serve`
alone, so that a program that embeds a broker decides itself what becomes of them.

A thread writes, because whoever reads our output may stop reading: the broker must not wait for him. What he does not
keep up with is dropped and counted.
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

from amqp_broker.config import Config

logger = logging.getLogger("amqp_broker.server")

# What is said of no connection is said by the broker, which is one process.
BROKER_PID: Final = "<0.1.0>"
# RabbitMQ's categories with a domain of their own; all else of ours is of `rabbitmq`.
DOMAINS: Final = {"amqp_broker.connection": "rabbitmq.connection", "amqp_broker.channel": "rabbitmq.channel"}
_DOMAIN: Final = "rabbitmq"

# Messages that may wait for a reader who is slow.
WAITING_MAX: Final = 10_000
# How long the end of the process waits for him.
FLUSH_S: Final = 1.0
# How long a message waits for others to be written with.
GATHER_S: Final = 0.01


def _time(record: logging.LogRecord) -> str:
    """`2026-11-21 02:05:29.669462+00:00`: local time, with its offset from UTC."""
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
    """Who says it: as Erlang writes a process, which is a connection here."""
    return getattr(record, "pid", BROKER_PID)


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message


class TextFormatter(logging.Formatter):
    """`time [level] <pid> message`; each line of a message begins so, and none can move the terminal's cursor."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"{_time(record)} [{_level(record)}] {_pid(record)} "
        message = _message(record)
        if message.isprintable():
            return f"{prefix}{message}\n"
        lines = ("".join(letter if letter.isprintable() else "?" for letter in line) for line in message.split("\n"))
        return "".join(f"{prefix}{line}\n" for line in lines)


class JsonFormatter(logging.Formatter):
    """An object on a line of its own, with the keys of RabbitMQ's."""

    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name.startswith("amqp_broker")
        values = {
            "time": _time(record),
            "level": _level(record),
            "msg": _message(record),
            "domain": DOMAINS.get(record.name, _DOMAIN if is_ours else record.name),
            "pid": _pid(record),
        }
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"


class Sink(Protocol):
    """Where octets go that may be lost; `write` raises OSError if they are."""

    def write(self, octets: bytes) -> None: ...


class Stream:
    """An open descriptor: the standard output."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, octets: bytes) -> None:
        view = memoryview(octets)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # another program has made it so
                select.select([], [self._descriptor], [])


class File:
    """A file that is appended to, and opened anew where it was moved or removed: by logrotate, for one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Open it, unless that is done. Raises OSError."""
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
    """Formats what is logged, and has a thread write it."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink = sink
        self.lost = 0
        self._texts: list[str] = []
        # Held for moments only, unlike the handler's own, which the end of the process holds while it flushes.
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
        """Wait until all is written, but not for long."""
        give_up = time.monotonic() + FLUSH_S
        while (self._texts or self._is_writing) and time.monotonic() < give_up:
            time.sleep(GATHER_S / 2)

    def _write_on(self) -> None:
        while True:
            self._has_texts.wait()
            # To be woken for each message would cost the broker more than all the rest of it.
            time.sleep(GATHER_S)
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
        # What cannot be written is lost, and there is nobody to tell. A name may have octets that are no UTF-8.
        with contextlib.suppress(OSError):
            self.sink.write(text.encode("utf-8", "backslashreplace"))


def _record(level: int, message: str) -> logging.LogRecord:
    return logging.LogRecord(logger.name, level, "", 0, message, None, None)


def start(config: Config) -> None:
    """Log as the settings say. What a log file cannot be written for is told on the standard output."""
    # Who cannot be told that he cannot be told?
    logging.raiseExceptions = False
    # What no line of ours has need not be found out for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # Where it was said, neither ("Logging HOWTO", Optimization).
    setattr(logging, "_srcfile", None)  # noqa: B010
    root, problem = logging.getLogger(), ""
    level, file_level = (_number(name) for name in (config.log_level, config.log_file_level or config.log_level))
    # It is None where the process was started without one; its number is another file's then.
    if config.log_console and sys.stdout is not None:
        _install(Writer(Stream(sys.stdout.fileno())), config, level)
    if config.log_file:
        file = File(Path(config.log_dir, config.log_file) if config.log_dir else Path(config.log_file))
        try:
            file.open()
        except OSError as error:
            problem = f"the log cannot be written to '{file.path}': {error.strerror}"
        _install(Writer(file), config, file_level)
    root.setLevel(min((handler.level for handler in writers()), default=logging.CRITICAL))
    if problem:
        logger.error("%s", problem)


def _install(writer: Writer, config: Config, level: int) -> None:
    writer.setFormatter(JsonFormatter() if config.log_format == "json" else TextFormatter())
    writer.setLevel(level)
    logging.getLogger().addHandler(writer)


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def writers() -> list[Writer]:
    """The handlers that `start` has installed."""
    return [handler for handler in logging.getLogger().handlers if isinstance(handler, Writer)]


def set_level(level: str) -> None:
    """Log what is of this level and above, from now on. A program that embeds a broker keeps its own handlers."""
    logging.getLogger("amqp_broker").setLevel(_number(level))
    for writer in writers():
        writer.setLevel(_number(level))
