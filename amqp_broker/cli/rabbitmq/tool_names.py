"""Names of RabbitMQ's tools: as commands of `amqp-broker`, and RabbitMQ's own."""

from __future__ import annotations

from typing import Final

TOOLS: Final = {
    "ctl": "rabbitmqctl",
    "diagnostics": "rabbitmq-diagnostics",
    "plugins": "rabbitmq-plugins",
    "queues": "rabbitmq-queues",
    "streams": "rabbitmq-streams",
    "upgrade": "rabbitmq-upgrade",
}
