from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.management.documents.properties import InvalidProperty, properties_of


def test_properties_have_the_names_of_amqp() -> None:
    properties = properties_of({"content_type": "text/plain", "priority": 5, "headers": {"a": 1}, "unknown": 1})
    assert properties.as_dict() == {"content_type": "text/plain", "priority": 5, "headers": {"a": fields.Long(1)}}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "properties must be an object"),
        ({"priority": "high"}, ["not_int", "priority"]),
        ({"priority": 300}, "priority must be from 0 to 255, actually was 300"),
        ({"type": 5}, ["not_string", "type"]),
        ({"type": "x" * 256}, "type is longer than 255 octets"),
        ({"headers": "x"}, "headers must be an object"),
        ({"headers": {"a": None}}, "null_not_allowed"),
        ({"headers": {"a": 1 << 64}}, f"argument 'a' is {1 << 64}, which 64 bits do not hold"),
    ],
)
def test_an_invalid_property_has_the_reason_of_rabbitmq(given: Any, reason: Any) -> None:
    with pytest.raises(InvalidProperty) as caught:
        properties_of(given)
    assert caught.value.reason == reason
