"""`amqp-broker advice`: the habits of clients that a running broker has noticed."""

from __future__ import annotations

import json
from typing import Any

import click

from amqp_broker.cli.running import ask, of_a_running_broker


@click.command()
@click.option("--vhost", default=None, help="Only what concerns this vhost.")
@click.option("--clear", is_flag=True, help="Show nothing, but forget what was said.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@of_a_running_broker
def advice(node: str, url: str, vhost: str | None, clear: bool, as_json: bool) -> None:
    """Show habits of clients that bite in production: what, where, and what to do instead."""
    query = {"vhost": vhost}
    if clear:
        ask(node, url, "DELETE", "/_broker/advice", query=query)
        return
    told = ask(node, url, "GET", "/_broker/advice", query=query)
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    if not told:
        click.echo("There is nothing to advise.")
    for one in told:
        click.echo(text_of(one))


def text_of(told: dict[str, Any]) -> str:
    """Advice on three lines: the habit, where it shows, and the remedy."""
    places = ("vhost", "user", "client", "exchange", "queue", "connection", "channel", "detail")
    named = [(name, printable(str(told[name]))) for name in places if name in told]
    where = ", ".join(text if name == "detail" else f"{name} {text}" for name, text in named)
    times = f" ({told['count']} times)" if told["count"] > 1 else ""
    return f"{told['habit']}: {told['sentence']}\n  at {where}{times}\n  {told['remedy']} See {told['link']}."


def printable(text: str) -> str:
    """A name that a client has chosen, as a terminal may show it."""
    return text if text.isprintable() else repr(text)
