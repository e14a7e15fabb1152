"""Log lines about the node and about administrative changes, in RabbitMQ's words.

Source: rabbit.erl (`log_broker_started`), rabbit_auth_backend_internal.erl, rabbit_vhost.erl, rabbit_policy.erl.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.fields import printable
from amqp_broker.settings.plugins import BUILT_IN

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger("amqp_broker.server")

# The log line of each event; RabbitMQ does not log the others.
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

# Tools wait for these lines, too.
READY: Final = "Ready to start client connection listeners"
COMPLETED: Final = " completed with %d plugins."
# RabbitMQ's lines about the end, and why it comes.
SIGNALLED: Final = "%s received - shutting down"
ASKED_TO_STOP: Final = "RabbitMQ is asked to stop..."
STOPPED: Final = "Successfully stopped RabbitMQ and its dependencies"


def config_files(files: Sequence[str]) -> str:
    """Return RabbitMQ's lines about the files of its configuration, of which there is at least one."""
    return "\n                : ".join([f" config file(s) : {files[0]}", *files[1:]])


def data_folder(folder: Path | None) -> str:
    """Return RabbitMQ's line about the folder of the data; None is none."""
    return f" data dir       : {'(in memory only)' if folder is None else folder}"


def startup(plugins: Collection[str]) -> str:
    """Return the line that tools wait for: the broker is ready. A line for each plugin follows.

    Tools compare the number with RabbitMQ's, so plugins that are not available here count.
    """
    return "\n * ".join([f"Server startup complete; {len(plugins)} plugins started.", *map(_described, plugins)])


def _described(plugin: str) -> str:
    return plugin if plugin in BUILT_IN else f"{plugin} (not available)"


def log(event: str, headers: Mapping[str, Any]) -> None:
    """Log an event if RabbitMQ does. Control characters in names are replaced, so that a name cannot forge a line."""
    text = TEXTS.get(event)
    if text is not None and logger.isEnabledFor(logging.INFO):
        logger.info("%s", text.format_map({key: _shown(value) for key, value in headers.items()}))


def _shown(value: Any) -> str:
    return printable(f"[{','.join(value)}]" if isinstance(value, list) else str(value))
