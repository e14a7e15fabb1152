"""Methods as readable lines (`show`), and the facts of them that are compared (`facts`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pamqp import base, commands

from amqp_broker.amqp import nested
from amqp_broker.amqp.fields import printable
from amqp_broker.amqp.message import PROPERTIES
from amqp_broker.amqp.methods import name_of
from amqp_broker.compare.method_reader import Content, Received
from amqp_broker.compare.name_pairs import DIRECT_REPLY, GENERATED, NamePairs, each_text

# Fields in which two correct brokers may differ: generated names, counters, order of concurrent events.
INCOMPARABLE: Final[dict[type[base.Frame], frozenset[str]]] = {
    commands.Basic.GetOk: frozenset(("delivery_tag", "redelivered", "message_count")),
    commands.Basic.Cancel: frozenset(("consumer_tag",)),
    commands.Basic.Ack: frozenset(("delivery_tag", "multiple")),
    commands.Basic.Nack: frozenset(("delivery_tag", "multiple", "requeue")),
    commands.Connection.OpenOk: frozenset(("known_hosts",)),
    commands.Channel.OpenOk: frozenset(("channel_id",)),
}
# Counts that other clients may be changing.
COUNTS: Final = frozenset(("message_count", "consumer_count"))
_SPACES: Final = re.compile(r"\s+")
_TAG: Final = re.compile(r"delivery tag \d+")
_ERLANG_PID: Final = re.compile(r"<\d+\.\d+\.\d+>")


def show(said: Received | None) -> str:
    """Return a method as one printable line; "nothing" for None."""
    if said is None:
        return "nothing"
    method = said.method
    words = [name_of(method)]
    for name in type(method).attributes():
        value = getattr(method, name)
        if (
            value is None
            or value is False
            or value in ("", {})
            or name in ("ticket", "response", "client_properties", "mechanisms")
        ):
            continue
        words.append(name if value is True else f"{name}={value!r}")
    if said.content is not None:
        words.append(show_content(said.content))
    return printable(" ".join(words))


def show_content(content: Content) -> str:
    words = [f"{name}={value!r}" for name, value in _properties(content)]
    return " ".join([*words, f"body={content.body_bytes} octets, {content.digest.hex()[:8]}"])


def _properties(content: Content) -> list[tuple[str, Any]]:
    if content.properties is None:
        return [("properties", "unreadable")]
    values = ((name, getattr(content.properties, name)) for name, _, _ in PROPERTIES)
    return [(name, value) for name, value in values if value is not None]


def facts(said: Received, names: NamePairs, with_counts: bool = True) -> tuple[Any, ...]:
    """Return the compared parts of an answer, with the upstream's names."""
    method = said.method
    skipped = INCOMPARABLE.get(type(method), frozenset())
    found: list[Any] = [method.name]
    for name in type(method).attributes():
        if name in skipped or (name in COUNTS and not with_counts):
            continue
        value = getattr(method, name)
        if name == "reply_text":
            value = plain_text(value, names)
        elif isinstance(value, str):
            value = plain_name(value, names)
        found.append((name, value))
    if said.content is not None:
        found.append(content_facts(said.content, names))
    return tuple(found)


def plain_text(text: str, names: NamePairs) -> str:
    """Return a reply text without process ids, tags, generated names and spaces.

    RabbitMQ wraps long Erlang terms, so spaces differ.
    """
    text = names.as_upstream(_TAG.sub("delivery tag", _ERLANG_PID.sub("<pid>", text)))
    return _SPACES.sub("", text)


def plain_name(name: str, names: NamePairs) -> str:
    return DIRECT_REPLY if name.startswith(DIRECT_REPLY) else names.to_upstreams(name)


def content_facts(content: Content, names: NamePairs) -> tuple[Any, ...]:
    """Return properties and body, without the order of headers and the times of deaths."""
    found: list[Any] = [content.body_bytes, content.digest]
    for name, value in _properties(content):
        if name == "headers":
            value = each_text(value, lambda text: plain_name(text, names))
            deaths = value.get("x-death")
            if isinstance(deaths, list):
                value["x-death"] = [
                    {key: item for key, item in death.items() if key != "time"} if isinstance(death, dict) else death
                    for death in deaths
                ]
            for unknown in names.headers_unknown:
                value.pop(unknown, None)
            value = _typed(value)
        elif isinstance(value, str):
            value = plain_name(value, names)
        found.append((name, value))
    return tuple(found)


def _typed(value: Any) -> str:
    """Return a table's text, without the order of keys, and with the types of values."""
    return nested.joined(value, _typed_parts)


def _typed_parts(block: Any) -> Iterator[Any]:
    yield "table(" if isinstance(block, dict) else "array("
    for key, item in sorted(block.items(), key=lambda pair: pair[0]) if isinstance(block, dict) else enumerate(block):
        yield f"{key!r}: "
        yield item if isinstance(item, (dict, list)) else f"{type(item).__name__} {item!r}, "
    yield "), "


def is_generated(name: str) -> bool:
    return GENERATED.fullmatch(name) is not None
