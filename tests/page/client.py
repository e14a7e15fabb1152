"""An AMQP client beside the browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel


@contextmanager
def channel(port: int, name: str = "test", vhost: str = "/") -> Iterator[BlockingChannel]:
    # It sends nothing for minutes.
    parameters = pika.ConnectionParameters(
        "127.0.0.1", port, vhost, client_properties={"connection_name": name}, heartbeat=0
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection.channel()
    finally:
        with suppress(pika.exceptions.ConnectionClosedByBroker):
            connection.close()
