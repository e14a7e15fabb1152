"""Methods with their content, and notes of other input."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic

from amqp_broker.conformance.received import END, Received, Stopped


def test_a_content_is_whole_when_its_last_byte_is_there() -> None:
    message = Received(Basic.Deliver)
    assert not message.is_whole
    message.properties, message.body_size, message.body = {}, 2, b"a"
    assert not message.is_whole
    message.body = b"ab"
    assert message.is_whole


def test_a_method_without_the_expected_field_stops_the_scenario() -> None:
    with pytest.raises(Stopped, match=r"no delivery_tag in basic\.get-empty"):
        Received(Basic.GetEmpty)["delivery_tag"]
    with pytest.raises(Stopped, match="no delivery_tag in the broker closed the socket"):
        END["delivery_tag"]


def test_a_message_is_shown_as_two_lines() -> None:
    message = Received(Basic.Deliver, {"delivery_tag": 1}, {"priority": 3}, b"x")
    assert list(message.lines()) == ["basic.deliver delivery_tag=1", "    priority=3 body=b'x'"]
    assert list(END.lines()) == ["the broker closed the socket"]
