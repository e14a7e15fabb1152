"""Generated names: pairs of an upstream name and the local name of the same object."""

from __future__ import annotations

import re
from typing import Any, Final

from amqp_broker.amqp import nested
from amqp_broker.amqp.message import CONTENT, MalformedProperties, Properties

# Names of queues and consumers, and reply-to names of direct replies, except the pseudo-queue itself.
GENERATED: Final = re.compile(r"amq\.(?:gen|ctag)-[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])|amq\.rabbitmq\.reply-to\.[^' ]+")
DIRECT_REPLY: Final = "amq.rabbitmq.reply-to."
# Applications that generate more names hardly still use the first ones.
NAMES_MAX: Final = 100_000

# Method fields in which a client may send a generated name.
FIELDS: Final = ("queue", "routing_key", "consumer_tag", "exchange", "source", "destination")


class NamePairs:
    """Translates names in both directions; `headers_unknown` are headers that the upstream does not know."""

    def __init__(self, headers_unknown: frozenset[str] = frozenset()) -> None:
        self.headers_unknown = headers_unknown
        self._local: dict[str, str] = {}
        self._upstreams: dict[str, str] = {}

    def pair(self, upstream: str, local: str) -> None:
        """Note that these two names mean the same object."""
        if upstream == local:
            return
        self._local[upstream] = local
        self._upstreams[local] = upstream
        if len(self._local) > NAMES_MAX:
            del self._local[next(iter(self._local))]
        if len(self._upstreams) > NAMES_MAX:
            del self._upstreams[next(iter(self._upstreams))]

    def to_local(self, name: str) -> str:
        return self._local.get(name, name)

    def to_upstreams(self, name: str) -> str:
        return self._upstreams.get(name, name)

    def translate(self, method: Any) -> bool:
        """Replace upstream names in a client's method with local ones; return whether there were any."""
        is_changed = False
        if not self._local:
            return False
        for name in FIELDS:
            value = getattr(method, name, None)
            if isinstance(value, str) and value in self._local:
                setattr(method, name, self._local[value])
                is_changed = True
        arguments = getattr(method, "arguments", None)
        if arguments:
            translated = each_text(arguments, self.to_local)
            if translated != arguments:
                method.arguments = translated
                is_changed = True
        return is_changed

    def translate_header(self, payload: bytes) -> bytes:
        """Return the content header of a publish with local names in CC and BCC."""
        if not self._local or b"CC" not in payload or b"amq." not in payload:
            return payload
        try:
            properties = Properties.decode(payload, CONTENT.size)
        except MalformedProperties:
            return payload
        headers = properties.headers or {}
        for name in ("CC", "BCC"):
            if name in headers:
                headers[name] = each_text(headers[name], self.to_local)
        return payload[: CONTENT.size] + properties.encode()

    def as_upstream(self, text: str) -> str:
        """Return a local text with the upstream's names."""
        return GENERATED.sub(lambda found: self._upstreams.get(found.group(), found.group()), text)


def each_text(value: Any, change: Any) -> Any:
    """Return a table value with `change` applied to each string in it."""
    return nested.mapped(value, lambda key: key, lambda leaf: change(leaf) if isinstance(leaf, str) else leaf)
