"""Counts: the model's, from the frames of clients, against the broker's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amqp_broker.broker.counting.history import History
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.node.rates import Rates
from amqp_broker.management.node.totals import lengths_of, queue_totals, sampled
from tests.simulation.ledger import Broken, demand

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queues.queue import Queue
    from tests.simulation.client import ChannelModel, Publish
    from tests.simulation.queues import QueueModel
    from tests.simulation.simulation import Simulation

# The broker's counts are carried together now and then, so that what happens in between is many steps' work.
EVERY = 4


@dataclass
class Tally:
    """`stats` by RabbitMQ's names for them; `deaths` by type of queue, strategy and reason."""

    stats: Counter[str] = field(default_factory=Counter)
    deaths: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def count_publish(sim: Simulation, channel: ChannelModel, publish: Publish, queues: list[QueueModel]) -> None:
    """A client's message has gone to these queues."""
    tally, exchange = sim.world.tally, publish.message.exchange
    is_returned = publish.mandatory and (publish.returns or not publish.queues)
    unroutable = "return_unroutable" if is_returned else "drop_unroutable"
    is_unroutable = not queues and not publish.is_refused
    for stats in (tally.stats, channel.stats):
        stats["publish"] += 1
        stats[unroutable] += is_unroutable
    for queue in queues:
        queue.stats["publish"] += 1
    # It may be gone when a transaction is committed.
    if sim.world.has_exchange(exchange):
        here = sim.topology.published.setdefault(exchange, Counter())
        here["publish_in"] += 1
        here["publish_out"] += len(queues)
        here[unroutable] += is_unroutable
        for queue in queues:
            queue.sources[exchange] += 1


def check_counts(sim: Simulation) -> None:
    """Raise Broken for what the broker has counted otherwise than the model."""
    if len(sim.story) % EVERY:
        return
    broker, tally = sim.lab.broker, sim.world.tally
    broker.collect_counts()
    check_same("the node", broker.counters.message_stats(), tally.stats)
    check_same("the vhost", sim.lab.vhost.counts.message_stats(), tally.stats)
    dead = {key: count for key, count in broker.counters.dead_lettered.items() if count}
    if dead != dict(tally.deaths):
        raise Broken(f"{dead} died, not {tally.deaths}")
    for name, queue in sim.lab.vhost.queues.items():
        check_queue(queue, sim.topology.queues[name])
    for name, exchange in sim.lab.vhost.exchanges.items():
        publishes = exchange.publishes
        counted, expected = (
            publishes.exchange_stats() | publishes.unroutable_stats(),
            sim.topology.published.get(name, Counter[str]()),
        )
        demand(counted == +expected, f"exchange '{name}' has counted {counted}, not {expected}")
    check_samples(broker)
    for client in sim.clients:
        for number, channel in client.peer.session.channels.items():
            model = client.channels[number]
            check_same(f"{client}, channel {number}", channel.counts.message_stats(), model.stats)
            for exchange, counts in channel.counts.publishes.items():
                # A redeclared object counts from zero, so only permanent objects are compared.
                if exchange.name.startswith("amq.") or not exchange.name:
                    at = f"{client}, channel {number}: '{exchange.name}'"
                    demand(
                        counts.confirm == model.confirmed[exchange.name], f"{at} has counted {counts.confirm} confirms"
                    )


def check_samples(broker: Broker) -> None:
    """Raise Broken for a queue that has changed and was not sampled."""
    finished(Rates(broker)._sampling())
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            lengths, (all_, ready, unacked) = lengths_of(queue), queue.statistics.lengths
            known = {"messages": all_, "messages_ready": ready, "messages_unacknowledged": unacked}
            history = queue.statistics.history or History()
            known |= {name: history.last(name) for name in queue.statistics.message_stats()}
            counted = {**lengths, **queue.statistics.message_stats()}
            demand(known == counted, f"{queue} was sampled with {known}, not {counted}")
    found, sums = sampled(broker.vhosts.values()), finished(queue_totals(broker.vhosts.values()))
    demand(found == sums, f"{found} messages were sampled, not {sums}")
    demand(not broker.changed_queues, "a queue was not sampled")


def check_queue(queue: Queue, model: QueueModel) -> None:
    check_same(queue.name, queue.statistics.message_stats(), model.stats)
    sources = {exchange.name: count for exchange, count in queue.statistics.published_from.items()}
    if sources != dict(model.sources):
        raise Broken(f"{queue.name} has messages from {sources}, not {model.sources}")
    if +queue.statistics.given_up != +model.given_up:
        raise Broken(f"{queue.name} gave up {queue.statistics.given_up}, not {model.given_up}")


def check_same(where: str, counted: dict[str, int], expected: Counter[str]) -> None:
    found = {name: count for name, count in counted.items() if count}
    delivered = sum(found.get(name, 0) for name in ("deliver", "deliver_no_ack", "get", "get_no_ack"))
    demand(found.pop("deliver_get", 0) == delivered, f"{where} has counted a wrong sum of {counted}")
    if found != +expected:
        raise Broken(f"{where} has counted {found}, not {dict(expected)}")
