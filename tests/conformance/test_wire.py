"""Octets of methods and contents, right and wrong."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.wire import Field, Pairs


def test_a_method_is_read_as_it_was_written() -> None:
    fields = {"ticket": 0, "queue": "q", "passive": False, "durable": True, "exclusive": False}
    payload = wire.method_payload(Queue.Declare, {**fields, "arguments": {"x-max-length": 3}})
    method, read = wire.read_method(payload)
    assert method is Queue.Declare
    rest = {"auto_delete": False, "nowait": False, "arguments": [("x-max-length", Field("I", 3))]}
    assert read == {**fields, **rest}


def test_a_table_keeps_order_and_repeated_keys() -> None:
    pairs = [("b", 1), ("a", Field("s", -2)), ("b", None)]
    assert wire.Reader(wire.table(pairs)).table() == [
        ("b", Field("I", 1)),
        ("a", Field("s", -2)),
        ("b", Field("V", None)),
    ]


@pytest.mark.parametrize(
    ("value", "tag"),
    [(True, "t"), (1, "I"), (2**31, "l"), (0.5, "d"), ("x", "S"), (b"x", "x"), ({}, "F"), ([], "A"), (None, "V")],
)
def test_a_plain_value_has_the_tag_that_pika_gives_it(value: Any, tag: str) -> None:
    assert wire.Reader(wire.tagged(value)).tagged().tag == tag


def test_a_content_header_has_only_the_properties_that_are_given() -> None:
    payload = wire.header_payload(7, {"delivery_mode": 2, "headers": {"k": "v"}})
    assert wire.read_header(payload) == (7, {"headers": Pairs([("k", Field("S", "v"))]), "delivery_mode": 2})


def test_a_field_that_the_method_lacks_is_a_mistake_of_the_scenario() -> None:
    with pytest.raises(AssertionError, match=r"Basic\.Ack has no {'tag'}"):
        wire.method_payload(Basic.Ack, {"tag": 1})


def test_access_request_is_known() -> None:
    method, fields = wire.read_method(wire.method_payload(wire.Access.RequestOk, {"ticket": 1}))
    assert (method, fields) == (wire.Access.RequestOk, {"ticket": 1})
