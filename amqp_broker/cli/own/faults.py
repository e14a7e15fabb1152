"""`amqp-broker faults`: inject faults into a running broker."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final
from urllib.parse import quote

import click

from amqp_broker.broker.lab.durations import duration_ms
from amqp_broker.broker.lab.fault_rules import ACTIONS, DIRECTIONS, KNOWN, OF_METHOD, Rule
from amqp_broker.broker.lab.nemesis import CHOICES, stroke_line
from amqp_broker.broker.observe.history_check import history_lines
from amqp_broker.cli.own.advice import printable
from amqp_broker.cli.own.broker_client import ask, of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError

# Time between two looks at a nemesis.
POLL_S: Final = 0.25
# The types of a rule's fields, as the source has them.
TYPES: Final = {one.name: str(one.type) for one in fields(Rule)}


@click.group()
def faults() -> None:
    """Inject faults; docs/faults.md describes them."""


@faults.command("list")
@of_a_running_broker
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def list_(node: str, url: str, is_json: bool) -> None:
    """List the fault rules with their counts of matches and hits."""
    rules = ask(node, url, "GET", "/_broker/faults")
    if is_json:
        click.echo(json.dumps(rules, indent=2))
        return
    for rule in rules:
        click.echo(line_of(rule))


def line_of(rule: dict[str, Any]) -> str:
    """Return a rule on one line: id, action, moment, other parameters, and counts."""
    parameters = {name: value for name, value in rule.items() if name not in ("id", "action", "on", "matched", "hits")}
    is_spent = parameters.pop("is_spent")
    parts = [f"{name}={json.dumps(value) if isinstance(value, dict) else value}" for name, value in parameters.items()]
    counts = f"matched={rule['matched']} hits={rule['hits']}{' spent' if is_spent else ''}"
    return " ".join([f"{rule['id']}: {rule['action']} on {rule['on']}", *parts, counts])


def numbers(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options with integers."""
    for name, help_ in (
        ("code", "Reply code of return, close_channel and close_connection."),
        ("duration-ms", "Duration of block in milliseconds; by default, until the rule is removed."),
        ("bytes-per-s", "Rate of bandwidth in octets per second."),
        ("jitter-ms", "Variation of latency in milliseconds."),
        ("delay-ms", "Delay in milliseconds."),
        ("seed", "Seed of probability and jitter."),
        ("after", "Number of matches to skip first."),
        ("times", "Maximum number of hits."),
    ):
        command = click.option(f"--{name}", type=int, help=help_)(command)
    return command


