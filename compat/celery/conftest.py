"""One worker for all tests that leave it running, and the application that sends it tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from celery import Celery

from compat.brokers import BrokerProcess
from compat.celery import tasks
from compat.celery.workers import Worker
from compat.unique_names import unique_name


@pytest.fixture(scope="session")
def app(broker: BrokerProcess) -> Iterator[Celery]:
    tasks.app.conf.broker_url = broker.url
    tasks.app.conf.task_default_queue = unique_name("shop")
    yield tasks.app
    tasks.app.close()


@pytest.fixture(scope="session")
def worker(app: Celery, broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("worker")
    queue = app.conf.task_default_queue
    worker = Worker(broker.url, folder, queue, "--pool=prefork", "--concurrency=2", "--task-events")
    yield worker.wait_ready()
    worker.stop()
