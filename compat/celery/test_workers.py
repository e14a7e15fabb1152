"""Workers with other settings: priorities, chords over files, and a broker that dies under them."""

from __future__ import annotations

from pathlib import Path

from celery import Celery, chord

from compat.brokers import BrokerProcess
from compat.celery.workers import Worker
from compat.unique_names import unique_name
from compat.waiting import wait_until

TIMEOUT_S = 30

TASKS = "compat.celery.tasks"


def client_of(broker: BrokerProcess, queue: str, backend: str) -> Celery:
    """An application of its own that knows the tasks by name only."""
    client = Celery("client", broker=broker.url, backend=backend, set_as_current=False)
    client.conf.update(task_default_queue=queue, task_queue_max_priority=10)
    return client


def test_worker_takes_waiting_tasks_by_priority_and_unlocks_a_chord(broker: BrokerProcess, tmp_path: Path) -> None:
    # Chords need another backend than `rpc://`; what they do with the broker is to retry until all parts are done.
    queue, backend = unique_name("shop"), f"file://{tmp_path}"
    with client_of(broker, queue, backend) as client:
        arrival, add = client.signature(f"{TASKS}.arrival"), client.signature(f"{TASKS}.add")
        results = {priority: arrival.apply_async(priority=priority) for priority in (1, 9, 5, 7, 3)}
        unlocked = chord([add.clone((n, n)) for n in range(5)], client.signature(f"{TASKS}.total"))()
        options = ("--pool=solo", "--without-mingle", "--without-gossip")
        worker = Worker(broker.url, tmp_path, queue, *options, backend=backend)
        try:
            assert unlocked.get(timeout=TIMEOUT_S) == 20
            runs = {priority: result.get(timeout=TIMEOUT_S)["run"] for priority, result in results.items()}
            assert runs == {9: 1, 7: 2, 5: 3, 3: 4, 1: 5}
        finally:
            worker.stop()


def test_worker_serves_again_when_the_killed_broker_is_back(own_broker: BrokerProcess, tmp_path: Path) -> None:
    queue = unique_name("shop")
    worker = Worker(own_broker.url, tmp_path, queue, "--concurrency=1", "--without-mingle")
    try:
        worker.wait_ready()
        with client_of(own_broker, queue, "rpc://") as client:
            assert client.send_task(f"{TASKS}.add", (1, 2)).get(timeout=TIMEOUT_S) == 3
        own_broker.restart()
        wait_until(lambda: worker.logged("Connected to amqp") == 2, timeout_s=TIMEOUT_S)
        with client_of(own_broker, queue, "rpc://") as client:
            assert client.send_task(f"{TASKS}.add", (3, 4)).get(timeout=TIMEOUT_S) == 7
    finally:
        worker.stop()
