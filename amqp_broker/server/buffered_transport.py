"""The transport of a connection as asyncio's loops need it."""

from __future__ import annotations

import asyncio

from amqp_broker.server.transport import Transport


class BufferedTransport(Transport, asyncio.BufferedProtocol):
    """A transport with the base class that asyncio's loops look for; a compiled class cannot have it."""
