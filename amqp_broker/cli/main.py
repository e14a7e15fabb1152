"""`amqp-broker`: the program.

Health checks run it every second, so it imports only what the command needs: RabbitMQ's tools get along without click.
"""

from __future__ import annotations

import os
import sys

COMPLETE = "_AMQP_BROKER_COMPLETE"
# Names of RabbitMQ's tools here (cli/tools.py).
TOOLS = {
    "ctl": "rabbitmqctl",
    "diagnostics": "rabbitmq-diagnostics",
    "plugins": "rabbitmq-plugins",
    "queues": "rabbitmq-queues",
}


def main() -> None:
    """Run the program; whatever goes wrong is one sentence on stderr and an exit code."""
    words = sys.argv[1:]
    name = words[0] if words and COMPLETE not in os.environ else ""
    if name in TOOLS:
        from amqp_broker.cli.tools import main as run_tool

        sys.exit(run_tool(TOOLS[name], words[1:]))
    if name == "admin":
        from amqp_broker.cli.admin import main as run_admin

        sys.exit(run_admin(words[1:]))
    if name == "run" and words[1:2] not in (["-h"], ["--help"]):
        from amqp_broker.cli.run import main as run_command

        sys.exit(run_command(words[1:]))
    from amqp_broker.cli.program import main as run_program

    run_program()
