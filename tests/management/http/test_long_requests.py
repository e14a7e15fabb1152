from __future__ import annotations

import asyncio
import gc
import weakref

from amqp_broker.management.http.long_requests import LongRequests


def test_those_that_wait_work_in_rotation_one_in_each_round_of_the_loop() -> None:
    async def run() -> list[str]:
        requests, seen = LongRequests(), list[str]()

        async def work(name: str) -> None:
            for _ in range(2):
                await requests.wait()
                seen.append(name)

        async def look() -> None:
            for _ in range(8):
                seen.append("-")
                await asyncio.sleep(0)

        await asyncio.gather(work("a"), work("b"), look())
        return seen

    seen = asyncio.run(run())
    assert [name for name in seen if name != "-"] == ["a", "b", "a", "b"]
    assert "ab" not in "".join(seen)
    assert "ba" not in "".join(seen)


def test_one_that_is_cancelled_is_passed_over_for_the_next() -> None:
    async def run() -> None:
        requests = LongRequests()
        first, second = (asyncio.ensure_future(requests.wait()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()

    asyncio.run(asyncio.wait_for(run(), 10))


def test_the_garbage_of_a_portion_is_collected_before_the_next() -> None:
    class Ring:
        def __init__(self) -> None:
            self.itself = self

    async def run() -> bool:
        seen = weakref.ref(Ring())
        assert seen() is not None
        await LongRequests().wait()
        return seen() is None

    gc.disable()
    try:
        assert asyncio.run(run())
    finally:
        gc.enable()
