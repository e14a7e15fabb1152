"""Jobs with Celery in a quorum queue, some of them delayed: `serve` works them off, `submit FIRST COUNT SIZE` sends."""

from __future__ import annotations

import os
import sys
import time
from hashlib import sha256
from typing import Any

from celery import Celery
from celery.signals import worker_ready
from kombu.transport.native_delayed_delivery import (
    bind_queue_to_native_delayed_delivery_exchange,
    declare_native_delayed_delivery_exchanges_and_queues,
)

app = Celery("jobs", broker=os.environ["AMQP_URL"])
app.conf.update(
    task_default_queue="jobs",
    task_default_queue_type="quorum",
    # Delays do not lead to a direct exchange, Celery's default: workers would hold delayed jobs themselves.
    task_default_exchange_type="topic",
    broker_native_delayed_delivery_queue_type="quorum",
    worker_detect_quorum_queues=True,
    broker_transport_options={"confirm_publish": True},
    # Long enough for a broker that starts again.
    task_publish_retry_policy={"max_retries": 30, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_cancel_long_running_tasks_on_connection_loss=True,
    broker_connection_retry_on_startup=True,
    worker_redirect_stdouts=False,
)


@app.task(ignore_result=True)
def work(number: int, text: str) -> None:
    time.sleep(0.005)
    print("done", number, sha256(text.encode()).hexdigest()[:8], flush=True)


@worker_ready.connect
def report(**_: Any) -> None:
    print("ready", flush=True)


def serve() -> None:
    app.worker_main(["worker", "--loglevel=INFO", "--concurrency=1"])


def submit(first: int, count: int, size: int) -> None:
    make_delays()
    for number in range(first, first + count):
        # Every other one is delayed, by the shortest time there is: Celery delays by whole seconds.
        work.apply_async((number, "x" * size), countdown=number % 2)
        print("accepted", number, flush=True)
        time.sleep(0.005)


def make_delays() -> None:
    """Declare what workers declare too: the first sender may come before the first worker."""
    with app.connection_for_write() as connection:
        queue = app.amqp.queues[app.conf.task_default_queue]
        queue(connection.default_channel).declare()
        declare_native_delayed_delivery_exchanges_and_queues(
            connection, app.conf.broker_native_delayed_delivery_queue_type
        )
        bind_queue_to_native_delayed_delivery_exchange(connection, queue)


if __name__ == "__main__":
    verb, *numbers = sys.argv[1:]
    if verb == "serve":
        serve()
    else:
        submit(*map(int, numbers))
