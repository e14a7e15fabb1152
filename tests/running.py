"""An embedded broker that is as `amqp-broker serve` would be: tests are its clients and can look inside.

with RunningServer(handshake_timeout_ms=50) as running:
    Client(running.port).open()
    running.until(lambda server: len(server.broker.connections) == 1)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from amqp_broker.server.server import Server
from amqp_broker.testing import EmbeddedBroker
from compat.waiting import wait_until


class RunningServer(EmbeddedBroker):
    """A server in a thread whose listeners are open from the start, as in a process of its own."""

    def __init__(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop, **settings: Any
    ) -> None:
        plain = {"management": False, "ephemeral": True, "vm_memory_high_watermark": ""}
        super().__init__(new_loop=new_loop, **{**plain, **settings})
        self.settings = replace(self.settings, management=self.has_management)

    def until(self, condition: Callable[[Server], object]) -> None:
        """Return when the condition holds."""
        wait_until(lambda: self.ask(condition))

    def advance(self, duration_ms: int) -> None:
        """Move the broker's clock, and let happen what is due then."""

        self.ask(lambda server: server.ticking.advance(duration_ms))

    def live_through(self, duration_ms: int) -> None:
        """Make the server believe that so much time has really passed."""

        def age(server: Server) -> None:
            server.clock._start_ms += duration_ms
            server.clock._offset_ms += duration_ms
            server.broker.now = server.clock.now()
            server.broker.real_timers.run_due(server.clock.real_now())
            server.flush()

        self.ask(age)
