"""`amqp-broker trace`: keep the events of messages in a stream queue, from which `pipeline` reads."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import click

from amqp_broker.cli.own.broker_client import ask, of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.exit_codes import EX_DATAERR

EXCHANGE: Final = "amq.rabbitmq.trace"
QUEUE: Final = "trace"
AGE_MAX: Final = "7D"
BYTES_MAX: Final = 10_000_000_000

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
@click.option("--plain", is_flag=True, help="Keep only the events of RabbitMQ's firehose.")
@of_a_running_broker
def on(node: str, url: str, vhost: str, queue: str, age_max: str, bytes_max: int, plain: bool) -> None:
    """Start tracing a vhost, and bind a stream to its trace.

    A restart of the broker ends the trace. RabbitMQ has only its firehose, which goes to a classic queue, because
    streams receive nothing from it.
    """
    place, name = quote(vhost, safe=""), quote(queue, safe="")
    is_own = is_amqp_broker(node, url)
    retention: dict[str, Any] = {"x-max-length-bytes": bytes_max}
    if is_own:
        retention |= {"x-queue-type": "stream", "x-max-age": age_max}
    ask(node, url, "PUT", f"/api/queues/{place}/{name}", body={"durable": True, "arguments": retention})
    ask(node, url, "POST", f"/api/bindings/{place}/e/{EXCHANGE}/q/{name}", body={"routing_key": "#"})
    if is_own:
        ask(node, url, "PUT", f"/_broker/trace/{place}", body={"extended": not plain})
    else:
        ask(node, url, "PUT", f"/api/vhosts/{place}", body={"tracing": True})
    what = "The trace" if is_own and not plain else "The firehose"
    click.echo(f"{what} of vhost '{vhost}' is on and goes to the {'stream' if is_own else 'classic queue'} '{queue}'.")


@trace.command()
@vhost_option
@of_a_running_broker
def off(node: str, url: str, vhost: str) -> None:
    """Stop tracing; the stream keeps its events."""
    place = quote(vhost, safe="")
    if is_amqp_broker(node, url):
        ask(node, url, "DELETE", f"/_broker/trace/{place}")
    else:
        ask(node, url, "PUT", f"/api/vhosts/{place}", body={"tracing": False})
    click.echo(f"The trace of vhost '{vhost}' is off.")


@trace.command()
@vhost_option
@of_a_running_broker
def status(node: str, url: str, vhost: str) -> None:
    """Show whether the trace is on, and the bound queues."""
    place = quote(vhost, safe="")
    click.echo(f"The trace of vhost '{vhost}' is {state_of(node, url, place)}.")
    bindings = ask(node, url, "GET", f"/api/exchanges/{place}/{EXCHANGE}/bindings/source")
    for name in sorted({binding["destination"] for binding in bindings if binding["destination_type"] == "queue"}):
        click.echo(line_of(ask(node, url, "GET", f"/api/queues/{place}/{quote(name, safe='')}")))
    if not bindings:
        click.echo("No queue is bound to the trace.")


def state_of(node: str, url: str, place: str) -> str:
    if not is_amqp_broker(node, url):
        return "on, as a firehose" if ask(node, url, "GET", f"/api/vhosts/{place}").get("tracing") else "off"
    state = ask(node, url, "GET", f"/_broker/trace/{place}")
    return ("on" if state["extended"] else "on, as RabbitMQ's firehose") if state["is_on"] else "off"


def line_of(queue: dict[str, Any]) -> str:
    """Return a line about a bound queue: type, name and number of events."""
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
