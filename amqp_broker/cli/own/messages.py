"""`amqp-broker messages` and `amqp-broker message`: the event log of a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import click

from amqp_broker.cli.own.broker_client import NotMet, ask, of_a_running_broker

FOLLOW_TIMEOUT_S: Final = 30
# Most events that one answer has.
PAGE_MAX: Final = 1000
SHOWN_MAX: Final = 60
DAY_US: Final = 86_400_000_000
# Facts that a line shows.
FACTS: Final = (
    *("action", "connection", "redelivered", "requeue", "ack", "reason", "reply_text"),
    "from_message_number",
)
EVENTS: Final = (
    *("publish (the default)", "tx_publish", "rollback", "route", "refuse", "confirm", "return", "deliver", "ack"),
    *("nack", "requeue", "delay", "move", "expire", "drop", "dead_letter", "fault"),
)
FILTERS: Final = (
    ("--vhost", "Vhost, instead of the default one."),
    ("--exchange", "Published to this exchange; amq.default is the default one."),
    ("--routing-key", "With a matching routing key; * stands for any characters, ? for one."),
    ("--queue", "Routed to this queue, or an event in it."),
    ("--event", f"{', '.join(EVENTS)}, or any."),
    ("--body", "With this body."),
    ("--body-json", "With a JSON body that contains this value."),
    ("--body-regex", "With a body in which this regular expression matches."),
    ("--headers", "With at least these headers (a JSON object)."),
    ("--properties", "With at least these properties (a JSON object)."),
)


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select events."""
    for name, text in reversed(FILTERS):
        command = click.option(name, default=None, help=text)(command)
    return command


@click.command()
@filtered
@click.option("--limit", type=int, default=None, help="Maximum number of events.")
@click.option("--count", type=int, default=None, help="Wait for this number of matching events.")
@click.option("--timeout", "timeout_s", type=float, default=5.0, show_default=True, help="Seconds to wait for --count.")
@click.option("--follow", is_flag=True, help="Also show events as they occur, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
@of_a_running_broker
def messages(node: str, url: str, follow: bool, as_json: bool, timeout_s: float, **query: Any) -> None:
    """Show events of messages from the event log (`serve --event-log`), oldest first."""
    since = 0
    left = query.pop("limit")
    if query["count"] is not None:
        query["timeout_s"] = timeout_s
    while True:
        page = PAGE_MAX if left is None else min(left, PAGE_MAX)
        answer = ask(node, url, "GET", "/_broker/messages", query={**query, "limit": page, "since": since or None})
        shown = answer["messages"]
        for event in shown:
            click.echo(json.dumps(event) if as_json else line_of(event))
        if left is not None:
            left -= len(shown)
        is_last = answer["count"] == len(shown)
        if left == 0 or (is_last and not follow):
            return
        since = answer["next"]
        query.pop("count", None)
        query.pop("timeout_s", None)
        if is_last:
            _await_more(node, url, {**query, "since": since})


def _await_more(node: str, url: str, query: dict[str, Any]) -> None:
    """Wait without limit for the next matching event."""
    while True:
        try:
            ask(node, url, "GET", "/_broker/messages", query={**query, "count": 1, "timeout_s": FOLLOW_TIMEOUT_S})
        except NotMet:
            continue
        return


@click.command()
@click.argument("number", type=int)
@of_a_running_broker
def message(number: int, node: str, url: str) -> None:
    """Show all events of the message NUMBER."""
    for event in ask(node, url, "GET", f"/_broker/messages/{number}")["events"]:
        click.echo(line_of(event))


def _is_shown(fact: str, event: dict[str, Any]) -> bool:
    """Return whether a line has a fact. A confirm that is a nack says so, and a nack that does not requeue."""
    if event.get(fact) is False and fact in ("ack", "requeue"):
        return True
    return event.get(fact) not in (None, "", 0)


def line_of(event: dict[str, Any]) -> str:
    """Return an event on one line."""
    # Python has no date after the year 9999, which a clock may pass.
    at = datetime.fromtimestamp(event["time_us"] % DAY_US / 1_000_000, UTC).strftime("%H:%M:%S.%f")
    place = event["exchange"] or "(default)" if event["queue"] is None else event["queue"]
    words = [at, f"{event['event']:11}", f"message {event['message_number']}", place, f"key {event['routing_key']!r}"]
    if "routed_queues" in event:
        words.append(f"to {', '.join(event['routed_queues']) or 'no queue'}")
    words += [f"{name}={event[name]}" for name in FACTS if _is_shown(name, event)]
    if "payload" in event and event["event"] in ("publish", "tx_publish", "dead_letter"):
        payload = event["payload"]
        words.append(repr(payload[:SHOWN_MAX]) + ("…" if len(payload) > SHOWN_MAX else ""))
    return "  ".join(words)
