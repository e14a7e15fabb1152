"""Limits that an administrator sets for a vhost or a user, by RabbitMQ's names.

Source: RabbitMQ, "Virtual Hosts" and "Per-user limits"; rabbit_vhost_limit.erl, rabbit_auth_backend_internal.erl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter

MAX_CONNECTIONS: Final = "max-connections"
MAX_QUEUES: Final = "max-queues"
MAX_CHANNELS: Final = "max-channels"

VHOST_LIMITS: Final = (MAX_CONNECTIONS, MAX_QUEUES)
USER_LIMITS: Final = (MAX_CONNECTIONS, MAX_CHANNELS)


class Limits:
    """Limits by name: 0 allows nothing, a negative number allows any number. `given` has those that were set.

    `is_listed` says whether those of a vhost are among its parameters: from the first on, even if each is cleared.
    """

    __slots__ = ("given", "is_listed", "known", "title")

    def __init__(self, title: str, known: tuple[str, ...]) -> None:
        """Create limits with these names; `title` is the word for them in RabbitMQ's error messages."""
        self.title = title
        self.known = known
        self.given: dict[str, int] = {}
        self.is_listed = False

    def __getitem__(self, name: str) -> int | None:
        """Return the largest allowed number, or None for any number."""
        limit = self.given.get(name, -1)
        return limit if limit >= 0 else None

    def is_reached(self, name: str, count: int) -> bool:
        """Return whether a further one besides the existing `count` would exceed the limit."""
        limit = self.given.get(name, -1)
        return 0 <= limit <= count

    def set(self, name: str, value: object) -> None:
        """Set a limit, which does not affect what exists already. Raises InvalidParameter."""
        self._check(name, value)
        assert isinstance(value, int)
        self.given[name] = value

    def replace(self, values: Mapping[str, object]) -> None:
        """Replace all limits. Raises InvalidParameter, and changes nothing then."""
        self.check(values)
        self.given = {name: value for name, value in values.items() if isinstance(value, int)}

    def clear(self, name: str) -> None:
        """Remove a limit, if it is set."""
        self.given.pop(name, None)

    def check(self, values: Mapping[str, object]) -> None:
        """Raise InvalidParameter for an unknown name or an invalid value."""
        for name, value in values.items():
            self._check(name, value)

    def _check(self, name: str, value: object) -> None:
        if name not in self.known:
            terms = f"[{{{fields.json_term(name)},{fields.json_term(value)}}}]"
            raise InvalidParameter(f"Unrecognised terms {terms} in {self.title}")
        if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
            raise InvalidParameter(f"{name} should be a number, actually was {fields.json_term(value)}")


def user_limits() -> Limits:
    """Return the limits of a new user."""
    return Limits("user-limits", USER_LIMITS)
