"""`amqp-broker clock`: show and move the time of a running broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from amqp_broker.broker.scheduling.timers import LATEST_MS
from amqp_broker.cli.own.advice import printable
from amqp_broker.cli.own.broker_client import ask, of_a_running_broker


@click.group()
def clock() -> None:
    """Show, advance or freeze the time of a broker, and what it brings next."""


@clock.command()
@of_a_running_broker
def show(node: str, url: str) -> None:
    """Show the time of the broker."""
    print_clock(ask(node, url, "GET", "/_broker/clock"))


@clock.command()
@click.argument("duration")
@of_a_running_broker
def advance(duration: str, node: str, url: str) -> None:
    """Advance the time by DURATION (500ms, 30s, 1h30m, 2d); everything due happens now, in order."""
    print_clock(ask(node, url, "POST", "/_broker/clock/advance", body={"duration": duration}))


@clock.command()
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Events to show.")
@click.option("--within", metavar="DURATION", help="Only events within this duration, such as 30m or 1h30m.")
@of_a_running_broker
def due(limit: int, within: str | None, node: str, url: str) -> None:
    """Show the events that the time brings next: messages that expire, retries, consumer timeouts."""
    query = {"limit": limit, **({} if within is None else {"within": within})}
    coming = ask(node, url, "GET", "/_broker/clock/due", query=query)
    for event in coming["events"]:
        in_ms = max(event["at_ms"] - coming["now_ms"], 0)
        click.echo(f"{moment(event['at_ms'])}  in {duration_of(in_ms):<12} {printable(event['sentence'])}")
    more = coming["total"] - len(coming["events"])
    if more or not coming["events"]:
        click.echo(f"… and {more} more." if more else "Nothing waits for its time.")


@clock.command()
@of_a_running_broker
def freeze(node: str, url: str) -> None:
    """Stop the time; it can still be advanced."""
    print_clock(ask(node, url, "POST", "/_broker/clock/freeze"))


@clock.command()
@of_a_running_broker
def resume(node: str, url: str) -> None:
    """Let a frozen clock run again."""
    print_clock(ask(node, url, "POST", "/_broker/clock/resume"))


def print_clock(state: dict[str, Any]) -> None:
    """Print the state of a clock."""
    offset_ms = state["offset_ms"]
    click.echo(f"now:     {moment(state['now_ms'])}{' (frozen)' if state['is_frozen'] else ''}")
    click.echo(f"offset:  {'-' if offset_ms < 0 else '+'}{duration_of(abs(offset_ms))}")


def moment(time_ms: int) -> str:
    """Return a time in UTC; a clock that runs may pass the last one that Python has."""
    if time_ms > LATEST_MS:
        return "after the year 9999"
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=time_ms)).isoformat(
        sep=" ", timespec="milliseconds"
    )


def duration_of(duration_ms: int) -> str:
    """Return a duration such as 1d2h3m4.567s."""
    minutes, rest_ms = divmod(duration_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    return "".join(parts) + (f"{rest_ms / 1000:g}s" if rest_ms or not parts else "")
