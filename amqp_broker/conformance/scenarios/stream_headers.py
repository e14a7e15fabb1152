"""Headers of messages in streams, which RabbitMQ keeps as messages of AMQP 1.0."""

from __future__ import annotations

from pamqp.commands import Confirm

from amqp_broker.conformance.lab import Lab, scenario
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
