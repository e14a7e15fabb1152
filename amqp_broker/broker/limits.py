"""Limits that an administrator sets for a vhost or a user, by RabbitMQ's names.

Source: RabbitMQ, "Virtual Hosts" and "Per-user limits"; rabbit_vhost_limit.erl, rabbit_auth_backend_internal.erl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amqp_broker import fields
from amqp_broker.errors import InvalidParameter

MAX_CONNECTIONS: Final = "max-connections"
MAX_QUEUES: Final = "max-queues"
MAX_CHANNELS: Final = "max-channels"


class Limits:
    """Limits by name: 0 is "none at all", a negative number as good as no limit. `given` are those that were set."""

    __slots__ = ("given", "known", "title")

    def __init__(self, title: str, known: tuple[str, ...]) -> None:
        """`known` are the names that there are, `title` is what RabbitMQ's texts call them together."""
        self.title = title
        self.known = known
        self.given: dict[str, int] = {}

    def __getitem__(self, name: str) -> int | None:
        """The most that there may be; None: any number."""
        limit = self.given.get(name, -1)
        return limit if limit >= 0 else None

    def is_reached(self, name: str, count: int) -> bool:
        """Whether there may be no more than the `count` that there are."""
        limit = self.given.get(name, -1)
        return 0 <= limit <= count

    def set(self, name: str, value: object) -> None:
        """Limit something from now on; what is there already stays. Raises InvalidParameter."""
        if name not in self.known:
            terms = f"[{{{fields.json_term(name)},{fields.json_term(value)}}}]"
            raise InvalidParameter(f"Unrecognised terms {terms} in {self.title}")
        if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
            raise InvalidParameter(f"{name} should be a number, actually was {fields.json_term(value)}")
        self.given[name] = value

    def replace(self, values: Mapping[str, object]) -> None:
        """Limit what `values` says, and nothing else. Raises InvalidParameter, and changes nothing then."""
        limits = Limits(self.title, self.known)
        for name, value in values.items():
            limits.set(name, value)
        self.given = limits.given

    def clear(self, name: str) -> None:
        """Limit something no more; clearing what was not set is as good as done."""
        self.given.pop(name, None)


def vhost_limits() -> Limits:
    return Limits("limits", (MAX_CONNECTIONS, MAX_QUEUES))


def user_limits() -> Limits:
    return Limits("user-limits", (MAX_CONNECTIONS, MAX_CHANNELS))
