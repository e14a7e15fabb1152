"""A Celery application as its users write one. CELERY_BROKER_URL and CELERY_RESULT_BACKEND say where it lives."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery, Task

app = Celery("shop", backend="rpc://")
app.conf.update(
    task_default_queue=os.environ.get("TASK_QUEUE", "shop"),
    task_queue_max_priority=10,
    worker_prefetch_multiplier=1,
    task_track_started=True,
    broker_connection_retry_on_startup=True,
)

runs = 0


@app.task
def add(x: float, y: float) -> float:
    return x + y


@app.task
def total(numbers: list[float]) -> float:
    return sum(numbers)


@app.task
def divide(x: float, y: float) -> float:
    return x / y


@app.task(bind=True, autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 3, "countdown": 0.1})
def flaky(self: Task, failures: int) -> int:
    if self.request.retries < failures:
        raise ConnectionError("the other side is busy")
    return int(self.request.retries)


@app.task(bind=True)
def arrival(self: Task) -> dict[str, Any]:
    """How the message came to the worker, and how many tasks of this kind its process ran before."""
    global runs
    runs += 1
    info = self.request.delivery_info
    return {"key": info["routing_key"], "redelivered": info["redelivered"], "run": runs}


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)
def guard(self: Task, folder: str) -> bool:
    """Tell that it runs, wait for the folder's file `release`, and return whether this was a redelivery."""
    Path(folder, f"running-{os.getpid()}").touch()
    deadline = time.monotonic() + 60
    while not Path(folder, "release").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(self.request.delivery_info["redelivered"])


@app.task(bind=True, acks_late=True)
def note(self: Task, path: str, text: str) -> None:
    """Add a line to a file: the text, and whether this was a redelivery."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{text} {self.request.delivery_info['redelivered']}\n")
