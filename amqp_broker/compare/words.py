"""What was said as a line to read, and what of it is compared."""

from __future__ import annotations

import re
from typing import Any, Final

from pamqp import base, commands

from amqp_broker.compare.names import DIRECT_REPLY, GENERATED, Names, each_text
from amqp_broker.compare.speech import Content, Said
from amqp_broker.fields import printable
from amqp_broker.message import PROPERTIES

# Fields in which two brokers may differ with the same right: names of their own, counters of their own, who was first.
INCOMPARABLE: Final[dict[type[base.Frame], frozenset[str]]] = {
    commands.Basic.GetOk: frozenset(("delivery_tag", "redelivered", "message_count")),
    commands.Basic.Cancel: frozenset(("consumer_tag",)),
    commands.Basic.Ack: frozenset(("delivery_tag", "multiple")),
    commands.Basic.Nack: frozenset(("delivery_tag", "multiple", "requeue")),
    commands.Connection.OpenOk: frozenset(("known_hosts",)),
    commands.Channel.OpenOk: frozenset(("channel_id",)),
}
# Counts of what is in a queue, which others may be changing just now.
COUNTS: Final = frozenset(("message_count", "consumer_count"))
_SPACES: Final = re.compile(r"\s+")
_TAG: Final = re.compile(r"delivery tag \d+")
_ERLANG_PID: Final = re.compile(r"<\d+\.\d+\.\d+>")


def name_of(method: base.Frame) -> str:
    """`Queue.DeclareOk` as the specification spells it: queue.declare-ok."""
    kind, _, name = method.name.partition(".")
    return kind.lower() + "." + re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def show(said: Said | None) -> str:
    """A line for a terminal; None: nothing was said."""
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


def facts(said: Said, names: Names, with_counts: bool = True) -> tuple[Any, ...]:
    """What of an answer is compared; names of our broker are those of the upstream."""
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


def plain_text(text: str, names: Names) -> str:
    """A reply text without line breaks (RabbitMQ wraps long Erlang terms), process ids, tags and names made up."""
    text = names.as_upstream(_TAG.sub("delivery tag", _ERLANG_PID.sub("<pid>", text)))
    return _SPACES.sub("", text)


def plain_name(name: str, names: Names) -> str:
    return DIRECT_REPLY if name.startswith(DIRECT_REPLY) else names.to_upstreams(name)


def content_facts(content: Content, names: Names) -> tuple[Any, ...]:
    """Properties and body, without the order of headers and without when a message died."""
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


def _typed(value: Any) -> Any:
    """A table's value that can be compared with its type, so that an int of 16 bits is none of 32."""
    if isinstance(value, dict):
        return tuple(sorted((key, _typed(item)) for key, item in value.items()))
    if isinstance(value, list):
        return tuple(map(_typed, value))
    return type(value).__name__, repr(value)


def is_generated(name: str) -> bool:
    return GENERATED.fullmatch(name) is not None
