"""Users that each new vhost brings: the keys `default_users.NAME.*` of RabbitMQ 4.

A user whose `vhost_pattern` matches the name of a new vhost gets permissions in it. The first such vhost creates the
user; one that exists keeps password and tags. Source: rabbit.schema; live 4.3.6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from amqp_broker.broker.admin import patterns
from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.broker import Broker


def users_of(setting: str, vhost: str) -> dict[str, Mapping[str, str]]:
    """Return the keys of the users that a new vhost of this name gets, by name."""
    users: dict[str, Mapping[str, str]] = json.loads(setting)
    return {
        name: keys
        for name, keys in users.items()
        if patterns.matches(keys.get("vhost_pattern", patterns.ANYTHING), vhost)
    }


class DefaultUsers:
    """Listens to the events of a broker, and adds the users of its settings to new vhosts."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def on_event(self, event: str, headers: Mapping[str, Any]) -> None:
        """Add the users to a vhost that has been created."""
        if event == "vhost.created":
            for name, keys in users_of(self._broker.settings.default_users, headers["name"]).items():
                self._add(name, keys, headers["name"])

    def _add(self, name: str, keys: Mapping[str, str], vhost: str) -> None:
        users = self._broker.users
        if name not in users:
            self._create(name, keys)
        given = {kind: keys[kind] for kind in ("configure", "write", "read") if kind in keys}
        users.set_permission(users[name], vhost, Permission(**given))

    def _create(self, name: str, keys: Mapping[str, str]) -> None:
        tags = tuple(tag.strip() for tag in keys.get("tags", "").split(",") if tag.strip())
        if "password" in keys:
            self._broker.users.add(name, keys["password"], tags=tags)
        else:
            self._broker.users.put(name, b"", self._broker.users.hashing_algorithm, tags)
