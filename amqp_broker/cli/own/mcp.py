"""`amqp-broker mcp`: a running broker's knowledge for coding assistants, by the Model Context Protocol."""

from __future__ import annotations

import click

from amqp_broker.cli.own.broker_client import of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.exit_codes import EX_UNAVAILABLE


@click.command()
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(["faults", "clock", "event-log"]),
    help="Let the assistant change this, too; can be given several times.",
)
@of_a_running_broker
def mcp(node: str, url: str, allow: tuple[str, ...]) -> None:
    """Let a coding assistant look into a running broker.

    The assistant starts this command, and speaks the Model Context Protocol over stdin and stdout. It asks what is
    wrong, why a message is in a queue or not, and for queues, messages, events, connections and topology. It changes
    nothing but what --allow names.
    """
    try:
        from amqp_broker.cli.own.assistant_server import server_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise CommandError("this command needs more packages: pip install 'amqp-broker[mcp]'", EX_UNAVAILABLE) from None
    server_of(node, url, allow).run()
