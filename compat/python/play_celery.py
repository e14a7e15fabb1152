"""Celery: `celery worker`, its remote control and events, chords, and `celery beat`."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import amqp
from celery import Celery, chord, group
from kombu import Queue
from protocol import CA_FILE, PATIENCE_S, TLS_URL, URL, WRONG_URL, ask, main, name


def dead_lettering(queue: str) -> Queue:
    return Queue(
        queue, queue_arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("celery-dead")}
    )


QUEUE = name(os.environ.get("QUEUE", "celery"))
URGENT, PRIORITY = f"{QUEUE}-urgent", f"{QUEUE}-priority"
NOTES = Path(f"{QUEUE}.notes")
app = Celery("play_celery", broker=URL, backend=os.environ.get("BACKEND", "rpc://"))
app.conf.update(
    task_default_queue=QUEUE,
    task_queues=[dead_lettering(QUEUE), Queue(URGENT), Queue(PRIORITY, queue_arguments={"x-max-priority": 5})],
    task_acks_late=True,
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    broker_connection_timeout=4,
    worker_send_task_events=True,
    task_send_sent_event=True,
    # Of its own, since several programs may share the broker.
    control_exchange=name("control"),
    event_exchange=name("events"),
    beat_schedule={"tick": {"task": "play_celery.note", "schedule": 0.3, "args": ("tick",), "options": {"expires": 9}}},
    beat_schedule_filename=f"{QUEUE}.beat",
)


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def note(text: str) -> str:
    with NOTES.open("a", encoding="utf-8") as notes:
        notes.write(text + "\n")
    return text


@app.task(bind=True, default_retry_delay=0.1, max_retries=3)
def flaky(self: Any) -> int:
    if self.request.retries < 2:
        raise self.retry()
    return int(self.request.retries)


@app.task(bind=True)
def refused(self: Any) -> None:
    from celery.exceptions import Reject

    raise Reject("no", requeue=False)


@app.task
def length(text: str) -> int:
    return len(text)


@contextmanager
def celery(*arguments: str, **environment: str) -> Iterator[None]:
    """A command of celery that runs in the background. It is killed: a warm shutdown takes longer than a scenario."""
    command = [sys.executable, "-m", "celery", "-A", "play_celery", *arguments]
    process = subprocess.Popen(
        command, stdout=sys.stderr, stderr=sys.stderr, stdin=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def worker(**environment: str) -> AbstractContextManager[None]:
    queue = name(environment.get("QUEUE", "celery"))
    return celery(
        "worker",
        "--pool=solo",
        "--loglevel=INFO",
        "--without-mingle",
        f"--queues={queue},{queue}-urgent",
        f"--hostname={queue}@local",
        **environment,
    )


def wait(is_so: Callable[[], Any], patience_s: float = 2 * PATIENCE_S) -> Any:
    end = time.monotonic() + patience_s
    while not (found := is_so()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def connect() -> None:
    assert add.delay(2, 3).get(PATIENCE_S) == 5
    assert app.control.inspect(timeout=PATIENCE_S, limit=1).registered()
    assert app.control.inspect(timeout=PATIENCE_S, limit=1).active_queues()


def topology() -> None:
    """By remote control, too: the worker consumes from one more queue, and no longer."""
    results = [add.apply_async((n, n), queue=queue) for n, queue in ((1, QUEUE), (2, URGENT))]
    assert [result.get(PATIENCE_S) for result in results] == [2, 4]
    [answer] = app.control.cancel_consumer(URGENT, reply=True, timeout=PATIENCE_S, limit=1)
    assert "ok" in next(iter(answer.values())), answer


def confirms() -> None:
    """A group of tasks; and a chord, which needs another backend, whose last task waits for all others."""
    results = group(add.s(n, 1) for n in range(50)).apply_async()
    assert results.get(PATIENCE_S) == list(range(1, 51))
    with tempfile.TemporaryDirectory() as folder, worker(QUEUE="chords", BACKEND=f"file://{folder}"):
        client = Celery(broker=URL, backend=f"file://{folder}", set_as_current=False)
        client.conf.update(task_default_queue=name("chords"), task_queues=[dead_lettering(name("chords"))])
        parts = [client.signature(add.name, (n, n)) for n in range(5)]
        assert chord(parts, client.signature(total.name), app=client)().get(2 * PATIENCE_S) == 20


def consume() -> None:
    """The worker changes its prefetch count while it runs."""
    for change in ("pool_grow", "pool_shrink", "rate_limit"):
        arguments = {"task_name": add.name, "rate_limit": "100/s"} if change == "rate_limit" else {"n": 1}
        [answer] = app.control.broadcast(change, arguments=arguments, reply=True, timeout=PATIENCE_S, limit=1)
        # Its pool has one process for good, as it says; the command came and was answered.
        assert answer, change
    assert add.delay(1, 1).get(PATIENCE_S) == 2


def requeue() -> None:
    """A task that asks to be tried again later."""
    assert flaky.delay().get(PATIENCE_S) == 2


def dead_letter() -> None:
    with app.connection_for_write() as connection:
        dead = Queue(name("celery-dead"))(connection.default_channel)
        dead.declare()
        refused.delay()
        message = wait(lambda: dead.get(no_ack=True))
        dead.delete()
        [death] = message.headers["x-death"]
        assert (death["reason"], death["queue"]) == ("rejected", QUEUE), death


def ttl() -> None:
    """A countdown, and a schedule of `celery beat`, whose messages expire."""
    with celery("beat", "--pidfile="):
        assert add.apply_async((1, 2), countdown=0.3).get(PATIENCE_S) == 3
        wait(lambda: "tick" in notes("tick"))


def priority() -> None:
    """The worker learns of the queue once all messages are there."""
    for number in (1, 5, 3):
        note.apply_async((f"p{number}",), queue=PRIORITY, priority=number)
    [answer] = app.control.add_consumer(PRIORITY, reply=True, timeout=PATIENCE_S, limit=1)
    assert "ok" in next(iter(answer.values())), answer
    wait(lambda: len(notes("p")) == 3)
    assert notes("p") == ["p5", "p3", "p1"], notes("p")


def notes(prefix: str) -> list[str]:
    return [line for line in NOTES.read_text("utf-8").splitlines() if line.startswith(prefix)] if NOTES.exists() else []


def rpc() -> None:
    """A result comes back, and the worker sends events."""
    seen: list[str] = []
    with app.connection_for_read() as first:
        receiver = app.events.Receiver(first, handlers={"*": lambda event: seen.append(event["type"])})
        with receiver.consumer_context() as (connection, _, _):
            assert add.delay(4, 4).get(PATIENCE_S) == 8
            # Its worker gathers events for a second.
            while "task-succeeded" not in seen:
                connection.drain_events(timeout=PATIENCE_S)


def large() -> None:
    assert length.delay("0123456789abcdef" * ((1 << 20) - 64)).get(PATIENCE_S) == (16 << 20) - 1024


def tls() -> None:
    url = TLS_URL.replace("amqps:", "amqp:")
    trusting = {"ca_certs": CA_FILE, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "localhost"}
    Celery(broker=url, broker_use_ssl=trusting).connection().connect()
    try:
        Celery(broker=url, broker_use_ssl={"cert_reqs": ssl.CERT_REQUIRED}).connection().connect()
    except ssl.SSLCertVerificationError:
        pass
    else:
        raise AssertionError("connected without the authority")


def wrong_password() -> None:
    try:
        Celery(broker=WRONG_URL).connection().connect()
    except amqp.AccessRefused as error:
        assert error.reply_code == 403, error
    else:
        raise AssertionError("not refused")


def recovers(what: str) -> None:
    """The worker reconnects and runs later tasks."""
    wait(answers)
    # The worker acks behind the result, and may not live through an ack that finds the connection closed.
    time.sleep(0.5)
    ask(what)
    wait(answers, 3 * PATIENCE_S)


def answers() -> bool:
    """Return whether a new sender gets a result."""
    try:
        fresh = Celery("play_celery", broker=URL, backend="rpc://")
        fresh.conf.update(task_default_queue=QUEUE, task_queues=app.conf.task_queues)
        return bool(fresh.send_task(add.name, (5, 5)).get(2) == 10)
    except Exception:
        return False


def forced_close() -> None:
    recovers("CLOSE")


def reconnect() -> None:
    recovers("RESTART")


SCENARIOS = (
    connect, topology, confirms, consume, requeue, dead_letter, ttl, priority, rpc, large, tls, wrong_password,
    forced_close, reconnect,
)  # fmt: skip

if __name__ == "__main__":
    # Tasks have their module's name, which is not `__main__` for the worker.
    import play_celery

    with worker():
        main({scenario.__name__: getattr(play_celery, scenario.__name__) for scenario in SCENARIOS})