def matches(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select messages and clients."""
    for name in OF_METHOD:
        if name not in ("vhost", "client_property"):
            command = click.option(f"--{name.replace('_', '-')}", help="Pattern: a glob, or regex:EXPRESSION.")(command)
    return click.option("--vhost", help="Only in this vhost.")(command)


@faults.command(epilog=f"Actions: {', '.join(ACTIONS)}.")
@of_a_running_broker
@click.argument("action", type=click.Choice(list(ACTIONS)), required=False, metavar="ACTION")
@click.option(
    "--confirm",
    type=click.Choice(["nack", "drop", "delay"]),
    help="Short form of the actions confirm_nack, confirm_drop and confirm_delay.",
)
@click.option("--on", type=click.Choice(list(KNOWN)), help="Event that triggers the action, instead of its usual one.")
@matches
@click.option("--client-property", multiple=True, metavar="NAME=GLOB", help="Property of the client; repeatable.")
@numbers
@click.option("--probability", type=float, help="Probability that a match is a hit, from 0 to 1.")
@click.option("--direction", type=click.Choice(DIRECTIONS), help="Of latency and bandwidth; by default output.")
@click.option("--text", help="Reply text, or reason of block.")
@click.option("--routed", "is_routed", is_flag=True, help="Also route the returned message.")
@click.option("--mid-frame", "is_mid_frame", is_flag=True, help="Cut or reset in the middle of a frame.")
@click.option(
    "--then",
    multiple=True,
    metavar="'ACTION FIELD=VALUE …'",
    help="Rule that begins when the one before it has hit for the last time; repeatable.",
)
def add(
    node: str,
    url: str,
    action: str | None,
    confirm: str | None,
    client_property: tuple[str, ...],
    then: tuple[str, ...],
    **said: Any,
) -> None:
    """Add a fault rule and print its id.

    \b
    amqp-broker faults add --vhost / --routing-key 'orders.*' --confirm nack --times 3
    amqp-broker faults add cut --connection 'my-service'
    amqp-broker faults add close_channel --on method --method queue.declare --times 1
    amqp-broker faults add confirm_nack --then 'confirm_delay delay_ms=2000 times=1'
    """
    if (action is None) is (confirm is None):
        raise click.UsageError("give either ACTION or --confirm")
    rule = {name: value for name, value in said.items() if value is not None and value is not False}
    rule["action"] = action or f"confirm_{confirm}"
    for pair in client_property:
        name, equals, pattern = pair.partition("=")
        if not name or not equals:
            raise click.UsageError(f"'{pair}' is not NAME=GLOB")
        rule.setdefault("client_property", {})[name] = pattern
    if then:
        rule["then"] = [_step(text) for text in then]
    click.echo(ask(node, url, "POST", "/_broker/faults", body=rule)["id"])


def _step(text: str) -> dict[str, Any]:
    """Return the rule that an option `--then` describes. Raise UsageError."""
    try:
        action, *given = shlex.split(text)
    except ValueError:
        raise click.UsageError(f"--then '{text}' is not ACTION FIELD=VALUE …") from None
    step: dict[str, Any] = {"action": action}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise click.UsageError(f"'{pair}' in --then is not FIELD=VALUE")
        step[name.replace("-", "_")] = _value(name.replace("-", "_"), value)
    return step


def _value(name: str, text: str) -> Any:
    """Return the value of a field: a number or a flag as what it is, if the field is one."""
    kind = TYPES.get(name, "str")
    try:
        if kind.startswith("int"):
            return int(text)
        if kind == "float":
            return float(text)
    except ValueError:
        raise click.UsageError(f"'{name}={text}' in --then is no number") from None
    return {"true": True, "false": False}.get(text, text) if kind == "bool" else text


@faults.command()
@of_a_running_broker
@click.argument("number", metavar="ID", type=click.IntRange(1))
def remove(node: str, url: str, number: int) -> None:
    """Remove a fault rule and its effects on connections."""
    ask(node, url, "DELETE", f"/_broker/faults/{number}")


@faults.command()
@of_a_running_broker
@click.argument("number", metavar="ID", type=click.IntRange(1))
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, help="How many.")
def release(node: str, url: str, number: int, count: int) -> None:
    """Make the oldest deliveries that a rule hold_delivery holds; print how many it held."""
    click.echo(ask(node, url, "POST", f"/_broker/faults/{number}/release", body={"count": count})["released"])


@faults.command()
@of_a_running_broker
@click.option("--vhost", help="Only rules of this vhost.")
def clear(node: str, url: str, vhost: str | None) -> None:
    """Remove all fault rules."""
    ask(node, url, "DELETE", "/_broker/faults", query={"vhost": vhost})


@faults.command("nemesis")
@of_a_running_broker
@click.option("--vhost", default="/", show_default=True, help="The vhost whose clients meet the faults.")
@click.option("--seed", type=click.IntRange(0), help="The same seed draws the same faults; by default, a new one.")
@click.option(
    "--for", "duration", default="60s", show_default=True, metavar="DURATION", help="The whole time: 30s, 1h."
)
@click.option(
    "--pace", default="2s", show_default=True, metavar="DURATION", help="Mean time of a fault and of a pause."
)
@click.option("--action", "actions", multiple=True, type=click.Choice(list(CHOICES)), help="Only these; repeatable.")
def nemesis_(
    node: str, url: str, vhost: str, seed: int | None, duration: str, pace: str, actions: tuple[str, ...]
) -> None:
    """Inject faults that a seed draws, print each, and check the history of all messages at the end.

    Ctrl-C ends it earlier. The exit code is 1 if a message is not where its history says, or was treated wrongly.
    """
    path = f"/_broker/nemesis/{quote(vhost, safe='')}"
    body: dict[str, Any] = {"duration_ms": _ms(duration), "pace_ms": _ms(pace), "actions": list(actions)}
    begun = ask(node, url, "POST", path, body=body if seed is None else {**body, "seed": seed})
    click.echo(f"Nemesis of vhost '{printable(vhost)}' with seed {begun['seed']}:")
    _follow(node, url, path, begun["seed"])
    history = ask(node, url, "GET", f"/_broker/history/{quote(vhost, safe='')}")
    for line in history_lines(history):
        click.echo(printable(line))
    if history["breach_count"]:
        raise click.exceptions.Exit(1)


def _ms(text: str) -> int:
    try:
        return duration_ms(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _follow(node: str, url: str, path: str, seed: int) -> None:
    """Print the strokes of a nemesis as they end, until it is over, or another client removes it."""
    shown_count = 0
    is_over = False
    while not is_over:
        try:
            time.sleep(POLL_S)
        except KeyboardInterrupt:
            ask(node, url, "DELETE", path)
        try:
            state = ask(node, url, "GET", path)
        except CommandError as error:
            state = {"seed": str(error)}
        if state["seed"] != seed:
            click.echo("The nemesis was removed by another client.")
            return
        is_over = state["is_over"]
        first = state["stroke_count"] - len(state["strokes"])
        for number, stroke in enumerate(state["strokes"], first):
            if number >= shown_count and stroke["ended_ms"] is not None:
                click.echo(printable(stroke_line(stroke)))
                shown_count = number + 1
