"""`amqp-broker mcp`: a running broker's knowledge for coding assistants, by the Model Context Protocol."""

from __future__ import annotations

from typing import Final

import click

from amqp_broker.cli.own.broker_client import of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.shared.own_program import IS_FROZEN
from amqp_broker.exit_codes import EX_UNAVAILABLE

MISSING: Final = "this command needs more packages: pip install '.[mcp]' in the checkout of amqp-broker"
FROZEN: Final = "the single executable does not have this command: install amqp-broker for Python, with '.[mcp]'"

ALLOWED: Final = ("faults", "clock", "event-log")


def _words(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a list with commas, or of an option that is given several times."""
    words = tuple(word.strip() for text in given for word in text.split(","))
    for word in words:
        if word not in ALLOWED:
            raise click.BadParameter(f"'{word}' is not one of {', '.join(ALLOWED)}", context, parameter)
    return words


@click.command()
@click.option(
    "--allow",
    multiple=True,
    metavar="WORD,...",
    callback=_words,
    help=f"Let the assistant change this, too: {', '.join(ALLOWED)}.",
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
        raise CommandError(FROZEN if IS_FROZEN else MISSING, EX_UNAVAILABLE) from None
    server_of(node, url, allow).run()
