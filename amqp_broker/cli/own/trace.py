"""`amqp-broker trace`: keep the events of messages in a stream queue, from which `pipeline` reads."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import click

from amqp_broker.cli.own.broker_client import SENTENCES, ask, of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.exit_codes import EX_DATAERR, EX_UNAVAILABLE

EXCHANGE: Final = "amq.rabbitmq.trace"
QUEUE: Final = "trace"
AGE_MAX: Final = "7D"
BYTES_MAX: Final = 10_000_000_000
METADATA: Final = ("description", "tags", "default_queue_type", "protected_from_deletion")

vhost_option = click.option("--vhost", "-p", default="/", show_default=True, help="Vhost to trace.")


@click.group()
def trace() -> None:
    """Keep the events of messages in a stream queue; docs/pipeline.md describes them."""


@trace.command()
@vhost_option
@click.option("--queue", default=QUEUE, show_default=True, help="Queue for the events; declared if it does not exist.")
@click.option(
    "--max-age",
    "age_max",
    default=AGE_MAX,
    show_default=True,
    help="Maximum age of events; the units are Y, M, D, h, m and s.",
)
@click.option(
    "--max-length-bytes",
    "bytes_max",
    type=int,
    default=BYTES_MAX,
    show_default=True,
    help="Maximum size of the queue; older events are dropped.",
)
@click.option("--exchange", "exchanges", multiple=True, help="Only messages published to this exchange; repeatable.")
@click.option("--of-queue", "queues", multiple=True, help="Only messages routed to this queue; repeatable.")
@click.option("--one-in", type=click.IntRange(1), default=1, help="Select one of this number of messages.")
@of_a_running_broker
def on(
    node: str, url: str, vhost: str, queue: str, age_max: str, bytes_max: int, exchanges: tuple[str, ...],
    queues: tuple[str, ...], one_in: int,
) -> None:  # fmt: skip
    """Start tracing a vhost to a stream.

    The options select messages, and the trace has all events of those, dead letters included. amq.default is the
    default exchange. A restart of the broker ends the trace. RabbitMQ has only its firehose, which goes to a classic
    queue and selects nothing.
    """
    place, name = quote(vhost, safe=""), quote(queue, safe="")
    if is_amqp_broker(node, url):
        retention = {"x-queue-type": "stream", "x-max-age": age_max, "x-max-length-bytes": bytes_max}
        ask(node, url, "PUT", f"/api/queues/{place}/{name}", body={"durable": True, "arguments": retention})
        selected = ["" if exchange == "amq.default" else exchange for exchange in exchanges]
        options = {"queue": queue, "exchanges": selected, "queues": list(queues), "one_in": one_in}
        ask(node, url, "PUT", f"/_broker/trace/{place}", body=options)
        click.echo(f"The trace of vhost '{vhost}' is on and goes to the stream '{queue}'.")
        return
    if exchanges or queues or one_in > 1:
        raise CommandError("RabbitMQ's firehose cannot select messages", EX_UNAVAILABLE)
    arguments = {"x-max-length-bytes": bytes_max}
    ask(node, url, "PUT", f"/api/queues/{place}/{name}", body={"durable": True, "arguments": arguments})
    ask(node, url, "POST", f"/api/bindings/{place}/e/{EXCHANGE}/q/{name}", body={"routing_key": "#"})
    _switch_firehose(node, url, place, is_on=True)
    click.echo(f"The firehose of vhost '{vhost}' is on and goes to the classic queue '{queue}'.")


@trace.command()
@vhost_option
@of_a_running_broker
def off(node: str, url: str, vhost: str) -> None:
    """Stop tracing; the stream keeps its events. On RabbitMQ it stops the firehose."""
    place, written = quote(vhost, safe=""), ""
    if is_amqp_broker(node, url):
        state = _ask_of_vhost(node, url, f"/_broker/trace/{place}")
        ask(node, url, "DELETE", f"/_broker/trace/{place}")
        if state["queue"] is not None:
            written = f": {counted(state)}"
    else:
        _switch_firehose(node, url, place, is_on=False)
    click.echo(f"The trace of vhost '{vhost}' is off{written}.")


@trace.command()
@vhost_option
@of_a_running_broker
def status(node: str, url: str, vhost: str) -> None:
    """Show whether the trace is on, its queue and its selection; of a firehose, the bound queues."""
    place = quote(vhost, safe="")
    if is_amqp_broker(node, url):
        state = _ask_of_vhost(node, url, f"/_broker/trace/{place}")
        is_firehose, selection = state["is_on"], selected_by(state)
        if state["queue"] is not None:
            click.echo(f"The trace of vhost '{vhost}' is on: {counted(state)}.")
            if selection:
                click.echo(f"It has {selection}.")
    else:
        state = {"queue": None}
        is_firehose = _ask_of_vhost(node, url, f"/api/vhosts/{place}").get("tracing", False)
    if is_firehose:
        click.echo(f"The firehose of vhost '{vhost}' is on.")
    elif state["queue"] is None:
        click.echo(f"The trace of vhost '{vhost}' is off.")
    bindings = ask(node, url, "GET", f"/api/exchanges/{place}/{EXCHANGE}/bindings/source")
    for name in sorted({binding["destination"] for binding in bindings if binding["destination_type"] == "queue"}):
        click.echo(line_of(ask(node, url, "GET", f"/api/queues/{place}/{quote(name, safe='')}")))
    if is_firehose and not bindings:
        click.echo("No queue is bound to the firehose.")


def _ask_of_vhost(node: str, url: str, path: str) -> Any:
    """Return the answer about a vhost, without which the API has only the reason of any unknown path."""
    try:
        return ask(node, url, "GET", path)
    except CommandError as error:
        if "Not Found" not in str(error):
            raise
        raise CommandError(SENTENCES["vhost_not_found"], EX_DATAERR) from None


def _switch_firehose(node: str, url: str, place: str, *, is_on: bool) -> None:
    """Start or stop the firehose of a vhost of RabbitMQ, which resets the metadata that a request lacks."""
    vhost = _ask_of_vhost(node, url, f"/api/vhosts/{place}")
    kept = {name: vhost[name] for name in METADATA if vhost.get(name) not in (None, "undefined")}
    ask(node, url, "PUT", f"/api/vhosts/{place}", body={**kept, "tracing": is_on})


def counted(state: dict[str, Any]) -> str:
    """Return the number of events of a trace, and its stream."""
    return f"{state['events']:,} events in the stream '{state['queue']}'"


def selected_by(state: dict[str, Any]) -> str:
    """Return which messages a trace has; an empty string if it has all."""
    parts = []
    if state.get("one_in", 1) > 1:
        parts.append(f"one of {state['one_in']:,} messages")
    if state.get("exchanges"):
        parts.append(
            "messages to the exchanges " + ", ".join(f"'{name or 'amq.default'}'" for name in state["exchanges"])
        )
    if state.get("queues"):
        parts.append("messages for the queues " + ", ".join(f"'{name}'" for name in state["queues"]))
    return ", ".join(parts)


def line_of(queue: dict[str, Any]) -> str:
    """Return a line about a queue that is bound to the firehose: type, name and number of messages."""
    return f"{queue.get('type', 'classic')} queue '{queue['name']}': {queue.get('messages', 0):,} events"


def is_amqp_broker(node: str, url: str) -> bool:
    """Return whether the broker is amqp-broker, not RabbitMQ. Raises CommandError if none answers."""
    try:
        ask(node, url, "GET", "/_broker/node")
    except CommandError as error:
        if error.exit_code != EX_DATAERR:
            raise
        return False
    return True
