from __future__ import annotations

from amqp_broker.broker.durability.damaged import DamagedMessage
from tests.broker_parts import new_message


def test_the_place_of_a_damaged_message_has_its_size_and_nothing_else() -> None:
    message = DamagedMessage.of(1234)
    assert (message.is_damaged, message.body_bytes, message.body) == (True, 1234, b"")
    assert not new_message(b"whole").is_damaged
