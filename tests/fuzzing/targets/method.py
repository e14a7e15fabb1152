"""The payload of a method.

Its decoder refuses it by its own errors, or the values stay what they are when they are encoded.
"""

from __future__ import annotations

from collections.abc import Iterator

from pamqp import base

from amqp_broker.amqp import methods
from amqp_broker.amqp.errors import Disconnect, FrameError
from amqp_broker.amqp.fields import encode_table
from amqp_broker.amqp.message import FRAME_METHOD
from amqp_broker.amqp.methods import decode_method
from tests.fuzzing.target import Target, expect
from tests.mutations import streams


def check(data: bytes) -> None:
    try:
        method = decode_method(data)
    except (Disconnect, FrameError):
        return
    before = facts(method)
    encoded = methods.encode_method(method)
    again = decode_method(encoded)
    expect(facts(again) == before, f"{before} becomes {facts(again)}")
    expect(methods.encode_method(again) == encoded, f"{encoded.hex()} becomes another method")


def facts(method: base.Frame) -> list[object]:
    """Return the name of a method and its fields.

    A table becomes octets, because a number may differ from itself.
    """
    return [method.name, *(encode_table(value) if isinstance(value, dict) else value or None for _, value in method)]


def seeds() -> Iterator[bytes]:
    for stream in streams():
        for piece in stream:
            if piece[0] == FRAME_METHOD:
                yield piece[7:-1]


TARGET = Target(check, seeds, octets_max=600)
