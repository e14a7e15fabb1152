"""Findings about clients that publish to nowhere, lose connections or channels, or are not let in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from amqp_broker.broker.observe.closest_keys import hint
from amqp_broker.management.attention.finding import Finding, counted

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.observe.incidents import Client, Incidents, Losses
    from amqp_broker.broker.vhost import VHost


def findings_of_exchange(vhost: VHost, exchange: Exchange, now: int) -> Iterator[Finding]:
    """Yield the finding about messages that an exchange has routed nowhere; `now` is in real time."""
    unroutable, key = exchange.unroutable, exchange.unroutable_key
    if unroutable is None or not unroutable.is_recent(now):
        return
    place = {"vhost": vhost.name, "exchange": exchange.name}
    name = f"exchange '{exchange.name}'" if exchange.name else "the default exchange"
    sentence = f"{counted(unroutable.count, 'message')} published to {name} reached no queue"
    if key is None:
        # An exchange without bindings, whatever the key: the route does not say it.
        why = "it has no bindings" if not exchange.bindings else "it had no bindings then"
        yield Finding("unroutable", f"{sentence}: {why}.", "Bind a queue to it.", unroutable.first_ms, place)
        return
    guess = _hint(vhost, exchange, key)
    yield Finding(
        "unroutable",
        f"{sentence}, such as with routing key '{key}'{f': {guess}' if guess else '.'}",
        "Bind a queue with this key, or publish with another one."
        if exchange.name
        else "Declare a queue of this name, or publish with the name of another.",
        unroutable.first_ms,
        {**place, "routing_key": key},
    )


def _hint(vhost: VHost, exchange: Exchange, key: str) -> str:
    # To compare a key with hundreds takes milliseconds, and a page asks each second.
    known = exchange.closest_keys
    if known is None or known[:2] != (key, vhost.topology_version):
        known = exchange.closest_keys = key, vhost.topology_version, hint(vhost, exchange.name, key)
    return known[2]


def findings_about_clients(incidents: Incidents) -> Iterator[Finding]:
    """Yield the findings about clients that lose connections or channels, or are refused."""
    findings = {"lost": _lost, "refused": _refused, "closed": _closed}
    for word, client, losses in incidents.clients():
        yield findings[word](client, losses)


def _lost(client: Client, losses: Losses) -> Finding:
    return Finding(
        "lost-connections",
        f"{_named(client)} has lost {counted(losses.incident.count, 'connection')}. The reason of the last: "
        f"{losses.reason}.",
        "Look at the log of the client, and at its connections in the log of the broker.",
        losses.incident.first_ms,
        _place(client),
    )


def _refused(client: Client, losses: Losses) -> Finding:
    return Finding(
        "refused-client",
        f"{_named(client)} was refused {counted(losses.incident.count, 'time')}: {losses.reason}.",
        "Correct the password, the virtual host or the permissions, or stop the client.",
        losses.incident.first_ms,
        _place(client),
    )


def _closed(client: Client, losses: Losses) -> Finding:
    return Finding(
        "channel-errors",
        f"{_named(client)} has had {counted(losses.incident.count, 'channel')} closed by an error. The reason of the "
        f"last: {losses.reason}.",
        "Correct what the client declares, consumes, publishes or settles; the log of the broker names the operation.",
        losses.incident.first_ms,
        _place(client),
    )


def _named(client: Client) -> str:
    name = f"Client '{client.name}'" if client.name else "A client"
    return f"{name} at {client.host} (user '{client.user}')"


def _place(client: Client) -> dict[str, str]:
    place = {"vhost": client.vhost, "user": client.user, "client": client.name, "host": client.host}
    return {name: value for name, value in place.items() if value}
