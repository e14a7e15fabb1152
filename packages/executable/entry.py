"""The program of the single executable. A link to it with the name of one of RabbitMQ's tools is that tool."""

from __future__ import annotations

import os
import sys

from amqp_broker.cli.rabbitmq.tool_names import TOOLS


def main() -> None:
    """Run the program that the executable was called as (`unpack.sh`), and exit."""
    name, words = os.environ.pop("AMQP_BROKER_CALLED_AS", ""), sys.argv[1:]
    if name in TOOLS.values():
        from amqp_broker.cli.rabbitmq.tool_main import main as run_tool

        sys.exit(run_tool(name, words))
    if name == "rabbitmqadmin":
        from amqp_broker.cli.rabbitmq.rabbitmqadmin import main as run_admin

        sys.exit(run_admin(words))
    if name == "rabbitmq-server":
        from amqp_broker.cli.rabbitmq.rabbitmq_server import main as run_server

        return run_server(words)
    from amqp_broker.cli.main import main as run

    return run()


main()
