"""A capture is read as it was written, and an invalid one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.management.documents.capture_file import (
    CaptureFileError,
    Header,
    Skipped,
    header_line,
    message_line,
    read,
    read_header,
    skipped_line,
)

HEADER = header_line("/", 1_700_000_000_000)
ORDER = {"at_us": 1, "exchange": "", "routing_key": "orders", "body": "x"}


def captured(body: bytes = b"", *, exchange: str = "", routing_key: str = "", **properties: Any) -> CapturedMessage:
    return CapturedMessage(
        5, Message.build(Address(exchange, routing_key), Properties(**properties), body), True, "alice"
    )


def facts(one: Any) -> tuple[Any, ...]:
    message = one.message
    octets = message.property_list, message.body
    return one.at_us, message.exchange, message.routing_key, one.mandatory, one.user, *octets


def written(**told: Any) -> bytes:
    return json.dumps({**ORDER, **told}).encode() + b"\n"


@pytest.mark.parametrize(
    "one",
    [
        captured(),
        captured(b"text \xc3\xa4\n", exchange="e", routing_key="a.b", content_type="text/plain", priority=3),
        captured(b"\xff\x00", headers={"n": 1, "long": fields.Long(1), "octets": b"\xff", "none": None, "list": [1.5]}),
        captured(routing_key="no \udcff utf-8", correlation_id="\udcff", timestamp=1_700_000_000),
        captured(b"x" * 300_000),
    ],
)
def test_a_message_is_read_back_unchanged(one: CapturedMessage) -> None:
    (again,) = read([HEADER, message_line(one)])
    assert facts(again) == facts(one)


@given(st.binary(max_size=50), st.dictionaries(st.text(max_size=5), st.integers(-(2**31), 2**31 - 1) | st.text()))
def test_any_body_and_headers_are_read_back_unchanged(body: bytes, headers: dict[str, Any]) -> None:
    one = captured(body, headers=headers)
    (again,) = read([HEADER, message_line(one)])
    assert facts(again) == facts(one)


def test_a_line_has_encoded_properties_only_where_json_is_not_exact() -> None:
    told = json.loads(message_line(captured(b"x", routing_key="k", headers={"a": "b", "n": fields.Long(7)})))
    assert told == {
        "at_us": 5,
        "exchange": "",
        "routing_key": "k",
        "mandatory": True,
        "user": "alice",
        "properties": {"headers": {"a": "b", "n": 7}},
        "body": "x",
    }
    told = json.loads(message_line(captured(b"\xff", headers={"n": 7})))
    assert (told["properties"], told["body_base64"]) == ({"headers": {"n": 7}}, "/w==")
    assert "properties_base64" in told


def test_a_line_may_be_written_by_hand() -> None:
    (one,) = read([HEADER, b'{"at_us": 0, "exchange": "e", "routing_key": "k", "body": "x"}\n'])
    assert facts(one) == (0, "e", "k", False, "", b"\0\0", b"x")


def test_skipped_messages_are_counted_in_their_place() -> None:
    assert list(read([HEADER, skipped_line(3)])) == [Skipped(3)]


def test_the_header_has_the_vhost_and_the_time() -> None:
    assert read_header(header_line("shöp", 17)) == Header("shöp", 17)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "this is not a capture file: it is empty"),
        ([b"amqp\n"], "this is not a capture file: its first line is not JSON"),
        ([b"[]\n"], "this is not a capture file: its first line is not a JSON object"),
        ([b"{}\n"], "this is not a capture file: its first line lacks the format 'amqp-broker capture'"),
        (
            [HEADER.replace(b'"version": 1', b'"version": 2')],
            "this capture file has version 2; only version 1 is supported",
        ),
        ([b'{"format": "amqp-broker capture", "version": 1}\n'], "line 1: vhost and started_at_ms are missing"),
        ([HEADER, written(), written()[:30]], "line 3 is incomplete"),
        ([HEADER, b"[" * 100_000 + b"\n"], "line 2 is not JSON"),
        ([HEADER, b"1\n"], "line 2 is not a JSON object"),
        ([HEADER, written(at_us=-1)], "line 2: at_us must be a non-negative whole number"),
        ([HEADER, written(at_us=True)], "line 2: at_us must be"),
        ([HEADER, written(at_us=7), written(at_us=6)], "line 3: at_us is 6, before the line above it"),
        ([HEADER, written(color="red")], "line 2: unknown fields: color"),
        ([HEADER, written(exchange=None)], "line 2: exchange must be a string of at most 255 octets"),
        ([HEADER, written(routing_key="ä" * 128)], "line 2: routing_key must be a string of at most 255 octets"),
        ([HEADER, written(routing_key="\ud800")], "line 2: routing_key is not valid text"),
        ([HEADER, written(mandatory=1)], "line 2: user must be a string, and mandatory true or false"),
        ([HEADER, written(properties=[])], "line 2: properties must be an object"),
        ([HEADER, written(properties={"mesage_id": "1"})], "line 2: unknown properties: mesage_id"),
        ([HEADER, written(properties={"priority": "1"})], "line 2: priority must be a whole number"),
        ([HEADER, written(properties={"type": 1})], "line 2: type must be a string"),
        ([HEADER, written(properties={"priority": 256})], "line 2: priority must be from 0 to 255"),
        ([HEADER, written(properties={"type": "\ud800"})], "line 2: a property is not valid text"),
        ([HEADER, written(properties={"headers": {"x": 1 << 70}})], "line 2: argument 'x' is"),
        ([HEADER, written(properties={"headers": {"x": "y" * 140_000}})], "line 2: the properties do not fit"),
        ([HEADER, written(properties_base64="?")], "line 2: properties_base64 is not base64"),
        ([HEADER, written(properties_base64="/w==")], "line 2: properties_base64: malformed property list"),
        ([HEADER, written(body_base64="eA==")], "line 2: there must be body or body_base64"),
        ([HEADER, written(body=1)], "line 2: body is not valid text"),
        (
            [HEADER, b'{"at_us": 1, "exchange": "", "routing_key": "", "body_base64": 7}\n'],
            "line 2: body_base64 is not",
        ),
        ([HEADER, b'{"skipped": "many"}\n'], "line 2: skipped must be a non-negative whole number"),
    ],
)
def test_an_invalid_capture_file_is_refused_with_the_line(lines: list[bytes], reason: str) -> None:
    with pytest.raises(CaptureFileError) as error:
        list(read(lines))
    assert str(error.value).startswith(reason)
