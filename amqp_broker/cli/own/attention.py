"""`amqp-broker attention`: what is wrong at a running broker, with cause and remedy."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from amqp_broker.cli.own.advice import printable
from amqp_broker.cli.own.broker_client import ask, of_a_running_broker


@click.command()
@click.option("--vhost", default=None, help="Show what concerns this vhost, and the node.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_a_running_broker
def attention(node: str, url: str, vhost: str | None, as_json: bool) -> None:
    """Show what is wrong now, with its remedy.

    Alarms, queues that grow, idle and slow consumers, lost messages, clients that come and go, fault rules that are on.
    """
    findings = ask(node, url, "GET", "/_broker/attention", query={"vhost": vhost})
    if as_json:
        click.echo(json.dumps(findings, indent=2))
        return
    if not findings:
        click.echo("Nothing needs attention.")
    for finding in findings:
        click.echo(text_of(finding))


def text_of(finding: dict[str, Any]) -> str:
    """Return a finding on two or three lines: its level and sentence, its place and time, and the remedy."""
    where = [f"vhost {printable(finding['vhost'])}"] if "vhost" in finding else []
    if finding["since_ms"] is not None:
        where.append(f"since {datetime.fromtimestamp(finding['since_ms'] // 1000).isoformat(' ')}")
    lines = [f"{finding['level']}: {printable(finding['sentence'])}"]
    if where:
        lines.append(f"  {', '.join(where)}")
    return "\n".join([*lines, f"  {finding['remedy']}"])
