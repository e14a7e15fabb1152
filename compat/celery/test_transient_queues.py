"""Celery at a broker of RabbitMQ 4.3, which has no transient queues that several connections share.

Celery's queues for remote control and events are exclusive by default since 5.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from amqp.exceptions import InternalError
from celery import chord

from compat.brokers import AmqpBroker
from compat.celery.test_workers import TASKS, TIMEOUT_S, client_of
from compat.celery.workers import Worker
from compat.waiting import wait_until

QUEUE = "shop"


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[AmqpBroker]:
    """Provide a broker that answers as RabbitMQ 4.3."""
    broker = AmqpBroker(tmp_path / "broker", profile="4.3")
    with broker.running():
        yield broker


def test_results_and_remote_control_work(strict: AmqpBroker, tmp_path: Path) -> None:
    worker = Worker(strict.url, tmp_path, QUEUE, "--pool=solo", "--task-events")
    try:
        worker.wait_ready()
        with client_of(strict, QUEUE, "rpc://") as client:
            assert client.send_task(f"{TASKS}.add", (1, 2)).get(timeout=TIMEOUT_S) == 3
            assert client.control.ping(timeout=TIMEOUT_S, limit=1) == [{worker.name: {"ok": "pong"}}]
            assert client.control.rate_limit(f"{TASKS}.add", "10/m", reply=True, timeout=TIMEOUT_S, limit=1)
            client.control.shutdown()
            wait_until(lambda: worker.process.poll() is not None, timeout_s=TIMEOUT_S)
    finally:
        worker.stop()


def test_a_chord_is_unlocked(strict: AmqpBroker, tmp_path: Path) -> None:
    backend = f"file://{tmp_path}"
    worker = Worker(strict.url, tmp_path, QUEUE, "--pool=solo", backend=backend)
    try:
        with client_of(strict, QUEUE, backend) as client:
            add = client.signature(f"{TASKS}.add")
            unlocked = chord([add.clone((n, n)) for n in range(5)], client.signature(f"{TASKS}.total"))()
            assert unlocked.get(timeout=TIMEOUT_S) == 20
    finally:
        worker.stop()


def test_remote_control_is_refused_with_the_setting_of_older_celery(strict: AmqpBroker) -> None:
    with client_of(strict, QUEUE, "rpc://") as client:
        client.conf.control_queue_exclusive = False
        with pytest.raises(InternalError, match="transient_nonexcl_queues"):
            client.control.ping(timeout=1)
