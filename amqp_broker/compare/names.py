"""Names that a broker makes up: which of ours stands for which of the upstream's."""

from __future__ import annotations

import re
from typing import Any, Final

from amqp_broker.message import CONTENT, MalformedProperties, Properties

# Of queues and consumers, and where direct replies go, the pseudo-queue itself aside.
GENERATED: Final = re.compile(r"amq\.(?:gen|ctag)-[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])|amq\.rabbitmq\.reply-to\.[^' ]+")
DIRECT_REPLY: Final = "amq.rabbitmq.reply-to."
# An application that makes up more of them hardly uses the first any more.
NAMES_MAX: Final = 100_000

# Fields of methods that the client may fill with a name that it was given.
FIELDS: Final = ("queue", "routing_key", "consumer_tag", "exchange", "source", "destination")


class Names:
    """Both ways between the two brokers' names, and which headers the upstream has no name for."""

    def __init__(self, headers_unknown: frozenset[str] = frozenset()) -> None:
        self.headers_unknown = headers_unknown
        self._ours: dict[str, str] = {}
        self._upstreams: dict[str, str] = {}

    def pair(self, upstream: str, ours: str) -> None:
        """These two are the same thing."""
        if upstream == ours:
            return
        self._ours[upstream] = ours
        self._upstreams[ours] = upstream
        if len(self._ours) > NAMES_MAX:
            del self._ours[next(iter(self._ours))]
        if len(self._upstreams) > NAMES_MAX:
            del self._upstreams[next(iter(self._upstreams))]

    def to_ours(self, name: str) -> str:
        return self._ours.get(name, name)

    def to_upstreams(self, name: str) -> str:
        return self._upstreams.get(name, name)

    def translate(self, method: Any) -> bool:
        """Put our names for the upstream's into what a client says; whether there were any."""
        is_changed = False
        if not self._ours:
            return False
        for name in FIELDS:
            value = getattr(method, name, None)
            if isinstance(value, str) and value in self._ours:
                setattr(method, name, self._ours[value])
                is_changed = True
        arguments = getattr(method, "arguments", None)
        if arguments:
            translated = each_text(arguments, self.to_ours)
            if translated != arguments:
                method.arguments = translated
                is_changed = True
        return is_changed

    def translate_header(self, payload: bytes) -> bytes:
        """The same for the content header of a publish, whose CC and BCC are routing keys."""
        if not self._ours or b"CC" not in payload or b"amq." not in payload:
            return payload
        try:
            properties = Properties.decode(payload, CONTENT.size)
        except MalformedProperties:
            return payload
        headers = properties.headers or {}
        for name in ("CC", "BCC"):
            if name in headers:
                headers[name] = each_text(headers[name], self.to_ours)
        return payload[: CONTENT.size] + properties.encode()

    def as_upstream(self, text: str) -> str:
        """A text of ours with the upstream's names in it."""
        return GENERATED.sub(lambda found: self._upstreams.get(found.group(), found.group()), text)


def each_text(value: Any, change: Any) -> Any:
    """A table's value with each text in it changed; the types of all else are kept."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: each_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [each_text(item, change) for item in value]
    return value
