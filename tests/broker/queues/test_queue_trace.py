from __future__ import annotations

from typing import Any

from amqp_broker.amqp.message import Address, NumberedMessage
from amqp_broker.broker.queues.queue_trace import LISTED, QueueTrace, Run
from tests.broker_parts import CollectingConsumer, new_message, new_queue


class Hearer(QueueTrace):
    """Keeps what it hears, event by event."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def delivered(self, *facts: Any) -> None:
        self.heard.append(("delivered", *facts))

    def acked(self, *facts: Any) -> None:
        self.heard.append(("acked", *facts))

    def given_up(self, *facts: Any, **more: Any) -> None:
        self.heard.append(("given_up", *facts))


def test_a_run_lists_its_numbers_from_the_first_gap_on() -> None:
    address = Address("", "q")
    run = Run(3, 0, 0, address, 5, 0)
    messages = [NumberedMessage(address, b"", 1, False, number) for number in (6, 7, 10, 8)]
    for message in messages[:2]:
        run.take(message)
    assert (run.count, run.numbers) == (3, None)
    for message in messages[2:]:
        run.take(message)
    assert (run.count, run.numbers, run.following) == (5, [5, 6, 7, 10, 8], LISTED)
    assert {message.row for message in messages} == {3}


def test_a_trace_without_runs_hears_whose_delivery_and_ack_it_is() -> None:
    trace, queue, message = Hearer(), new_queue(), new_message(b"body")
    consumer = CollectingConsumer(queue, no_ack=True)
    consumer.number = 7
    trace.delivered_to(consumer, message, True)
    trace.acked_by(consumer, message)
    assert trace.heard == [
        ("delivered", queue, message, True, consumer.connection, 7, True),
        ("acked", queue, message, consumer.connection, 7),
    ]
