"""Clients with habits, and the broker's advice about them."""

from __future__ import annotations

from typing import Any

from pamqp import commands

from amqp_broker.broker.lab.advice import Advice
from tests.peer import Lab, Peer

MINUTE_MS = 60_000
DAY_MS = 86_400_000


def advice_in(lab: Lab) -> list[Advice]:
    lab.broker.now = lab.now
    lab.broker.advice.scan_all()
    return list(lab.broker.advice)


def habits_in(lab: Lab) -> list[str]:
    return [advice.habit.name for advice in advice_in(lab)]


def only(lab: Lab, name: str) -> Advice:
    found = [advice for advice in advice_in(lab) if advice.habit.name == name]
    assert len(found) == 1, habits_in(lab)
    return found[0]


def declare(peer: Peer, name: str, **options: Any) -> str:
    answer = peer.call(commands.Queue.Declare(queue=name, **{"durable": True, **options}))
    assert isinstance(answer, commands.Queue.DeclareOk)
    return str(answer.queue)


def consume(peer: Peer, queue: str, *, prefetch: int = 0, channel: int = 1, **options: Any) -> None:
    peer.call(commands.Basic.Qos(prefetch_count=prefetch), channel)
    peer.call(commands.Basic.Consume(queue=queue, **options), channel)


def leave(lab: Lab, count: int, **options: Any) -> None:
    peer = lab.connect()
    for _ in range(count):
        declare(peer, "", **options)
    peer.disconnect()
