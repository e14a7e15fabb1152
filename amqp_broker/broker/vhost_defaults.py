"""Limits and operator policies that each new vhost gets: `default_limits.*` and `default_policies.*` of RabbitMQ 4.

Source: rabbit_db_vhost_defaults.erl; live 4.3.6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from amqp_broker.broker.admin import patterns
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.vhost import VHost

# The kinds of an operator policy that are no keys of its definition.
SCOPE: Final = ("vhost_pattern", "queue_pattern", "apply_to")


class VHostDefaults:
    """Listens to events, and adds limits and operator policies to new vhosts."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._limits: Mapping[str, Mapping[str, Any]] = json.loads(broker.settings.default_limits or "{}")
        self._policies: Mapping[str, Mapping[str, Any]] = json.loads(broker.settings.default_policies or "{}")

    def on_event(self, event: str, headers: Mapping[str, Any]) -> None:
        """Add the defaults to a vhost that has been created."""
        if event == "vhost.created":
            vhost = self._broker.vhosts[headers["name"]]
            self._limit(vhost)
            for name, keys in self._policies.items():
                if patterns.matches(keys.get("vhost_pattern", patterns.ANYTHING), vhost.name):
                    vhost.operator_policies.set(policy(name, keys))

    def _limit(self, vhost: VHost) -> None:
        """Set the limits of the first name in alphabetical order whose pattern matches."""
        for _, keys in sorted(self._limits.items()):
            if patterns.matches(keys.get("pattern", patterns.ANYTHING), vhost.name):
                if limits := _dashed(keys, "pattern"):
                    vhost.limits.replace(limits)
                return


def policy(name: str, keys: Mapping[str, Any]) -> Policy:
    """Return the operator policy of these keys."""
    pattern = keys.get("queue_pattern", patterns.ANYTHING)
    return Policy(name, pattern, _dashed(keys, *SCOPE), apply_to=keys.get("apply_to", "all"))


def _dashed(keys: Mapping[str, Any], *left_out: str) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in keys.items() if key not in left_out}
