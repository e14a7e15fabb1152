"""`amqp-broker clock`: what time it is for a broker that runs, and moving that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from amqp_broker.cli.running import ask, of_a_running_broker


@click.group()
def clock() -> None:
    """Show a broker's time, let it pass, freeze it."""


@clock.command()
@of_a_running_broker
def show(node: str, url: str) -> None:
    """Say what time it is for the broker."""
    tell(ask(node, url, "GET", "/_broker/clock"))


@clock.command()
@click.argument("duration")
@of_a_running_broker
def advance(duration: str, node: str, url: str) -> None:
    """Let DURATION pass (500ms, 30s, 30m, 1h30m, 2d): what falls due in between happens now, in order."""
    tell(ask(node, url, "POST", "/_broker/clock/advance", body={"duration": duration}))


@clock.command()
@of_a_running_broker
def freeze(node: str, url: str) -> None:
    """Let time stand still; it can still be advanced."""
    tell(ask(node, url, "POST", "/_broker/clock/freeze"))


@clock.command()
@of_a_running_broker
def resume(node: str, url: str) -> None:
    """Let time run on from where it stands."""
    tell(ask(node, url, "POST", "/_broker/clock/resume"))


def tell(told: Any) -> None:
    """Print the state of a clock."""
    offset_ms = told["offset_ms"]
    click.echo(f"now:     {moment(told['now_ms'])}{' (frozen)' if told['is_frozen'] else ''}")
    click.echo(f"offset:  {'-' if offset_ms < 0 else '+'}{duration_of(abs(offset_ms))}")


def moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")


def duration_of(duration_ms: int) -> str:
    """Milliseconds as people say them: 1d2h3m4.567s."""
    minutes, rest_ms = divmod(duration_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    return "".join(parts) + (f"{rest_ms / 1000:g}s" if rest_ms or not parts else "")
