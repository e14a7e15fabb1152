"""aio-pika's patterns: RPC, which needs dead-lettering by headers for its timeouts, and Master/Worker."""

from __future__ import annotations

import asyncio

import pytest
from aio_pika.abc import AbstractRobustChannel, AbstractRobustConnection
from aio_pika.exceptions import MessageProcessError
from aio_pika.patterns import RPC, JsonRPC, Master, RejectMessage

from compat.unique_names import unique_name

pytestmark = pytest.mark.timeout(30)


async def test_rpc_calls_return_results_and_raise_remote_exceptions(
    connection: AbstractRobustConnection, channel: AbstractRobustChannel
) -> None:
    async def divide(*, a: int, b: int) -> float:
        return a / b

    method = unique_name("divide")
    server = await RPC.create(await connection.channel())
    await server.register(method, divide, auto_delete=True)
    client = await RPC.create(channel)
    assert await client.call(method, {"a": 6, "b": 4}) == 1.5
    results = await asyncio.gather(*(client.call(method, {"a": n, "b": 2}) for n in range(20)))
    assert results == [n / 2 for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        await client.call(method, {"a": 1, "b": 0})
    await client.close()
    await server.close()


async def test_json_rpc_works_over_an_exchange_of_its_own(
    connection: AbstractRobustConnection, channel: AbstractRobustChannel
) -> None:
    async def join(*, words: list[str]) -> str:
        return " ".join(words)

    exchange = unique_name("rpc")
    server = await JsonRPC.create(await connection.channel(), exchange=exchange)
    await server.register("join", join, auto_delete=True)
    client = await JsonRPC.create(channel, exchange=exchange)
    assert await client.proxy.join(words=["drop", "in"]) == "drop in"


async def test_call_of_an_unknown_method_comes_back(channel: AbstractRobustChannel) -> None:
    client = await RPC.create(channel)
    with pytest.raises(MessageProcessError, match="Message has been returned"):
        await client.call(unique_name("unknown"))


async def test_call_that_waits_too_long_is_dead_lettered_to_its_caller(
    connection: AbstractRobustConnection, channel: AbstractRobustChannel
) -> None:
    busy, free = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        busy.set()
        await free.wait()
        return "done"

    method = unique_name("slow")
    server_channel = await connection.channel()
    await server_channel.set_qos(prefetch_count=1)
    server = await RPC.create(server_channel)
    await server.register(method, slow, auto_delete=True)
    client = await RPC.create(channel)
    first = asyncio.create_task(client.call(method))
    await busy.wait()
    with pytest.raises(asyncio.TimeoutError):
        await client.call(method, expiration=1)
    free.set()
    assert await first == "done"


async def test_master_hands_tasks_to_workers_which_may_reject_them(
    connection: AbstractRobustConnection, channel: AbstractRobustChannel
) -> None:
    done: asyncio.Queue[int] = asyncio.Queue()
    attempts: list[int] = []

    async def work(*, number: int) -> None:
        attempts.append(number)
        if number == 3 and attempts.count(3) == 1:
            raise RejectMessage(requeue=True)
        if number == 4:
            raise RejectMessage(requeue=False)
        await done.put(number)

    tasks = unique_name("tasks")
    worker_channel = await connection.channel()
    await worker_channel.set_qos(prefetch_count=1)
    worker = await Master(worker_channel).create_worker(tasks, work, auto_delete=True)
    master = Master(channel)
    for number in range(6):
        await master.create_task(tasks, {"number": number})
    assert sorted([await done.get() for _ in range(5)]) == [0, 1, 2, 3, 5]
    assert sorted(attempts) == [0, 1, 2, 3, 3, 4, 5]
    await worker.close()
