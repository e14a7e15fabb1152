from __future__ import annotations

from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.amqp.stamped_message import StampedMessage


def test_a_stream_keeps_the_message_without_the_timestamp() -> None:
    properties = Properties(headers={"a": 1}, timestamp=5, expiration="60000")
    message = Message.build(Address("x", "k"), properties, b"body")
    properties.timestamp = None
    stamped = StampedMessage.with_list(message, properties.encode())
    assert stamped.timestamp == 5
    kept = stamped.for_streams()
    assert not isinstance(kept, StampedMessage)
    assert (kept.timestamp, kept.properties().headers, kept.body) == (None, {"a": 1}, b"body")
