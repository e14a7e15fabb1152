"""Runs the program of an application, and reads what it prints."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from compat.applications.application import Application
from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until

START_S = 60.0
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def digest(size: int) -> str:
    """Return what is printed behind a job of this size."""
    return sha256(b"x" * size).hexdigest()[:8]


def url(broker: BrokerProcess, password: str = "guest", vhost: str = "") -> str:
    """Return the URL of a broker; its vhost is `/` unless another is named."""
    return f"amqp://guest:{password}@{broker.host}:{broker.port}/{vhost}"


class Program:
    """A run of an application's program, its output in a file of `folder`."""

    def __init__(self, application: Application, built: Path, folder: Path, broker_url: str, *words: object) -> None:
        self._log = folder / f"{unique_name(str(words[0]))}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*application.command, *map(str, words)],
                cwd=built,
                env={**os.environ, "AMQP_URL": broker_url, "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return _COLOURS.sub("", self._log.read_text("utf-8", errors="replace"))

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def numbers(self, word: str) -> set[int]:
        """Return the numbers of the jobs that were reported with this word."""
        return {int(number) for number in re.findall(rf"^{word} (\d+).*\n", self.output, re.MULTILINE)}

    def wait_for(self, text: str, timeout_s: float = START_S) -> None:
        """Wait for a line that begins with this text. Raise AssertionError with the output if none comes."""
        self.wait_until_seen(rf"^{re.escape(text)}", timeout_s)

    def wait_until_seen(self, pattern: str, timeout_s: float = START_S) -> str:
        """Wait until a line matches, and return the match. Raise AssertionError with the output if none does."""
        sought = re.compile(pattern, re.MULTILINE)
        wait_until(lambda: sought.search(self.output) is not None or self.has_ended, timeout_s)
        found = sought.search(self.output)
        assert found, self.output[-4000:]
        return found[0]

    def end(self, timeout_s: float) -> int:
        """Wait for its end, and return its exit code. Raise AssertionError with the output if it goes on."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it goes on:\n{self.output[-4000:]}") from None

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        if not self.has_ended:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def running(application: Application, built: Path, folder: Path, broker_url: str, *words: object) -> Iterator[Program]:
    """Run a program, and kill it at the end if it goes on."""
    program = Program(application, built, folder, broker_url, *words)
    try:
        yield program
    finally:
        program.kill()
