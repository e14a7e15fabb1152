"""The program `amqp-broker`: it passes each command to RabbitMQ's tools or to the commands of this broker.

Health checks run it every second, so it imports only the modules that the command needs.
"""

from __future__ import annotations

import os
import sys

from amqp_broker.cli.rabbitmq.tool_names import TOOLS

COMPLETE = "_AMQP_BROKER_COMPLETE"


def main() -> None:
    """Run the program and exit; an error is a sentence on stderr and an exit code."""
    words = sys.argv[1:]
    name = words[0] if words and COMPLETE not in os.environ else ""
    if name in TOOLS:
        from amqp_broker.cli.rabbitmq.tool_main import main as run_tool

        sys.exit(run_tool(TOOLS[name], words[1:]))
    if name == "admin":
        from amqp_broker.cli.rabbitmq.rabbitmqadmin import main as run_admin

        sys.exit(run_admin(words[1:]))
    if name == "run" and words[1:2] not in (["-h"], ["--help"]):
        from amqp_broker.cli.own.run import main as run_command

        sys.exit(run_command(words[1:]))
    if name == "serve":
        from amqp_broker.cli.own import serve_options
        from amqp_broker.cli.own.command_exit import run_and_exit

        given = serve_options.read(words[1:])
        if given is not None:
            run_and_exit(lambda: serve_options.run(given))
    from amqp_broker.cli.own.program import main as run_program

    run_program()
