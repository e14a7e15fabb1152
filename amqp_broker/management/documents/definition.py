"""One object of a document of definitions, with checked access to its values."""

from __future__ import annotations

import re
from typing import Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AMQPError
from amqp_broker.broker.admin.access import MD5, SHA256
from amqp_broker.broker.admin.mirroring import MIRROR_KEYS
from amqp_broker.management.documents.values import SHORTSTR_BYTES_MAX, table_of

REMEDY: Final = (
    "RabbitMQ 4 has removed mirrored queues: leave out the keys ha-*, or use quorum queues (--compat 3.13 takes them)"
)


class DefinitionsError(ValueError):
    """Definitions cannot be imported; the text names the object. The HTTP API answers 400."""


class Entry:
    """One object of a document: its values, and its title in messages."""

    __slots__ = ("title", "values")

    def __init__(self, title: str, values: Any) -> None:
        """Raise DefinitionsError if the values are no object."""
        self.title = title
        if not isinstance(values, dict):
            raise DefinitionsError(f"{title} should be an object, actually was {fields.json_term(values)[:60]}")
        self.values = values

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if isinstance(value, str):
            return value
        raise self._wrong(key, "a string", value)

    def name(self, key: str = "name") -> str:
        """Return a name that fits into a shortstr. Raise DefinitionsError."""
        value = self.text(key)
        if len(value.encode()) > SHORTSTR_BYTES_MAX:
            raise DefinitionsError(f"{key} of {self.title} is longer than {SHORTSTR_BYTES_MAX} octets")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        raise self._wrong(key, "true or false", value)

    def object(self, key: str) -> dict[str, Any]:
        # Erlang writes an empty object as an empty array.
        value = self.values.get(key) or {}
        if isinstance(value, dict):
            return value
        raise self._wrong(key, "an object", value)

    def given_object(self, key: str) -> dict[str, Any]:
        """Return an object that must be written as such, even if it is empty. Raise DefinitionsError."""
        value = self.values.get(key)
        if isinstance(value, dict):
            return value
        raise self._wrong(key, "an object", value)

    def table(self, key: str) -> fields.Table:
        """Return the field table of an object, which may be left out, but not null. Raise as `table_of` does."""
        if key in self.values and self.values[key] is None:
            raise self._wrong(key, "an object", None)
        return table_of(self.values.get(key))

    def tags(self) -> list[str]:
        """Return tags, which are an array or a text with commas."""
        value = self.values.get("tags")
        if isinstance(value, str):
            return [tag.strip() for tag in value.split(",") if tag.strip()]
        if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
            return value
        raise self._wrong("tags", "an array of strings", value)

    def _wrong(self, key: str, expected: str, value: Any) -> DefinitionsError:
        if value is None:
            return DefinitionsError(f"{self.title} has no {key}")
        return DefinitionsError(f"{key} of {self.title} should be {expected}, actually was {fields.json_term(value)}")


def title_of(kind: str, number: int, values: Any, vhost: str | None) -> str:
    """Return the title of the object with a number in its section; `vhost` is that of an import into one."""
    if not isinstance(values, dict):
        return f"{kind} {number}"
    vhost_name = values.get("vhost") if vhost is None else vhost
    place = f" in vhost '{vhost_name}'" if isinstance(vhost_name, str) else ""
    if kind == "binding":
        source, key, destination = values.get("source"), values.get("routing_key"), values.get("destination")
        return f"binding '{key}' of exchange '{source}' to {values.get('destination_type')} '{destination}'{place}"
    if kind in ("permission", "topic permission"):
        return f"{kind} of user '{values.get('user')}'{place}"
    name = values.get("name")
    return f"{kind} '{name}'{place}" if isinstance(name, str) else f"{kind} {number}{place}"


def hashing_algorithm(user: Entry, document: dict[str, Any], default: str) -> str:
    """Return the given algorithm of a user's hash, or that of the version that wrote the document."""
    if user.values.get("hashing_algorithm") is not None:
        return user.text("hashing_algorithm")
    version = document.get("rabbitmq_version", document.get("rabbit_version"))
    found = re.match(r"(\d+)\.(\d+)", version) if isinstance(version, str) else None
    if found and (int(found[1]), int(found[2])) < (3, 6):
        return MD5
    return SHA256 if version == "3.6.0" else default


def short_type(name: str) -> str:
    """Return a queue type, which RabbitMQ may write as the name of its module."""
    return name.removeprefix("rabbit_").removesuffix("_queue")


def sentence_of(title: str, error: Exception) -> str:
    """Return RabbitMQ's text of an error, preceded by the title of the object if the text lacks it."""
    text = f"{error.name.lower()}: {error}" if isinstance(error, AMQPError) else str(error)
    return text if title in text else f"{title}: {text}"


def with_remedy(text: str) -> str:
    """Return a refusal, with the remedy for keys of policies that RabbitMQ 4 has removed."""
    is_removed = "not recognised policy settings" in text and any(f'"{key}"' in text for key in MIRROR_KEYS)
    return f"{text}; {REMEDY}" if is_removed else text
