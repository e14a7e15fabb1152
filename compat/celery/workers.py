"""Celery workers as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from compat.unique_names import unique_name
from compat.waiting import wait_until

PROJECT = Path(__file__).parents[2]


class Worker:
    """A worker of the application in `tasks.py`, its log in `folder`."""

    def __init__(self, broker_url: str, folder: Path, queue: str, *options: str, backend: str = "rpc://") -> None:
        self.name = f"{unique_name('worker')}@localhost"
        self.log = folder / f"{self.name}.log"
        command = [sys.executable, "-m", "celery", "-A", "compat.celery.tasks", "worker"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "-n", self.name, "--loglevel=INFO", *options],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(PROJECT),
                    "CELERY_BROKER_URL": broker_url,
                    "CELERY_RESULT_BACKEND": backend,
                    "TASK_QUEUE": queue,
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def logged(self, text: str) -> int:
        """How often the log says so."""
        return self.log.read_text("utf-8", errors="replace").count(text)

    def wait_ready(self) -> Worker:
        wait_until(lambda: self.logged(f"{self.name} ready.") or self.process.poll() is not None, timeout_s=120)
        assert self.process.poll() is None, self.log.read_text("utf-8", errors="replace")
        return self

    def kill(self) -> None:
        """End it and its pool at once, as a machine that fails does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, as a deployment does, and wait."""
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        finally:
            self.kill()
