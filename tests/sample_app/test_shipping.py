"""Tests of the Celery application, with a worker in this process. They know only the broker's URL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import group
from celery.contrib.testing.worker import start_worker
from celery.exceptions import TaskRevokedError
from kombu import pools
from shipping import RETRIES_MAX, CarrierIsBusy, app, hand_over, notify, outbox, print_label, ship, weigh

TIMEOUT_S = 30


@pytest.fixture(scope="module", autouse=True)
def worker(amqp_broker: Any) -> Iterator[None]:
    """A worker of all queues, in a vhost that all these tests share."""
    with amqp_broker.vhost() as vhost:
        app.conf.broker_url = vhost.url
        # Its heart is what wakes the worker when it is to end.
        with start_worker(app, pool="solo", perform_ping_check=False, without_heartbeat=False, shutdown_timeout=60):
            yield
        # Celery keeps connections for what comes next.
        app.backend.result_consumer.stop()
        pools.reset()
        app.close()


@pytest.fixture(autouse=True)
def empty_outbox() -> None:
    outbox.clear()


def mailed(count: int) -> list[str]:
    """Return the mailed parcels when there are enough."""
    deadline = time.monotonic() + TIMEOUT_S
    while len(outbox) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return outbox


def wait_for_consumers(queue: str, count: int) -> None:
    """Return when the queue has this number of consumers.

    The reply to a control command is not enough: Celery's worker sends it before it acts.
    """
    deadline = time.monotonic() + TIMEOUT_S
    with app.connection_for_read() as connection:
        while connection.default_channel.queue_declare(queue, passive=True).consumer_count != count:
            assert time.monotonic() < deadline, f"{queue} never had {count} consumers"
            time.sleep(0.01)


def test_a_parcel_goes_through_all_queues() -> None:
    label = ship({"tea": 100, "pot": 900}, "Mill Lane 1").delay().get(timeout=TIMEOUT_S)
    assert label == "Mill Lane 1: 1000 g (labels), try 1"


def test_a_carrier_who_is_busy_is_asked_again() -> None:
    assert hand_over.delay("label", busy=2).get(timeout=TIMEOUT_S) == "label, try 3"


def test_a_carrier_who_is_always_busy_is_an_error() -> None:
    result = hand_over.delay("label", busy=RETRIES_MAX + 1)
    with pytest.raises(CarrierIsBusy):
        result.get(timeout=TIMEOUT_S)


def test_many_parcels_are_weighed_at_once() -> None:
    weights = group(weigh.s({"tea": number}) for number in range(20)).delay()
    assert weights.get(timeout=TIMEOUT_S) == list(range(20))


def test_a_mail_waits_for_its_countdown_and_for_its_moment() -> None:
    began = time.monotonic()
    notify.apply_async(("last",), eta=datetime.now(UTC) + timedelta(seconds=0.6))
    notify.apply_async(("later",), countdown=0.3)
    notify.delay("at once")
    assert mailed(3) == ["at once", "later", "last"]
    assert time.monotonic() - began >= 0.6


def test_a_label_that_comes_too_late_is_not_printed() -> None:
    result = print_label.apply_async((1, "Mill Lane 1"), countdown=0.2, expires=0.1)
    with pytest.raises(TaskRevokedError):
        result.get(timeout=TIMEOUT_S)


def test_mail_that_waited_goes_out_by_its_priority() -> None:
    app.control.cancel_consumer("mail")
    wait_for_consumers("mail", 0)
    for number in range(5):
        notify.apply_async((f"mail {number}",), priority=number)
    app.control.add_consumer("mail")
    assert mailed(5) == [f"mail {number}" for number in (4, 3, 2, 1, 0)]
