"""Switching the trace of a vhost on and off."""

from __future__ import annotations

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Message
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_vhost


@pytest.fixture
def vhost() -> VHost:
    vhost = new_vhost()
    vhost.tracing.start()
    return vhost


class RecordingObserver:
    """Keeps the names of the events that a vhost reports."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, event: str, name: str, headers: fields.Table, message: Message | None, body: bytes) -> None:
        self.events.append(event)


def test_adding_and_removing_observers_does_not_start_or_stop_the_trace(vhost: VHost) -> None:
    observer = RecordingObserver()
    vhost.tracing.observe(observer)
    assert vhost.tracing.is_on
    vhost.tracing.stop()
    assert not vhost.tracing.is_on
    assert vhost.trace is not None
    vhost.tracing.start()
    vhost.tracing.stop_observing(observer)
    assert vhost.tracing.is_on


def test_the_firehose_and_the_recorder_do_not_stop_each_other(vhost: VHost) -> None:
    vhost.tracing.record(
        vhost.declare_queue(QueueDeclaration("t", {"x-queue-type": "stream"}, is_durable=True)), Selection()
    )
    vhost.tracing.stop()
    assert vhost.trace is vhost.tracing.recorder is not None
    vhost.tracing.start()
    vhost.tracing.stop_recording()
    assert vhost.tracing.is_on
    assert vhost.tracing.recorder is None


def test_a_vhost_is_not_traced_after_its_last_observer_has_gone(vhost: VHost) -> None:
    vhost.tracing.stop()
    first, second = RecordingObserver(), RecordingObserver()
    vhost.tracing.observe(first)
    vhost.tracing.observe(second)
    vhost.tracing.stop_observing(first)
    assert vhost.trace is not None
    vhost.tracing.stop_observing(second)
    vhost.tracing.stop_observing(second)
    assert vhost.trace is None
