from __future__ import annotations

import asyncio

import pytest

from amqp_broker.broker.observe.waiting import Wait
from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.server_loop import awaited, blocked, done, is_in_loop


async def answer() -> int:
    return 42


def test_a_thread_blocks_until_the_server_has_answered() -> None:
    with EmbeddedBroker() as broker:
        assert not is_in_loop(broker.server)
        assert blocked(broker.server, answer(), 0) == 42


async def test_a_loop_awaits_the_server_in_its_thread_or_in_the_same_loop() -> None:
    with EmbeddedBroker() as broker:
        assert await awaited(broker.server, answer()) == 42
    async with EmbeddedBroker().run_in_loop() as broker:
        assert await awaited(broker.server, answer()) == 42
        assert is_in_loop(broker.server)
        with pytest.raises(RuntimeError, match="which must await"):
            blocked(broker.server, answer(), 0)


async def test_a_wait_ends_with_its_condition_or_its_time() -> None:
    wait = Wait()
    await done(wait, 0)
    assert not wait.is_done
    waiting = asyncio.create_task(done(wait, 60))
    await asyncio.sleep(0)
    wait.finish()
    await waiting
    assert wait.is_done
