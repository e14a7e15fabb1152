"""Faults that are planted into the broker, one for each target: its fuzzer has to find them.

A check that looks at nothing misses them, and most are missed by inputs of the corpus that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pamqp import commands

from amqp_broker.amqp import fields, methods, property_list
from amqp_broker.cli.rabbitmq import evaluation, formatters
from amqp_broker.cli.rabbitmq.command import Call
from amqp_broker.management.documents import capture_file, importing, snapshots
from amqp_broker.management.http.request import Request
from amqp_broker.session.session import Session
from amqp_broker.settings.sources import conf_keys
from amqp_broker.shovel import amqp_client
from amqp_broker.store import codec, salvage

LONG_NAMES = 100_000
METHODS = ["Connection.Start", "Connection.Tune", "Connection.OpenOk"]


class Fault(NamedTuple):
    """A part of the broker, and a function that returns a wrong one.

    `executions` suffice to find the fault, whatever the seed: about ten times as many as most seeds need. Any change of
    the code under test is another seed.
    """

    owner: Any
    name: str
    make: Callable[[Any], Any]
    executions: int = 400_000

    def plant(self) -> None:
        setattr(self.owner, self.name, self.make(getattr(self.owner, self.name)))


def lose_the_sign(decode: Callable[..., Any]) -> Any:
    def wrong(data: bytes, offset: int) -> Any:
        value, end = decode(data, offset)
        return (fields.Short(abs(value)) if isinstance(value, fields.Short) else value), end

    return wrong


def lose_a_bit(encode: Callable[..., bytes]) -> Any:
    def wrong(method: Any) -> bytes:
        flags = [name for name, value in method if value is True]
        if len(flags) > 2:
            setattr(method, flags[0], False)
        return encode(method)

    return wrong


def stumble_over_a_channel(send: Callable[..., None]) -> Any:
    def wrong(self: Session, number: int, method: Any) -> None:
        if isinstance(method, commands.Channel.OpenOk) and number > 2:
            raise ValueError("a bug")
        send(self, number, method)

    return wrong


def require_a_key(read: Callable[..., None]) -> Any:
    def wrong(self: Any, entry: Any) -> None:
        assert entry.values["destination_type"]
        read(self, entry)

    return wrong


def require_a_host(address: Callable[[str], tuple[str, str]]) -> Any:
    def wrong(text: str) -> tuple[str, str]:
        assert ":" not in text or text.rpartition(":")[0][0]
        return address(text)

    return wrong


def stumble_over_digits(value_of: Callable[[Call, str], Any]) -> Any:
    def wrong(call: Call, key: str) -> Any:
        assert not any(character.isdigit() for character in key)
        return value_of(call, key)

    return wrong


def stumble_over_numbers(read: Callable[..., Any]) -> Any:
    def wrong(self: Request, shape: Any) -> Any:
        for key, value in self.json().items():
            if isinstance(value, float):
                raise TypeError(key)
        return read(self, shape)

    return wrong


FAULTS = {
    "field_table": Fault(fields, "_decode_value", lose_the_sign),
    "property_list": Fault(property_list, "_have_order", lambda right: lambda keys: b"".join(keys).isascii()),
    "method": Fault(methods, "encode_method", lose_a_bit),
    "client": Fault(amqp_client, "ANSWERS", lambda right: dict.fromkeys(right, METHODS), 50_000),
    "session": Fault(Session, "send", stumble_over_a_channel, 100_000),
    "http": Fault(Request, "read", stumble_over_numbers, 30_000),
    "definitions": Fault(importing.Import, "_read_binding", require_a_key, 50_000),
    "conf": Fault(conf_keys, "address", require_a_host),
    "erlang": Fault(formatters, "_escaped", lambda right: lambda text, mark: text),
    "eval": Fault(evaluation, "value_of", stumble_over_digits, 100_000),
    "record": Fault(codec, "_table_in", lambda right: fields.decode_table),
    "store_file": Fault(salvage, "_is_sealed", lambda right: lambda key, value: len(value) > 8, 30_000),
    "capture": Fault(capture_file, "SHORTSTR_BYTES_MAX", lambda right: LONG_NAMES, 200_000),
    "snapshot": Fault(snapshots, "SHORTSTR_BYTES_MAX", lambda right: LONG_NAMES, 600_000),
}
