"""What the log says of the node and of what administrators change in it, in RabbitMQ's words.

Source: rabbit.erl (`log_broker_started`), rabbit_auth_backend_internal.erl, rabbit_vhost.erl, rabbit_policy.erl.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from amqp_broker.fields import printable

logger = logging.getLogger("amqp_broker.server")

# Events, and how they are told; RabbitMQ is silent about others.
TEXTS: Final = {
    "vhost.created": "Adding vhost '{name}'",
    "vhost.deleted": "Deleting vhost '{name}'",
    "user.created": "Created user '{name}'",
    "user.deleted": "Deleted user '{name}'",
    "user.password.changed": "Successfully changed password for user '{name}'",
    "user.password.cleared": "Clearing password for user '{name}'",
    "user.tags.set": "Successfully set user tags for user '{name}' to {tags}",
    "permission.created": (
        "Successfully set permissions for '{user}' in virtual host '{vhost}' to '{configure}', '{write}', '{read}'"
    ),
    "permission.deleted": "Successfully cleared permissions for '{user}' in virtual host '{vhost}'",
    "topic.permission.created": (
        "Successfully set topic permissions on exchange '{exchange}' for '{user}' in virtual host '{vhost}' "
        "to '{write}', '{read}'"
    ),
    "topic.permission.deleted": "Successfully cleared topic permissions for '{user}' in virtual host '{vhost}'",
    "policy.set": (
        "Successfully set policy '{name}' matching {apply-to} names in virtual host '{vhost}' using pattern '{pattern}'"
    ),
}

# RabbitMQ's plugins whose work is always done here: exchange types, and the exchange of events.
ALWAYS_ON: Final = (
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_delayed_message_exchange",
    "rabbitmq_event_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_shovel",
)
# Those that are listeners, by the name of their port.
LISTENING: Final = {"management": "rabbitmq_management", "prometheus": "rabbitmq_prometheus"}


def startup(ports: Mapping[str, int]) -> str:
    """What tools wait for: the broker is ready, with the plugins of RabbitMQ whose work it does, a line for each."""
    plugins = sorted([*ALWAYS_ON, *(plugin for port, plugin in LISTENING.items() if port in ports)])
    return "\n * ".join([f"Server startup complete; {len(plugins)} plugins started.", *plugins])


def tell(event: str, headers: Mapping[str, Any]) -> None:
    """Log an event, if RabbitMQ does; names in it cannot begin a line of their own."""
    text = TEXTS.get(event)
    if text is not None and logger.isEnabledFor(logging.INFO):
        logger.info("%s", text.format_map({key: _shown(value) for key, value in headers.items()}))


def _shown(value: Any) -> str:
    return printable(f"[{','.join(value)}]" if isinstance(value, list) else str(value))
