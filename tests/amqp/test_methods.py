from __future__ import annotations

import math
from typing import Any

import pytest
from pamqp import base, commands, frame

from amqp_broker.amqp.errors import Disconnect, FrameError
from amqp_broker.amqp.fields import Float32, Long, Short, encode_table
from amqp_broker.amqp.message import FRAME
from amqp_broker.amqp.methods import AccessRequest, AccessRequestOk, decode_method, encode_method, name_of


def payload_of(method: base.Frame) -> bytes:
    return frame.marshal(method, 1)[FRAME.size : -1]


def values_of(method: base.Frame) -> dict[str, object]:
    return dict(method)


def test_names_of_methods_are_those_of_the_specification() -> None:
    kinds: list[type[base.Frame]] = [commands.Queue.DeclareOk, commands.Basic.GetEmpty, commands.Basic.RecoverAsync]
    assert [name_of(kind) for kind in kinds] == ["queue.declare-ok", "basic.get-empty", "basic.recover-async"]


def test_a_method_of_pamqps_is_read() -> None:
    method = decode_method(payload_of(commands.Queue.Declare(queue="q", exclusive=True, nowait=True)))
    assert isinstance(method, commands.Queue.Declare)
    assert values_of(method) == {
        "ticket": 0,
        "queue": "q",
        "passive": False,
        "durable": False,
        "exclusive": True,
        "auto_delete": False,
        "nowait": True,
        "arguments": {},
    }


def test_a_method_is_written_as_pamqp_writes_it() -> None:
    method = commands.Exchange.Declare(exchange="x", exchange_type="topic", durable=True, internal=True)
    assert encode_method(method) == payload_of(method)


def test_a_method_without_fields_is_its_number() -> None:
    assert encode_method(commands.Tx.Commit()) == b"\x00\x5a\x00\x14"
    assert isinstance(decode_method(b"\x00\x5a\x00\x14"), commands.Tx.Commit)


def test_a_long_string_is_octets() -> None:
    method = decode_method(payload_of(commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")))
    assert values_of(method)["response"] == b"\0guest\0guest"


def test_long_strings_that_are_not_text_are_written_and_read() -> None:
    method = commands.Connection.Secure(challenge=b"\xff\x00\xfe")  # type: ignore[arg-type]
    assert values_of(decode_method(encode_method(method))) == {"challenge": b"\xff\x00\xfe"}


def test_the_types_of_arguments_are_kept() -> None:
    method = commands.Queue.Declare(queue="q", arguments={"a": Short(1), "b": Long(1)})
    arguments = values_of(decode_method(encode_method(method)))["arguments"]
    assert isinstance(arguments, dict)
    assert [type(value) for value in arguments.values()] == [Short, Long]


def test_consecutive_bits_share_an_octet() -> None:
    encoded = encode_method(commands.Basic.Nack(1, multiple=True, requeue=True))
    assert encoded[-1] == 0b11
    assert encode_method(commands.Basic.Nack(1, multiple=False, requeue=True))[-1] == 0b10


def test_unused_bits_of_the_octet_are_passed_over() -> None:
    method = decode_method(encode_method(commands.Basic.Ack(1, multiple=False))[:-1] + b"\xfe")
    assert values_of(method)["multiple"] is False


def test_names_that_pamqp_would_not_send_are_sent() -> None:
    method = commands.Queue.DeclareOk("q", 0, 0)
    method.queue = "naïve?"
    assert values_of(decode_method(encode_method(method)))["queue"] == "naïve?"


def test_access_request_is_known_though_it_left_amqp_with_0_9() -> None:
    method = decode_method(b"\x00\x1e\x00\x0a" + b"\x05/data" + b"\x1e")
    assert isinstance(method, AccessRequest)
    assert values_of(method) == {
        "realm": "/data",
        "exclusive": False,
        "passive": True,
        "active": True,
        "write": True,
        "read": True,
    }


def test_access_request_ok_carries_a_ticket() -> None:
    ok = AccessRequestOk()
    ok.ticket = 1
    assert encode_method(ok) == b"\x00\x1e\x00\x0b\x00\x01"


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x00\x3c\x00"])
def test_a_truncated_number_is_a_frame_error(payload: bytes) -> None:
    with pytest.raises(FrameError, match="unknown_frame"):
        decode_method(payload)


@pytest.mark.parametrize("payload", [b"\x00\x00\x00\x00", b"\x00\x3c\x00\x0c", b"\xff\xff\xff\xff rest"])
def test_a_method_that_amqp_does_not_have_drops_the_peer(payload: bytes) -> None:
    with pytest.raises(Disconnect):
        decode_method(payload)


def test_a_malformed_table_drops_the_peer() -> None:
    payload = payload_of(commands.Queue.Declare(queue="q", arguments={"a": "text"}))
    with pytest.raises(Disconnect):
        decode_method(payload[:-1])


@pytest.mark.parametrize("value", [math.nan, Float32(-math.inf), [1, {"b": math.inf}]])
def test_a_number_that_erlang_does_not_have_drops_the_peer(value: Any) -> None:
    payload = payload_of(commands.Queue.Declare(queue="q"))[:-4] + encode_table({"a": value})
    with pytest.raises(Disconnect, match="not finite"):
        decode_method(payload)


@pytest.mark.parametrize("cut", [1, 2, 8, 9])
def test_a_truncated_method_cannot_be_decoded(cut: int) -> None:
    payload = payload_of(commands.Basic.Ack(1, True))
    with pytest.raises(FrameError) as caught:
        decode_method(payload[:-cut])
    octets = ",".join(map(str, payload[4:-cut]))
    assert str(caught.value) == f"cannot decode <<{octets}>>"


def test_a_string_that_reaches_beyond_the_payload_cannot_be_decoded() -> None:
    with pytest.raises(FrameError, match="cannot decode"):
        decode_method(b"\x00\x32\x00\x0b" + b"\x05q")


def test_octets_behind_the_fields_cannot_be_decoded() -> None:
    with pytest.raises(FrameError, match="cannot decode <<0>>"):
        decode_method(payload_of(commands.Tx.Select()) + b"\x00")


def test_names_must_be_utf_8() -> None:
    payload = b"\x00\x32\x00\x0a" + b"\x00\x00" + b"\x02\xff\xfe" + b"\x00" + b"\x00\x00\x00\x00"
    with pytest.raises(FrameError) as caught:
        decode_method(payload)
    assert str(caught.value) == "Malformed UTF-8 in shortstr"
    assert caught.value.method_id == 0
