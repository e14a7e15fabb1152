"""Headers of messages in streams, which RabbitMQ keeps as messages of AMQP 1.0."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.scenarios.streams import _reader, _stream


@scenario
def headers_that_are_tables_or_arrays_are_lost(lab: Lab) -> None:
    s = _stream(lab)
    publisher = lab.channel()
    publisher.call(Confirm.Select)
    publisher.publish(b"1", routing_key=s, headers={"F": "A", "a": [1, "y"], "l": 2**40, "n": None, "t": {"x": 1}})
    publisher.publish(b"2", routing_key=s, headers={"t": {"x": {"y": [1]}}})
    publisher.confirms(1, 2)
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(2)
    reader.sync()


@scenario
def annotations_may_be_tables_and_arrays(lab: Lab) -> None:
    s = _stream(lab)
    publisher = lab.channel()
    publisher.call(Confirm.Select)
    publisher.publish(b"1", routing_key=s, headers={"CC": ["nowhere"], "x-a": [1, "y"], "x-b": {"x": 1}})
    publisher.confirms(1, 1)
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
    reader.sync()


def _expiring_into_stream(lab: Lab, expiration: str, kind: str, **arguments: str) -> tuple[str, str]:
    """Publish a message with an expiration to a queue that dead-letters into a stream; return both."""
    s = _stream(lab)
    given = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s, **arguments}
    q = lab.queue("q", durable=True, arguments=given)
    publisher = lab.channel()
    publisher.call(Confirm.Select)
    publisher.publish(b"1", routing_key=q, expiration=expiration, headers={"h": 1})
    publisher.confirms(1, 1)
    return q, s


def _reject_first(worker: Channel, queue: str) -> None:
    worker.call(Basic.Get, queue=queue)
    worker.reject(1, requeue=False)
    worker.sync()


def _read(lab: Lab, stream: str) -> None:
    reader = _reader(lab)
    reader.consume(stream, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
    reader.sync()


@scenario
def a_rejected_message_from_a_classic_queue_keeps_its_expiration_in_a_stream(lab: Lab) -> None:
    q, s = _expiring_into_stream(lab, "600000", "classic")
    _reject_first(lab.channel(), q)
    _read(lab, s)


@scenario
def a_rejected_message_from_a_quorum_queue_keeps_its_expiration_in_a_stream(lab: Lab) -> None:
    q, s = _expiring_into_stream(lab, "600000", "quorum")
    _reject_first(lab.channel(), q)
    _read(lab, s)


@scenario
def an_expired_message_keeps_its_expiration_in_a_stream(lab: Lab) -> None:
    _, s = _expiring_into_stream(lab, "1", "classic")
    _read(lab, s)


@scenario
def a_message_that_died_twice_keeps_its_expiration_in_a_stream(lab: Lab) -> None:
    q, s = _expiring_into_stream(lab, "600000", "classic")
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": q}
    first = lab.queue("first", durable=True, arguments=given)
    worker = lab.channel()
    worker.call(Queue.Purge, queue=q)
    worker.call(Confirm.Select)
    worker.publish(b"2", routing_key=first, expiration="700000")
    worker.confirms(1, 1)
    _reject_first(worker, first)
    worker.consume(q)
    (tag,) = worker.deliveries(1)
    worker.reject(tag, requeue=False)
    worker.sync()
    _read(lab, s)
