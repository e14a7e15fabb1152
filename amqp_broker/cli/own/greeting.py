"""The three lines that a start prints at a terminal, in place of RabbitMQ's log lines about it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from amqp_broker.server import log_output

if TYPE_CHECKING:
    from amqp_broker.server.server import Server
    from amqp_broker.settings.settings import Settings

# The one password that is no secret.
WELL_KNOWN: Final = "guest"
# Addresses that a client on this machine calls localhost.
LOCAL: Final = frozenset({"127.0.0.1", "0.0.0.0", "::1", "::"})


def is_short(settings: Settings) -> bool:
    """Return whether the start is short: at a terminal, unless a format or level of the log is chosen."""
    is_plain = settings.log_format == "auto" and settings.log_level == "info" and settings.log_console
    return is_plain and sys.stdout is not None and sys.stdout.isatty()


def withhold() -> None:
    """Show only warnings at the terminal, until `greet`."""
    log_output.set_console_level(logging.WARNING)


def greet(server: Server) -> None:
    """Print the lines, and show the log from now on."""
    log_output.flush()
    print(*lines(server), sep="\n", flush=True)
    log_output.set_console_level(logging.INFO)


def lines(server: Server) -> Iterator[str]:
    """Yield the address with its login, that of the web page, and the place of the data."""
    settings = server.settings
    user = server.broker.users.get(settings.default_user)
    places = {one.protocol: f"{_host(one.host)}:{one.port}" for one in reversed(server.node.listeners())}
    scheme, protocol = ("amqp", "amqp") if "amqp" in places else ("amqps", "amqp/ssl")
    # From another address than localhost, guest is refused.
    may_enter = places[protocol].startswith("localhost:") or settings.default_user not in settings.local_users
    is_known = may_enter and user is not None and user.accepts(WELL_KNOWN.encode())
    login = f"{quote(user.name, safe='')}{f':{WELL_KNOWN}' if is_known else ''}@" if user is not None else ""
    vhost = "" if settings.default_vhost == "/" else f"/{quote(settings.default_vhost, safe='')}"
    yield f"amqp-broker serves {scheme}://{login}{places[protocol]}{vhost}"
    page = next(
        (f"{one}://{places[one]}{settings.management_path_prefix}/" for one in ("http", "https") if one in places),
        "none",
    )
    hint = f" (user {settings.default_user}, password {WELL_KNOWN})" if is_known and page != "none" else ""
    yield f"Web page: {page}{hint}"
    store = settings.store_path
    yield f"Data: {'in memory only' if store is None else store}. Ctrl-C stops the broker."


def _host(host: str) -> str:
    if host in LOCAL:
        return "localhost"
    return f"[{host}]" if ":" in host else host
