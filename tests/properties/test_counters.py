"""Counts add up, whatever clients do: each message is in a queue, or left it for a counted reason."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands

from tests.peer import Lab, Peer, publish_bytes
from tests.properties.generators import examples

QUEUES = {
    "plain": {},
    "short": {"x-max-length": 2},
    "refusing": {"x-max-length": 2, "x-overflow": "reject-publish"},
    "brief": {"x-message-ttl": 5, "x-dead-letter-exchange": "amq.fanout"},
    "ranked": {"x-max-priority": 2},
}


class Clients:
    """Two clients that do one thing after the other; a verb's `number` says which of several it is about."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.peers = [self.lab.connect(), self.lab.connect()]
        for name, arguments in QUEUES.items():
            self.peers[0].declare(name, arguments=arguments)
            self.peers[0].call(commands.Queue.Bind(queue=name, exchange="amq.fanout"))
        self.peers[1].call(commands.Confirm.Select())

    def peer(self, number: int) -> Peer:
        return self.peers[number % 2]

    def publish(self, number: int) -> None:
        key = [*QUEUES, "nowhere"][number % 6]
        data = publish_bytes(key, b"x", mandatory=number % 4 == 0, priority=number % 3)
        self.peer(number).send_bytes(data * (number % 5))

    def publish_to_all(self, number: int) -> None:
        self.peer(number).publish("", b"x", exchange="amq.fanout")

    def consume(self, number: int) -> None:
        peer, tag = self.peer(number), str(number % 4)
        if tag not in peer.session.channels[1].consumers:
            peer.send(commands.Basic.Consume(queue=[*QUEUES][number % 5], consumer_tag=tag, no_ack=number % 3 == 0))

    def cancel(self, number: int) -> None:
        self.peer(number).send(commands.Basic.Cancel(str(number % 4)))

    def get(self, number: int) -> None:
        self.peer(number).send(commands.Basic.Get(queue=[*QUEUES][number % 5], no_ack=number % 3 == 0))

    def settle(self, number: int) -> None:
        peer = self.peer(number)
        unacked = list(peer.session.channels[1].unacked.deliveries)
        if unacked:
            tag, multiple = unacked[number % len(unacked)], number % 5 == 0
            peer.send(
                commands.Basic.Nack(tag, multiple, number % 2 == 0) if number % 3 else commands.Basic.Ack(tag, multiple)
            )

    def reconnect(self, number: int) -> None:
        self.peer(number).disconnect()
        self.peers[number % 2] = self.lab.connect()

    def purge(self, number: int) -> None:
        self.peer(number).send(commands.Queue.Purge(queue=[*QUEUES][number % 5]))

    def wait(self, number: int) -> None:
        self.lab.advance(number % 7)

    def collect(self, number: int) -> None:
        self.lab.broker.collect_counts()

    def check(self, before: dict[str, int]) -> dict[str, int]:
        broker, vhost = self.lab.broker, self.lab.vhost
        broker.collect_counts()
        stats, publishes = broker.counters.message_stats(), broker.counters.publishes
        assert all(stats.get(name, 0) >= count for name, count in before.items()), "a counter went back"
        exchanges = vhost.exchanges.values()
        assert publishes.publish == sum(exchange.publishes.publish for exchange in exchanges)
        assert publishes.routed == sum(queue.statistics.published for queue in vhost.queues.values())
        assert publishes.confirm <= broker.counters.received_confirm <= publishes.publish
        for queue in vhost.queues.values():
            assert queue.statistics.published == sum(queue.statistics.published_from.values())
            counts = queue.statistics.deliveries
            # Every delivery was returned, acked, rejected, is with a consumer, or needed no ack.
            settled = counts.ack + counts.deliver_no_ack + counts.get_no_ack + queue.statistics.given_up.total()
            arrived = queue.ready_count + queue.unacked_count + settled
            if queue.name in ("plain", "short", "ranked"):
                assert queue.statistics.published == arrived - self.dead_letters(queue.name)
        return stats

    def dead_letters(self, queue: str) -> int:
        """Return the number of dead letters that the queue got from `brief`."""
        died = self.lab.vhost.queues["brief"].statistics.given_up
        return sum(died[reason] for reason in ("expired", "rejected"))


VERBS = [Clients.publish] * 4 + [Clients.settle] * 4 + [Clients.get, Clients.consume, Clients.publish_to_all] * 2
VERBS += [Clients.cancel, Clients.reconnect, Clients.purge, Clients.wait, Clients.collect]
STEPS = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 1000)), max_size=60)


@settings(max_examples=examples(4))
@given(STEPS)
def test_the_counts_add_up(steps: list[tuple[Callable[[Clients, int], None], int]]) -> None:
    clients, stats = Clients(), dict[str, int]()
    for verb, number in steps:
        verb(clients, number)
        if number % 3 == 0:
            stats = clients.check(stats)
    clients.check(stats)
