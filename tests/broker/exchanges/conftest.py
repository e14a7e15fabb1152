"""Queues to bind."""

from __future__ import annotations

import pytest

from amqp_broker.broker.queues.queue import Queue
from tests.broker_parts import new_queue, new_vhost


@pytest.fixture
def queues() -> list[Queue]:
    vhost = new_vhost()
    return [new_queue(vhost, name) for name in ("q0", "q1", "q2")]
