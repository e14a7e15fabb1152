"""`amqp-broker advice`: findings of a running broker about its clients."""

from __future__ import annotations

import json
from typing import Any

import click

from amqp_broker.cli.own.broker_client import ask, of_a_running_broker


@click.command()
@click.option("--vhost", default=None, help="Show findings about this vhost only.")
@click.option("--clear", is_flag=True, help="Forget all findings instead of showing them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_a_running_broker
def advice(node: str, url: str, vhost: str | None, clear: bool, as_json: bool) -> None:
    """Show habits of clients that cause trouble in production, with place and remedy."""
    query = {"vhost": vhost}
    if clear:
        ask(node, url, "DELETE", "/_broker/advice", query=query)
        return
    findings = ask(node, url, "GET", "/_broker/advice", query=query)
    if as_json:
        click.echo(json.dumps(findings, indent=2))
        return
    if not findings:
        click.echo("There is no advice.")
    for finding in findings:
        click.echo(text_of(finding))


def text_of(finding: dict[str, Any]) -> str:
    """Return a finding on three lines: the habit, the place and the remedy."""
    places = ("vhost", "user", "client", "exchange", "queue", "connection", "channel", "detail")
    named = [(name, printable(str(finding[name]))) for name in places if name in finding]
    where = ", ".join(text if name == "detail" else f"{name} {text}" for name, text in named)
    counts = [f"{finding['count']} times"] if finding["count"] > 1 else []
    messages = finding.get("messages", 0)
    counts += [f"{messages} message{'s' * (messages != 1)}"] if messages else []
    times = f" ({', '.join(counts)})" if counts else ""
    remedy = f"{finding['remedy']} See {finding['link']}."
    return f"{finding['habit']}: {finding['sentence']}\n  at {where}{times}\n  {remedy}"


def printable(text: str) -> str:
    """Return a name that a client has chosen, without control characters."""
    return text if text.isprintable() else repr(text)
