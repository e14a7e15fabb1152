"""Flower: its HTTP API, with a worker of Celery; `celery flower` asks the broker's HTTP API for the queues' lengths."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from protocol import MANAGEMENT_URL, PATIENCE_S, URL, ask, main, name

QUEUE, WAITING = name("flower"), name("flower-waiting")
WORKER = f"{QUEUE}@local"
app = Celery("play_flower", broker=URL, backend="rpc://")
app.conf.update(
    task_default_queue=QUEUE,
    broker_connection_retry_on_startup=True,
    worker_send_task_events=True,
    # Of its own, since several programs may share the broker.
    control_exchange=name("control"),
    event_exchange=name("events"),
)


# A task has its module's name, which is not `__main__` for the worker.
@app.task(name="play_flower.add")
def add(a: int, b: int) -> int:
    return a + b


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


PORT = free_port()


@contextmanager
def celery(*arguments: str) -> Iterator[None]:
    """A command of celery that runs in the background. It is killed: a warm shutdown takes longer than a scenario."""
    process = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "play_flower", *arguments],
        stdout=sys.stderr,
        stderr=sys.stderr,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "FLOWER_UNAUTHENTICATED_API": "true"},
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def call(path: str, body: Any = None, **query: str) -> Any:
    """Flower's answer; a POST if there is a body."""
    url = f"http://localhost:{PORT}/api/{path}?{urllib.parse.urlencode(query)}"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


def wait(is_so: Callable[[], Any], patience_s: float = 2 * PATIENCE_S) -> Any:
    """Return the result as soon as it is true; errors in between are ignored."""
    end = time.monotonic() + patience_s
    while True:
        try:
            if found := is_so():
                return found
            error: object = f"it is {found}"
        except OSError as failure:
            error = failure
        assert time.monotonic() < end, f"it did not happen: {error}"
        time.sleep(0.2)


def connect() -> None:
    """The worker is seen: by its answers to inspection, and by its heartbeats."""
    worker = wait(inspected)
    assert add.name in worker["registered"], worker
    assert [queue["name"] for queue in worker["active_queues"]] == [QUEUE], worker
    wait(lambda: call("workers", status="1") == {WORKER: True})


def inspected() -> Any:
    """Return Flower's data of the worker after a refresh, once all fields used here are present."""
    worker = call("workers", refresh="1").get(WORKER, {})
    return worker if {"registered", "active_queues"} <= worker.keys() else None


def has_both() -> bool:
    worker = inspected()
    return worker is not None and len(worker["active_queues"]) == 2


def topology() -> None:
    """Flower has the worker consume from one more queue, and no longer; it tells the lengths of both."""
    wait(inspected)
    add_consumer, cancel_consumer = (f"worker/queue/{verb}-consumer/{WORKER}" for verb in ("add", "cancel"))
    assert call(add_consumer, {}, queue=WAITING)["message"]
    wait(has_both)
    assert call(cancel_consumer, {}, queue=WAITING)["message"]
    # It asks for the queues that the worker had when Flower saw it last.
    for number in range(3):
        call(f"task/async-apply/{add.name}", {"args": [number, 1], "queue": WAITING})
    wait(lambda: lengths() == {QUEUE: 0, WAITING: 3})
    with app.connection_for_write() as connection:
        connection.default_channel.queue_delete(WAITING)
    wait(lambda: lengths() == {QUEUE: 0})


def lengths() -> dict[str, int | None]:
    """By queue; RabbitMQ does not count the messages of a new queue for the first seconds."""
    return {queue["name"]: queue.get("messages") for queue in call("queues/length")["active_queues"]}


def rpc() -> None:
    """A task runs and its result arrives, as do the worker's events."""
    applied = call(f"task/apply/{add.name}", {"args": [4, 4]})
    assert (applied["state"], applied["result"]) == ("SUCCESS", 8), applied
    seen = wait(lambda: succeeded(applied["task-id"]))
    assert (seen["result"], seen["worker"]) == ("8", WORKER), seen


def succeeded(task_id: str) -> Any:
    """Return Flower's data of the task from events, once it has succeeded."""
    task = call(f"task/info/{task_id}")
    return task if task["state"] == "SUCCESS" else None


def recovers(what: str) -> None:
    """Flower and the worker reconnect: a task runs, the length of the queue is known, and events arrive."""
    wait(inspected)
    ask(what)
    wait(is_back, 3 * PATIENCE_S)
    wait(lambda: call("workers", status="1").get(WORKER))
    # Flower knows its queues from the worker's next answer.
    wait(lambda: QUEUE in lengths())


def is_back() -> bool:
    """Return whether a new task succeeds, with events."""
    applied = call(f"task/apply/{add.name}", {"args": [5, 5], "timeout": 2})
    end = time.monotonic() + 3
    while applied.get("result") == 10 and time.monotonic() < end:
        if any(task_id == applied["task-id"] and task["state"] == "SUCCESS" for task_id, task in call("tasks").items()):
            return True
        time.sleep(0.2)
    return False


def forced_close() -> None:
    recovers("CLOSE")


def reconnect() -> None:
    recovers("RESTART")


SCENARIOS = (connect, topology, rpc, forced_close, reconnect)

if __name__ == "__main__":
    worker = ("worker", "--pool=solo", "--loglevel=INFO", "--without-mingle", f"--hostname={WORKER}")
    flower = ("flower", f"--port={PORT}", "--address=localhost", f"--broker_api={MANAGEMENT_URL}/api/")
    with celery(*worker), celery(*flower):
        main({scenario.__name__: scenario for scenario in SCENARIOS})
