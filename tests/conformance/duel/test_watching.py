"""Channels that collect their input, and the observer beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pamqp.commands import Queue

from amqp_broker.conformance.duel.watching import Observer, Refused, WatchedLab
from amqp_broker.conformance.terms import Terms
from tests.conformance.broker_under_test import BrokerUnderTest


@pytest.fixture
def lab(broker: BrokerUnderTest) -> Iterator[WatchedLab]:
    yield (one := WatchedLab(broker))
    one.leave()


@pytest.fixture
def observer(broker: BrokerUnderTest) -> Iterator[Observer]:
    yield (one := Observer(broker, Terms()))
    one.close()


def test_input_is_in_the_window_of_its_channel_until_the_next(lab: WatchedLab) -> None:
    connection = lab.connect_as()
    channel = connection.channel(1)
    channel.call(Queue.Declare, queue=lab.name("q"), durable=True)
    (watched,) = connection.opened
    assert [received.method for received in watched.window.replies][-1] is Queue.DeclareOk
    watched.next_window()
    assert watched.window.replies == []


def test_counts_are_those_of_each_queue_or_the_code_of_a_refusal(lab: WatchedLab, observer: Observer) -> None:
    queue = lab.name("q")
    lab.connect_as().channel(1).call(Queue.Declare, queue=queue, durable=True)
    observer.channel.publish(b"1", routing_key=queue)
    assert observer.counts(["missing", queue]) == {"missing": 404, queue: (1, 0)}


def test_reading_a_stream_that_does_not_exist_is_a_refusal(observer: Observer) -> None:
    (line,) = observer.read("missing")
    assert "reply_code=404" in line


def test_a_refused_connection_is_an_exception(broker: BrokerUnderTest) -> None:
    lab = WatchedLab(broker, Terms(vhost="missing"))
    with pytest.raises(Refused):
        lab.connect_as()
    lab.leave()
