"""An expression of `rabbitmqctl eval`, which asks a broker: a value, or one of the tool's own failures."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
from pamqp import commands

from amqp_broker.cli.rabbitmq.command import CTL, Call, Command, Failure
from amqp_broker.cli.rabbitmq.evaluation import EXPRESSIONS, check_expression, evaluate
from amqp_broker.cli.rabbitmq.formatters import erlang
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.cli.shared.http_api import Answered, Place
from amqp_broker.cli.shared.node_finder import Running
from tests.fuzzing import texts
from tests.fuzzing.target import Target, expect
from tests.fuzzing.targets.http import answered_by, new_desk
from tests.mutations import PROTOCOL_HEADER

COMMAND = Command("eval", "<expression>", "", "")


class Asking(Call):
    """A command whose requests go to a broker in this process."""

    def __init__(self, expression: str) -> None:
        super().__init__(CTL, COMMAND, [], lambda name: Running("rabbit@machine", Place(), "4.2.1", True))
        self.arguments = [expression]
        self.desk = new_desk()

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        status, value = answered_by(self.desk, method, target, b"" if body is None else msgspec.json.encode(body))
        expect(status < 500, f"the status of {method} {target} is {status}")
        return Answered(status, value, {})


def check(data: bytes) -> None:
    try:
        call = Asking(data.decode())
    except UnicodeDecodeError:
        return
    try:
        check_expression(call)
        value = evaluate(call)
    except (Failure, Misuse) as error:
        expect(str(error), "an error without a sentence")
        return
    expect(erlang(value) if not isinstance(value, str) else value, "an empty value")
    # Whatever was set, others are served. A client may have to negotiate again.
    peer = call.desk.lab.peer()
    peer.send_bytes(PROTOCOL_HEADER)
    peer.expect(commands.Connection.Start, channel=0)
    expect(call.desk.get("/api/definitions")[0] == 200, "definitions cannot be exported")


def seeds() -> Iterator[bytes]:
    values = {
        "NODE": "node()",
        "RESOURCE": "memory",
        "APPLICATION": "rabbit",
        "KEY": "channel_max",
        "VALUE": "100",
        "NAME": "V",
        "SAME": "V",
        "SHARE": "0.4",
        "OCTETS": "1000",
    }
    for expression in EXPRESSIONS:
        text = expression
        for name, value in values.items():
            text = text.replace(name, value)
        yield f"{text}.".encode()
    for key, value in (
        *(("loopback_users", "[]"), ("default_user_tags", "[administrator]"), ("heartbeat", "30")),
        *(("default_permissions", '[<<".*">>,<<".*">>,<<".*">>]'), ("vm_memory_high_watermark", "0.5")),
        *(("consumer_timeout", "1000"), ("frame_max", "4096"), ("default_consumer_prefetch", "{false,10}")),
    ):
        yield f"application:set_env(rabbit, {key}, {value}).".encode()
        yield f"application:get_env(rabbit, {key}).".encode()


WORDS = (
    *("application:set_env(rabbit,", "application:get_env(rabbit,", "rabbit_alarm:set_alarm(", "node()", "[]).", "}]."),
    *("heartbeat", "channel_max", "loopback_users", "auth_mechanisms", "default_user_tags", "frame_max", '<<"', '">>'),
)


def mutate(chance: Random, data: bytes) -> bytes:
    return texts.mutate(chance, data, WORDS)


TARGET = Target(check, seeds, mutate, words=WORDS, octets_max=300)
