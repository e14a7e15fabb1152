"""The transcript of a scenario, as lines that do not depend on the machine, the time or the run.

`a1> ` marks a method sent by connection a on channel 1, `a1< ` a received one; channel 0 is the connection itself.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from amqp_broker.conformance.terms import Terms
from amqp_broker.conformance.wire import Field, Method, Pairs

BODY_SHOWN_MAX = 64

# Generated names by their exact format: another format is not masked and shows as a difference.
_GENERATED = re.compile(r"amq\.(?:gen|ctag)-[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
# Reply-to names of direct replies, whose format differs between brokers.
_REPLY_TO = re.compile(r"(?<=')amq\.rabbitmq\.reply-to\.(?!nonsense)[^']+")
_SERVER_PROPERTY = re.compile(r"\b(cluster_name|copyright|information|platform|version): S'[^']*'")
# A set as words, which RabbitMQ lists in no fixed order.
_MECHANISMS = re.compile(r"\bmechanisms='([^']*)'")
# The time of a death in x-death.
_TIME_OF_DEATH = re.compile(r"\btime: T\d{10}\b")
# The time of a publish in seconds, and of a publish or delivery in ms, where the broker notes it.
_TIMESTAMP = re.compile(r"(?<=\btimestamp=)(\d{10})\b|(?:(?<=\btimestamp_in_ms: l)|(?<=-sent-time: l))(\d{10})\d{3}\b")
_RECENT_S = 3600
_NODE = re.compile(r"\b(x-routed-by: S)'[^'@]+@[^']+'")
_ERLANG_PID = re.compile(r"<\d+\.\d+\.\d+>")


class Transcript:
    """The lines of one run of one scenario against one broker."""

    def __init__(self, prefix: str, terms: Terms | None = None) -> None:
        self.prefix = prefix
        self.terms = terms or Terms()
        self.lines: list[str] = []
        self.is_muted = False
        # The last refusal that was not recorded.
        self.unrecorded_close = ""
        self._generated: dict[str, str] = {}

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"

    def record(self, line: str) -> None:
        if not self.is_muted:
            self.lines.append(self._mask(line))
        elif ".close reply_code=" in line and "< " in line:
            self.unrecorded_close = self._mask(line)

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Pause the recording for steps that are irrelevant to the scenario."""
        before, self.is_muted = self.is_muted, True
        try:
            yield
        finally:
            self.is_muted = before

    def _mask(self, line: str) -> str:
        line = self.terms.mask(line.replace(self.prefix, ""))
        line = _GENERATED.sub(self._numbered, line)
        line = _REPLY_TO.sub(self._numbered, line)
        line = _ERLANG_PID.sub("<pid>", line)
        line = _TIME_OF_DEATH.sub("time: T<now>", line)
        line = _NODE.sub(r"\1<node>", _TIMESTAMP.sub(_recent, line))
        if "connection.start " in line:
            line = _SERVER_PROPERTY.sub(r"\1: S<any>", line)
            line = _MECHANISMS.sub(lambda match: f"mechanisms={{{', '.join(sorted(match[1].split(' ')))}}}", line)
        return line

    def _numbered(self, match: re.Match[str]) -> str:
        """Return the text with numbered generated names, so that equal names remain equal."""
        name = match.group()
        kind = "amq.rabbitmq.reply-to" if name.startswith("amq.rabbitmq") else name.split("-")[0]
        return self._generated.setdefault(name, f"{kind}-<{len(self._generated) + 1}>")


def _recent(match: re.Match[str]) -> str:
    """Return a word for a time of this run; other times are chosen by the scenario."""
    return "<now>" if abs(int(match[1] or match[2]) - time.time()) < _RECENT_S else match[0]


def show_method(method: Method) -> str:
    """Return a method's name as the specification spells it: queue.declare-ok."""
    class_name, name = method.name.split(".")
    return class_name.lower() + "." + re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def show_fields(fields: Mapping[str, Any]) -> str:
    return "".join(f" {name}={show(value)}" for name, value in fields.items())


def show_content(properties: Mapping[str, Any], body: bytes) -> str:
    if len(body) <= BODY_SHOWN_MAX:
        return f"{show_fields(properties)} body={body!r}"
    return f"{show_fields(properties)} body={len(body)} bytes, sha1 {hashlib.sha1(body).hexdigest()[:12]}"


def show(value: Any) -> str:
    """Return a method field, property or table value as text; table values with their tags: `{n: I5, s: S'x', deep:
    F{}}`.
    """
    match value:
        case bool():
            return str(value).lower()
        case Field(tag, inner):
            return tag + ("" if inner is None else show(inner))
        case Pairs():
            if {"count", "queue", "reason"} <= {key for key, _ in value}:
                # A death: RabbitMQ sorts its fields only if another one follows.
                value = Pairs(sorted(value, key=itemgetter(0)))
            return "{" + ", ".join(f"{key}: {show(item)}" for key, item in value) + "}"
        case list():
            return "[" + ", ".join(show(item) for item in value) + "]"
    return repr(value)
