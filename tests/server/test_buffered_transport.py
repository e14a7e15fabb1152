from __future__ import annotations

import asyncio

from amqp_broker.server.buffered_transport import BufferedTransport
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings


def test_loops_read_into_the_buffer_of_a_transport() -> None:
    """They look for the class (asyncio.selector_events, set_protocol)."""
    assert isinstance(BufferedTransport(Server(Settings(ephemeral=True)).cycle), asyncio.BufferedProtocol)
