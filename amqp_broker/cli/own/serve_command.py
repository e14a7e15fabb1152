"""`amqp-broker serve` as a command of click."""

from __future__ import annotations

import os
from typing import Any

import click

from amqp_broker.cli.own.serve import serve as run
from amqp_broker.cli.own.serve_options import contradiction
from amqp_broker.cli.own.setting_options import settings_as_options
from amqp_broker.settings.sources.precedence import load


@click.command()
@click.option("-t", "--check-config", is_flag=True, help="Print the settings instead of starting.")
@settings_as_options
def serve(check_config: bool, **given: Any) -> None:
    """Run the broker until SIGTERM or Ctrl-C.

    Each option can also be set in the environment: --log-level as AMQP_BROKER_LOG_LEVEL. RABBITMQ_DEFAULT_USER,
    RABBITMQ_DEFAULT_PASS, RABBITMQ_DEFAULT_VHOST and the variables beside the options work as they do for RabbitMQ, and
    so does rabbitmq.conf: docs/settings.md.
    """
    if sentence := contradiction(given):
        raise click.UsageError(sentence)
    loaded = load(given, os.environ)
    if check_config:
        from amqp_broker.cli.own.check_config import show

        show(loaded)
        return
    run(loaded)
