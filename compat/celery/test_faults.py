"""Celery under each fault: the sender of a task, the worker and its tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import amqp.exceptions
import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from amqp_broker.server.server import Server
from compat.celery.workers import Worker
from compat.waiting import wait_until
from tests.running import RunningServer

pytestmark = pytest.mark.timeout(60)

QUEUE = "shop"
NOTE = "compat.celery.tasks.note"
RETRY = {"max_retries": 20, "interval_start": 0, "interval_step": 0.05, "interval_max": 0.1}
# Without remote control, for which a worker declares an exclusive queue. If the worker reconnects before the broker has
# noticed the lost connection, that queue is still locked, and the worker ends.
OPTIONS = (
    *("--pool=solo", "--without-mingle", "--without-gossip", "--without-heartbeat"),
    *("--concurrency=1", "--prefetch-multiplier=1", "--", "worker_enable_remote_control=false"),
)


def url(running: RunningServer) -> str:
    return f"amqp://guest:guest@127.0.0.1:{running.port}/"


def client_of(running: RunningServer, **transport_options: Any) -> Celery:
    """Return an application that sends tasks, configured to lose none."""
    client = Celery("client", broker=url(running), set_as_current=False)
    client.conf.update(
        task_default_queue=QUEUE,
        task_queue_max_priority=10,
        broker_transport_options={"confirm_publish": True, **transport_options},
        task_publish_retry_policy=RETRY,
    )
    return client


def ready(running: RunningServer) -> int:
    return running.ask(lambda server: server.broker.vhosts["/"].queues[QUEUE].ready_count)


# Senders


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer() as server:
        yield server


@pytest.fixture
def client(running: RunningServer) -> Iterator[Celery]:
    """Return a connected client that has sent one task, so that the queue exists."""
    with client_of(running) as client:
        client.send_task(NOTE)
        yield client


@pytest.mark.parametrize(
    ("action", "said", "copies"),
    [
        # A task that was queued before its confirm was lost is there twice: tasks run at least once.
        ("confirm_nack", {}, 1),
        ("confirm_delay", {"delay_ms": 50}, 1),
        ("confirm_delay", {"delay_ms": 5000}, 2),
        ("confirm_drop", {}, 2),
        ("close_connection", {"on": "publish"}, 1),
        ("close_connection", {"on": "confirm"}, 2),
        ("cut", {"on": "publish"}, 1),
        ("cut", {"on": "confirm"}, 2),
        ("cut", {"on": "confirm", "is_mid_frame": True}, 2),
        ("reset", {"on": "publish"}, 1),
        ("reset", {"on": "confirm"}, 2),
        ("black_hole", {"on": "publish"}, 1),
        ("black_hole", {"on": "confirm"}, 2),
    ],
)
def test_a_task_is_sent_again_until_it_is_confirmed(
    running: RunningServer, client: Celery, action: str, said: dict[str, Any], copies: int
) -> None:
    rule = running.faults.add(action, routing_key=QUEUE, times=1, **said)
    client.send_task(NOTE, confirm_timeout=1.0)
    assert (rule.hits, ready(running)) == (1, 1 + copies)


@pytest.mark.parametrize(
    ("action", "said", "why"),
    [
        ("confirm_nack", {}, amqp.exceptions.MessageNacked),
        ("confirm_drop", {}, TimeoutError),
        ("cut", {"on": "confirm"}, OSError),
        ("reset", {"on": "confirm"}, ConnectionResetError),
    ],
)
def test_without_retries_the_sender_sees_the_error(
    running: RunningServer, client: Celery, action: str, said: dict[str, Any], why: type[Exception]
) -> None:
    running.faults.add(action, times=1, **said)
    with pytest.raises(OperationalError) as caught:
        client.send_task(NOTE, retry=False, confirm_timeout=1.0)
    assert isinstance(caught.value.__cause__, why)
    client.send_task(NOTE, retry=False)
    assert ready(running) == (2 if action == "confirm_nack" else 3)


def test_a_task_that_is_returned_raises_where_it_is_mandatory(running: RunningServer, client: Celery) -> None:
    rule = running.faults.add("return", times=1)
    client.send_task(NOTE)
    assert rule.hits == 0
    with pytest.raises(amqp.exceptions.ChannelError, match=r"\(312\) NO_ROUTE"):
        client.send_task(NOTE, mandatory=True)
    client.send_task(NOTE, mandatory=True)
    assert (rule.hits, ready(running)) == (1, 3)


@pytest.mark.parametrize("on", ["publish", "confirm"])
def test_a_closed_channel_raises_and_is_not_tried_again(running: RunningServer, client: Celery, on: str) -> None:
    running.faults.add("close_channel", on=on, code=404, text="NOT_FOUND - no exchange 'x' in vhost '/'", times=1)
    with pytest.raises(amqp.exceptions.NotFound, match="no exchange 'x' in vhost '/'"):
        client.send_task(NOTE)
    client.send_task(NOTE)
    assert ready(running) == (3 if on == "confirm" else 2)


def test_a_blocked_sender_waits_until_it_is_unblocked(running: RunningServer, client: Celery) -> None:
    running.faults.add("block")
    sent = threading.Event()

    def send() -> None:
        client.send_task(NOTE)
        sent.set()

    threading.Thread(target=send, daemon=True).start()
    assert not sent.wait(0.3)
    assert ready(running) == 1
    running.faults.add("unblock")
    assert sent.wait(5)
    assert ready(running) == 2


def test_a_sender_comes_back_when_connections_are_refused_for_a_while(running: RunningServer) -> None:
    rule = running.faults.add("refuse", times=2)
    with client_of(running) as client:
        client.send_task(NOTE)
    assert (rule.hits, ready(running)) == (2, 1)


def test_a_login_that_is_refused_is_not_tried_again(running: RunningServer) -> None:
    rule = running.faults.add("refuse_login", user="guest")
    with client_of(running) as client, pytest.raises(amqp.exceptions.AccessRefused):
        client.send_task(NOTE)
    assert rule.hits == 1


def test_a_late_broker_is_waited_for(running: RunningServer, client: Celery) -> None:
    running.faults.add("latency", delay_ms=100)
    began = time.monotonic()
    client.send_task(NOTE)
    assert time.monotonic() - began > 0.09


def test_a_task_sent_without_confirms_is_lost_silently(running: RunningServer) -> None:
    with client_of(running, confirm_publish=False) as client:
        client.send_task(NOTE)
        running.until(lambda server: server.broker.vhosts["/"].queues[QUEUE].ready_count == 1)
        running.faults.add("cut", on="publish", times=1)
        client.send_task(NOTE)
        running.until(lambda server: not server.broker.connections)
        client.send_task(NOTE)
        running.until(lambda server: server.broker.vhosts["/"].queues[QUEUE].ready_count == 2)


def test_a_sender_survives_a_restart_and_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    store: dict[str, Any] = {"ephemeral": False, "data_dir": str(tmp_path)}
    with RunningServer(**store) as running:
        client = client_of(running)
        client.send_task(NOTE)
        port = running.port
    began = threading.Event()

    def send() -> None:
        began.set()
        client.send_task(NOTE)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    assert began.wait(5)
    time.sleep(0.1)
    with RunningServer(port=port, **store) as running:
        thread.join(10)
        assert not thread.is_alive()
        assert ready(running) == 2
        client.close()


# Workers


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, Worker]]:
    """Provide a broker and a worker for all tests that leave it running."""
    with RunningServer() as running:
        folder = tmp_path_factory.mktemp("worker")
        worker = Worker(f"{url(running)}?heartbeat=1", folder, QUEUE, *OPTIONS)
        worker.wait_ready()
        # A worker that is ready may not notice yet that its consumer is cancelled; one that has worked does.
        until_done(running, work(running, folder))
        yield running, worker
        worker.kill()


def work(running: RunningServer, folder: Path) -> Path:
    """Run two tasks; each adds a line to the returned file."""
    path = folder / "notes"
    path.touch()
    with client_of(running) as client:
        for text in ("one", "two"):
            client.send_task(NOTE, (str(path), text), mandatory=True)
    return path


def until_done(running: RunningServer, path: Path) -> list[str]:
    """Wait until both tasks have run and are acked, and return the lines."""

    def is_empty(server: Server) -> bool:
        queue = server.broker.vhosts["/"].queues[QUEUE]
        return queue.ready_count == queue.unacked_count == 0

    wait_until(lambda: "one" in path.read_text("utf-8") and "two" in path.read_text("utf-8"))
    running.until(is_empty)
    return path.read_text("utf-8").splitlines()


ONCE = ["one False", "two False"]
AGAIN = ["one False", "one True", "two False"]


@pytest.mark.parametrize(
    ("action", "said", "notes"),
    [
        ("duplicate", {}, AGAIN),
        # The connection is lost after the delivery: the task runs, and again, as its ack is lost.
        ("cut", {"on": "deliver"}, AGAIN),
        ("cut", {"on": "deliver", "is_mid_frame": True}, AGAIN),
        ("reset", {"on": "deliver"}, AGAIN),
        ("close_connection", {"on": "deliver"}, AGAIN),
        ("black_hole", {"on": "deliver"}, AGAIN),
        ("cancel_consumer", {"on": "deliver"}, ONCE),
    ],
)
def test_every_task_runs(
    workplace: tuple[RunningServer, Worker], tmp_path: Path, action: str, said: dict[str, Any], notes: list[str]
) -> None:
    running, worker = workplace
    connects = worker.logged("Connected to amqp")
    rule = running.faults.add(action, queue=QUEUE, times=1, **said)
    path = work(running, tmp_path)
    found = until_done(running, path)
    if notes is AGAIN and action != "duplicate" and "one False" not in found:
        # The end of a connection may overtake the delivery before.
        found = ["one False", *found]
    if action == "cancel_consumer" and found == AGAIN:
        # The worker reads the cancel together with the delivery, before it sends the ack.
        notes = AGAIN
    # After a black hole the worker may reconnect before the broker has noticed the loss.
    assert found == notes or (action == "black_hole" and sorted(found) == sorted(notes))
    assert rule.hits == 1
    assert worker.logged("Connected to amqp") - connects == (action != "duplicate")
    running.faults.clear()


def test_a_late_delivery_holds_up_a_worker_that_takes_one_at_a_time(
    workplace: tuple[RunningServer, Worker], tmp_path: Path
) -> None:
    running, worker = workplace
    connects = worker.logged("Connected to amqp")
    rule = running.faults.add("delay_delivery", queue=QUEUE, times=1, delay_ms=200)
    began = time.monotonic()
    assert until_done(running, work(running, tmp_path)) == ONCE
    assert time.monotonic() - began > 0.19
    assert (rule.hits, worker.logged("Connected to amqp")) == (1, connects)
    running.faults.clear()


@pytest.mark.parametrize("action", ["cut", "reset", "close_connection", "cancel_consumer", "stop_heartbeats"])
def test_a_worker_that_waits_comes_back(workplace: tuple[RunningServer, Worker], tmp_path: Path, action: str) -> None:
    running, worker = workplace
    running.until(lambda server: server.broker.vhosts["/"].queues[QUEUE].consumers)
    connects = worker.logged("Connected to amqp")
    running.faults.add(action)
    wait_until(lambda: worker.logged("Connected to amqp") > connects)
    running.faults.clear()
    assert until_done(running, work(running, tmp_path)) == ONCE


def test_a_worker_comes_back_when_connections_are_refused_for_a_while(
    workplace: tuple[RunningServer, Worker], tmp_path: Path
) -> None:
    running, worker = workplace
    running.until(lambda server: server.broker.vhosts["/"].queues[QUEUE].consumers)
    before = worker.logged("Cannot connect to amqp")
    rule = running.faults.add("refuse", times=1)
    running.faults.add("cut")
    # Celery waits for two seconds after the first attempt.
    wait_until(lambda: worker.logged("Cannot connect to amqp") == before + 1)
    assert rule.hits == 1
    assert until_done(running, work(running, tmp_path)) == ONCE


def test_a_task_whose_ack_was_lost_runs_again(workplace: tuple[RunningServer, Worker], tmp_path: Path) -> None:
    running, _ = workplace
    rule = running.faults.add("drop_ack", queue=QUEUE, times=1)
    path = work(running, tmp_path)
    # This worker runs one task at a time, so it gets no more until the broker requeues that one.
    wait_until(lambda: rule.hits == 1)
    assert path.read_text("utf-8").splitlines() == ["one False"]
    running.faults.add("cut")
    assert until_done(running, path) == AGAIN


@pytest.mark.parametrize(
    ("action", "said", "log"),
    [
        ("close_channel", {"on": "deliver", "queue": QUEUE}, "PRECONDITION_FAILED - closed by a fault"),
        ("refuse_login", {}, "ACCESS_REFUSED"),
    ],
)
def test_a_worker_ends_on_a_precondition_failure(
    running: RunningServer, tmp_path: Path, action: str, said: dict[str, Any], log: str
) -> None:
    worker = Worker(url(running), tmp_path, QUEUE, *OPTIONS)
    try:
        worker.wait_ready()
        running.until(lambda server: server.broker.vhosts["/"].queues[QUEUE].consumers)
        running.faults.add(action, times=1, **said)
        if action == "refuse_login":
            running.faults.add("cut")
        else:
            work(running, tmp_path)
        assert worker.process.wait(15)
        assert worker.logged("Unrecoverable error") == 1
        assert worker.logged(log)
        if action == "close_channel":
            # Nothing is lost: the next worker finds both tasks.
            assert ready(running) == 2
    finally:
        worker.kill()
