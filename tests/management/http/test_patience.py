from __future__ import annotations

import asyncio
from unittest.mock import Mock

from amqp_broker.management.http.patience import Patience


def test_a_connection_is_closed_at_the_limit_unless_the_wait_ends() -> None:
    async def play() -> tuple[int, int]:
        patience, slow, quick = Patience(0.01), Mock(), Mock()
        patience.begin(slow)
        patience.begin(quick)
        patience.end(quick)
        await asyncio.sleep(0.05)
        return slow.transport.abort.call_count, quick.transport.abort.call_count

    assert asyncio.run(play()) == (1, 0)
