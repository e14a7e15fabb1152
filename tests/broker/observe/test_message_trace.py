from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.message import Address, Message, NumberedMessage, Properties
from amqp_broker.broker.observe.message_trace import TRACE_EXCHANGE, death_count, is_own
from amqp_broker.broker.observe.trace import Trace
from tests.broker_parts import new_connection, new_message, new_vhost


def test_confirms_of_one_ack_are_reported_one_by_one() -> None:
    heard: list[tuple[Any, ...]] = []

    class Hearer(Trace):
        def confirmed(self, *facts: Any) -> None:
            heard.append(facts)

    trace, connection = Hearer(new_vhost(), (), {}, is_published=False, recorder=None), new_connection()
    first, second = new_message(b"1"), new_message(b"2")
    trace.confirmed_all(connection, 3, {5: first, 6: second})
    assert heard == [(connection, 3, first, 5, True), (connection, 3, second, 6, True)]


@pytest.mark.parametrize(
    ("exchange", "headers", "expected"),
    [
        (TRACE_EXCHANGE, None, True),
        ("", {"x-first-death-exchange": TRACE_EXCHANGE}, True),
        ("", {"x-first-death-exchange": "amq.topic"}, False),
        ("", None, False),
    ],
)
def test_a_message_of_the_trace_has_its_exchange_or_died_there_first(
    exchange: str, headers: dict[str, Any] | None, expected: bool
) -> None:
    message = Message.build(Address(exchange, "q"), Properties(headers=headers), b"")
    assert is_own(message) is expected
    # A numbered one is traced, whatever its headers say.
    numbered = NumberedMessage(message.address, message.content, 1, False, 1)
    assert is_own(numbered) is (exchange == TRACE_EXCHANGE)


@pytest.mark.parametrize(("headers", "expected"), [(None, 1), ({"x-death": [{"count": 3}, {"count": 9}]}, 3)])
def test_the_first_entry_of_x_death_has_the_count(headers: dict[str, Any] | None, expected: int) -> None:
    assert death_count(Message.build(Address("", "q"), Properties(headers=headers), b"")) == expected
