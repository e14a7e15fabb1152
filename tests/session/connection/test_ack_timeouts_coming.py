"""The timeouts of random clients are known before they come, wherever an advance of the clock ends."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.clients.client_connection import ConsumerTimeout
from amqp_broker.broker.scheduling.portions import finished
from tests.peer import Lab

TIMEOUTS_MS = (700, 90_000, 270_000, 300_000)
ADVANCES_MS = (0, 1, 500, 30_000, 59_999, 60_000, 150_000, 1_800_000)


class Client:
    """A client that settles little on two channels."""

    def __init__(self, lab: Lab, chance: Random) -> None:
        self.chance = chance
        self.peer = lab.connect(capabilities={"consumer_cancel_notify": chance.random() < 0.7})
        self.peer.open_channel(2)

    def act(self, queue: str) -> None:
        channel = self.chance.choice([1, 2])
        if self.chance.random() < 0.5:
            self.peer.send(commands.Basic.Get(queue=queue), channel=channel)
        elif self.chance.random() < 0.8:
            own: Any = {"x-consumer-timeout": self.chance.choice(TIMEOUTS_MS)} if self.chance.random() < 0.3 else {}
            self.peer.send(commands.Basic.Consume(queue=queue, arguments=own), channel=channel)
        else:
            self.peer.send(commands.Basic.Ack(0, multiple=True), channel=channel)

    def coming(self, until_ms: int) -> set[tuple[Client, int, str | None]]:
        """Channels and consumers that end until a time; a channel has no consumer tag."""
        timeouts: list[ConsumerTimeout] = finished(self.peer.session.next_timeouts())
        return {(self, one.channel, one.consumer_tag) for one in timeouts if one.at_ms <= until_ms}

    def ends(self) -> set[tuple[Client, int, str | None]]:
        """Read everything; return the channels and consumers that ended, and open the channels again."""
        ended: set[tuple[Client, int, str | None]] = set()
        while self.peer.is_waiting():
            answer, channel = self.peer.next()
            if isinstance(answer, commands.Basic.Cancel):
                ended.add((self, channel, answer.consumer_tag))
            if isinstance(answer, commands.Channel.Close):
                ended.add((self, channel, None))
                self.peer.send(commands.Channel.CloseOk(), channel=channel)
                self.peer.send(commands.Channel.Open(), channel=channel)
        return ended


@pytest.mark.parametrize("compat", ["4.2", "4.3"])
@pytest.mark.parametrize("seed", range(40))
def test_an_advance_ends_the_channels_and_consumers_whose_timeouts_come_within_it(compat: str, seed: int) -> None:
    chance = Random(seed)
    lab = Lab(compat=compat)
    publisher = lab.connect()
    for number in range(4):
        given: Any = {"x-queue-type": chance.choice(["quorum", "classic"]) if number else "quorum"}
        if (number == 0 or chance.random() < 0.6) and (compat == "4.2" or given["x-queue-type"] == "quorum"):
            given["x-consumer-timeout"] = chance.choice(TIMEOUTS_MS)
        publisher.declare(f"q{number}", durable=True, arguments=given)
    clients = [Client(lab, chance) for _ in range(3)]
    happened = 0
    for _ in range(20):
        for _ in range(chance.randrange(4)):
            queue = f"q{chance.randrange(4)}"
            publisher.publish(queue, b"1")
            chance.choice(clients).act(queue)
        for client in clients:
            client.ends()
        duration_ms = chance.choice(ADVANCES_MS)
        coming = set().union(*(client.coming(lab.now + duration_ms) for client in clients))
        lab.advance_clock(duration_ms)
        ended = set().union(*(client.ends() for client in clients))
        assert coming == ended
        happened += len(ended)
    assert happened
