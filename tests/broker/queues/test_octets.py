"""The sizes with properties were seen in 4.3.6 (rabbit_fifo:overview)."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.queues.octets import octets_of
from tests.broker_parts import new_message


@pytest.mark.parametrize(
    ("properties", "octets"),
    [
        ({}, 2),
        ({"delivery_mode": 2}, 3),
        ({"delivery_mode": 2, "app_id": "abc"}, 7),
        ({"headers": {"a": 1}}, 13),
    ],
    ids=str,
)
def test_flags_and_list_of_the_properties_count_on_demand(properties: dict[str, Any], octets: int) -> None:
    message = new_message(b"12345", **properties)
    assert octets_of(message, with_properties=False) == 5
    assert octets_of(message, with_properties=True) == octets + 5
