"""Programs with the answers of RabbitMQ, as JSON: `recorded/duel.jsonl.gz` has a line for each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pamqp import base

from amqp_broker.conformance.duel.player import Lines
from amqp_broker.conformance.duel.steps import At, Call, End, Http, Name, Program, Publish, Settle, Step, Wait
from amqp_broker.conformance.wire import METHOD_BY_NAME, Field

RECORDED = Path(__file__).parents[1] / "recorded" / "duel.jsonl.gz"
_STEPS = {step.__name__: step for step in (Call, Publish, Settle, End, Wait, Http)}


@dataclass(frozen=True)
class Recorded:
    """A program, the windows of its play, and the oracles whose play has these windows."""

    program: Program
    windows: list[Lines]
    oracles: tuple[str, ...]


def load() -> list[Recorded]:
    """Return all programs; the number of one is its index and 1."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        return [_read(json.loads(line)) for line in file]


def save(recorded: Iterable[Recorded]) -> None:
    """Replace the records; equal records are equal octets."""
    lines = "".join(f"{json.dumps(_written(one), ensure_ascii=False)}\n" for one in recorded)
    RECORDED.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _written(recorded: Recorded) -> Any:
    return {
        "oracles": recorded.oracles,
        "program": [to_json(step) for step in recorded.program],
        "windows": recorded.windows,
    }


def _read(value: Any) -> Recorded:
    return Recorded(tuple(from_json(step) for step in value["program"]), value["windows"], tuple(value["oracles"]))


def to_json(step: Step) -> Any:
    """Return a step as a list: its class, then its fields."""
    return [type(step).__name__, *(_value_to_json(getattr(step, field.name)) for field in fields(step))]


def from_json(value: Any) -> Step:
    kind, *values = value
    made: Step = _STEPS[kind](*map(_value_from_json, values))
    return made


def _value_to_json(value: Any) -> Any:
    match value:
        case Name():
            return {"name": str(value)}
        case At(connection, channel):
            return {"at": [connection, channel]}
        case type() if issubclass(value, base.Frame):
            return {"method": value.name}
        case Field(tag, inner):
            return {"field": [tag, _value_to_json(inner)]}
        case dict():
            return {"table": [[key, _value_to_json(item)] for key, item in value.items()]}
        case list():
            return [_value_to_json(item) for item in value]
    return value


def _value_from_json(value: Any) -> Any:
    match value:
        case {"name": name}:
            return Name(name)
        case {"at": [connection, channel]}:
            return At(connection, channel)
        case {"method": name}:
            return METHOD_BY_NAME[name]
        case {"field": [tag, inner]}:
            return Field(tag, _value_from_json(inner))
        case {"table": items}:
            return {key: _value_from_json(item) for key, item in items}
        case list():
            return [_value_from_json(item) for item in value]
    return value
