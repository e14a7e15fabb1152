"""Commands for mirrored classic queues, which RabbitMQ had before 4.0. A single node has nothing to synchronise.

Source: the commands of RabbitMQ 3.10.8.
"""

from __future__ import annotations

from amqp_broker.cli.rabbitmq.command import Call, Command, failed
from amqp_broker.cli.rabbitmq.queue_commands import queue_of
from amqp_broker.exit_codes import EX_UNAVAILABLE

GROUP = "Replication"
REMOVED = "RabbitMQ has no mirrored queues since 4.0; `amqp-broker serve --compat 3.13` accepts this command"


def synchronise(call: Call) -> None:
    if not call.is_before(4, 0):
        raise failed(REMOVED)
    queue_of(call, "Error:\nnot_found", EX_UNAVAILABLE)


def stop_synchronising(call: Call) -> str:
    synchronise(call)
    return "not_syncing"


COMMANDS = (
    Command(
        "sync_queue",
        "[--vhost <vhost>] <queue>",
        "Instructs a mirrored queue with unsynchronised mirrors (follower replicas) to synchronise them",
        GROUP,
        says="Synchronising queue '{0}' in vhost '{vhost}' ...",
        run=synchronise,
    ),
    Command(
        "cancel_sync_queue",
        "[--vhost <vhost>] <queue>",
        "Instructs a synchronising mirrored queue to stop synchronising itself",
        GROUP,
        says="Stopping synchronising queue '{0}' in vhost '{vhost}' ...",
        run=stop_synchronising,
    ),
)
