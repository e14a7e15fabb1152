"""`amqp-broker faults`: have a running broker do something wrong, over its control socket or its HTTP API."""

from __future__ import annotations

import json
from typing import Any

import click

from amqp_broker.broker.fault_rules import ACTIONS, KNOWN, OF_MESSAGE
from amqp_broker.cli.running import ask, of_a_running_broker


@click.group()
def faults() -> None:
    """Have a broker do something wrong on purpose: docs/faults.md tells all of it."""


@faults.command("list")
@of_a_running_broker
@click.option("--json", "is_json", is_flag=True, help="As JSON.")
def list_(node: str, url: str, is_json: bool) -> None:
    """List the faults, with how often each matched and hit."""
    rules = ask(node, url, "GET", "/_broker/faults")
    if is_json:
        click.echo(json.dumps(rules, indent=2))
        return
    for rule in rules:
        click.echo(line_of(rule))


def line_of(rule: dict[str, Any]) -> str:
    """A rule on one line: id, action, moment, what was said beside these, and its counts."""
    said = {name: value for name, value in rule.items() if name not in ("id", "action", "on", "matched", "hits")}
    is_spent = said.pop("is_spent")
    parts = [f"{name}={json.dumps(value) if isinstance(value, dict) else value}" for name, value in said.items()]
    counts = f"matched={rule['matched']} hits={rule['hits']}{' spent' if is_spent else ''}"
    return " ".join([f"{rule['id']}: {rule['action']} on {rule['on']}", *parts, counts])


def numbers(command: Any) -> Any:
    """Give a command the options that are numbers."""
    for name, help_ in (
        ("code", "Reply code of return, close_channel and close_connection."),
        ("duration-ms", "How long block lasts, in ms; otherwise until the fault is removed."),
        ("jitter-ms", "How much latency varies, in ms."),
        ("delay-ms", "How long something is late, in ms."),
        ("seed", "What probability and jitter are drawn from."),
        ("after", "How many matches pass first."),
        ("times", "How often it hits at most."),
    ):
        command = click.option(f"--{name}", type=int, help=help_)(command)
    return command


def matches(command: Any) -> Any:
    """Give a command the options that match."""
    for name in OF_MESSAGE:
        if name not in ("vhost", "client_property"):
            command = click.option(f"--{name.replace('_', '-')}", help="A glob, or regex:EXPRESSION.")(command)
    return click.option("--vhost", help="Only there.")(command)


@faults.command()
@of_a_running_broker
@click.argument("action", type=click.Choice(list(ACTIONS)), required=False)
@click.option("--confirm", type=click.Choice(["nack", "drop", "delay"]), help="The same as confirm_nack and so on.")
@click.option("--on", type=click.Choice(list(KNOWN)), help="When; each action has a usual moment.")
@matches
@click.option("--client-property", multiple=True, metavar="NAME=GLOB", help="Of the client's connection; repeatable.")
@numbers
@click.option("--probability", type=float, help="How likely a match is hit, up to 1.")
@click.option("--text", help="Reply text, or the reason of block.")
@click.option("--routed", "is_routed", is_flag=True, help="What is returned is routed all the same.")
@click.option("--mid-frame", "is_mid_frame", is_flag=True, help="Cut or reset in the middle of a frame.")
def add(
    node: str, url: str, action: str | None, confirm: str | None, client_property: tuple[str, ...], **said: Any
) -> None:
    """Add a fault and print its id.

    \b
    amqp-broker faults add --vhost / --routing-key 'orders.*' --confirm nack --times 3
    amqp-broker faults add cut --connection 'my-service'
    """
    if (action is None) is (confirm is None):
        raise click.UsageError("name one action, or one with --confirm")
    rule = {name: value for name, value in said.items() if value not in (None, False)}
    rule["action"] = action or f"confirm_{confirm}"
    pairs = [pair.partition("=") for pair in client_property]
    if pairs:
        rule["client_property"] = {name: value for name, _, value in pairs}
    click.echo(ask(node, url, "POST", "/_broker/faults", body=rule)["id"])


@faults.command()
@of_a_running_broker
@click.argument("number", metavar="ID", type=click.IntRange(1))
def remove(node: str, url: str, number: int) -> None:
    """Remove a fault; what it did to connections ends."""
    ask(node, url, "DELETE", f"/_broker/faults/{number}")


@faults.command()
@of_a_running_broker
@click.option("--vhost", help="Only those of this vhost.")
def clear(node: str, url: str, vhost: str | None) -> None:
    """Remove all faults."""
    ask(node, url, "DELETE", "/_broker/faults", query={"vhost": vhost})
