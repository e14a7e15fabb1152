"""What must hold after every step: the broker's inside against the model."""

from __future__ import annotations

from collections import Counter

from amqp_broker.broker.queue import Queue
from amqp_broker.message import Message
from amqp_broker.session.channel import Channel
from tests.peer import Lab
from tests.simulation.client import ChannelModel, Client
from tests.simulation.model import Number, QueueModel, Topology, demand


def check(lab: Lab, topology: Topology, clients: list[Client]) -> None:
    """Raise Broken for what is not as it must be."""
    unacked: dict[Queue, Counter[int]] = {queue: Counter() for queue in lab.vhost.queues.values()}
    for client in clients:
        check_client(client)
        for number, channel in client.peer.session.channels.items():
            check_channel(channel, client.channels[number], client, unacked)
    check_topology(lab, topology)
    for name, queue in lab.vhost.queues.items():
        check_queue(queue, topology.queues[name], unacked[queue])
    sessions = {client.peer.session for client in clients}
    demand(lab.broker.connections == lab.vhost.connections == sessions, "connections are counted wrongly")
    lab.broker.is_congested = False


def number_of(message: Message) -> Number:
    return int(message.body.partition(b" ")[0])


def check_client(client: Client) -> None:
    session = client.peer.session
    demand(set(session.channels) == set(client.channels), f"{client} has channels {set(session.channels)}")
    demand(session.closing_channels == client.closing, f"{client} has closing channels {session.closing_channels}")
    demand(not client.bereft, f"{client} was not told of {[consumer.tag for _, consumer in client.bereft]}")
    demand(not session.confirming and not session.freed, f"{client} has work left from a read")
    demand(not session._pending, f"{client} has octets left from a read")


def check_channel(channel: Channel, model: ChannelModel, client: Client, unacked: dict[Queue, Counter[int]]) -> None:
    where = f"{client}, channel {channel.number}"
    demand(not model.unconfirmed, f"{where}: {list(model.unconfirmed)} are not confirmed")
    demand(not model.returns, f"{where}: {model.returns} were not returned")
    held = {tag: number_of(delivery[3]) for tag, delivery in channel.unacked.items()}
    demand(held == {tag: number for tag, (_, number) in model.held.items()}, f"{where} holds {held}")
    demand(list(held) == sorted(held), f"{where}: tags are out of order")
    deliveries = list(channel.unacked.items())
    if channel.transaction is not None:
        deliveries += channel.transaction.acks
        deliveries += [delivery for _, delivery in channel.transaction.rejects]
    settled = {tag for tag, _ in deliveries} - set(held)
    demand(settled == set(model.settled), f"{where} has not committed {settled}")

    in_flight: Counter[str] = Counter()
    in_flight_total = 0
    for tag, (queue, consumer, position, _) in deliveries:
        if queue in unacked:
            unacked[queue][position] += 1
        if consumer is not None and channel.consumers.get(consumer.tag) is consumer:
            in_flight[consumer.tag] += 1
        in_flight_total += consumer is not None or tag <= channel.in_flight_since_tag
    demand(set(channel.consumers) == set(model.consumers), f"{where} has consumers {set(channel.consumers)}")
    for tag, consumer in channel.consumers.items():
        expected = model.consumers[tag]
        demand(consumer.in_flight == in_flight[tag], f"{where}: {tag} has {consumer.in_flight} in flight")
        demand(consumer.prefetch == expected.prefetch, f"{where}: {tag} has the prefetch {consumer.prefetch}")
        demand(
            not expected.prefetch or in_flight[tag] <= expected.prefetch, f"{where}: {tag} has more than its prefetch"
        )
        demand(consumer in consumer.queue.consumers, f"{where}: {tag} is no consumer of its queue")
    if model.prefetch_total:
        demand(channel.in_flight == in_flight_total, f"{where} counts {channel.in_flight} in flight")
        # A limit that came late is reached from above.
        demand(
            in_flight_total <= max(model.prefetch_total, model.in_flight_before),
            f"{where} has {in_flight_total} in flight, and may have {model.prefetch_total}",
        )
    model.in_flight_before = in_flight_total


def check_queue(queue: Queue, model: QueueModel, unacked: Counter[int]) -> None:
    name = queue.name
    returned = sorted(queue.returned, key=lambda item: item[0])
    ready = [*returned, *enumerate(queue.ready, queue.head)]
    demand(queue.ready_count == len(ready), f"{name} counts {queue.ready_count} ready")
    demand(queue.unacked_count == sum(unacked.values()), f"{name} counts {queue.unacked_count} unacked")
    demand(all(count == 1 for count in unacked.values()), f"{name}: a message is unacked twice")
    demand(all(position < queue.head for position, _ in returned), f"{name}: what came back was never taken out")
    numbers = [number_of(message) for _, message in ready]
    demand(len(set(numbers)) == len(numbers), f"{name} has a message twice")
    if model.is_limited:
        demand(set(numbers) <= set(model.places), f"{name} has what was never sent to it")
        demand(model.rejects_publish or len(numbers) <= (model.length_max or 0), f"{name} is longer than it may be")
        model.places = {number: model.places[number] for number in (*numbers, *sorted(model.unacked))}
    else:
        expected = sorted((place, number) for number, place in model.places.items() if number not in model.unacked)
        found = [(position, number_of(message)) for position, message in ready]
        demand(found == expected, f"{name} has {found} ready, not {expected}")
        demand(set(unacked) == {model.places[number] for number in model.unacked}, f"{name} has other messages unacked")
    check_takers(queue)


def check_takers(queue: Queue) -> None:
    name, takers = queue.name, list(queue.takers)
    demand(len(set(takers)) == len(takers), f"{name} has a taker twice")
    demand(set(takers) == {consumer for consumer in queue.consumers if consumer.is_taking}, f"{name} has other takers")
    for consumer in queue.consumers:
        can_take = consumer.can_take()
        demand(consumer.is_taking or not can_take, f"{name}: {consumer.tag} can take and is not in line")
        demand(
            can_take or not consumer.is_taking or consumer.is_full, f"{name}: {consumer.tag} is in line and cannot take"
        )
        demand(
            not can_take or not queue.ready_count or queue in queue.vhost.broker.undrained,
            f"{name}: {consumer.tag} and {queue.ready_count} messages wait for each other",
        )
    priorities = [consumer.priority for consumer in takers]
    demand(priorities == sorted(priorities, reverse=True), f"{name}: takers are not in the order of their priorities")
    paused = {consumer for consumer in queue.consumers if consumer.session.is_paused}  # type: ignore[attr-defined]
    demand(queue.clogged == paused, f"{name} is clogged by others than those who are paused")


def check_topology(lab: Lab, topology: Topology) -> None:
    vhost = lab.vhost
    demand(set(vhost.queues) == set(topology.queues), f"the queues are {set(vhost.queues)}")
    exchanges = {name: exchange for name, exchange in vhost.exchanges.items() if name in topology.exchanges}
    others = set(vhost.exchanges) - set(topology.exchanges)
    demand(
        others == {"", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.rabbitmq.event"},
        f"the exchanges are {set(vhost.exchanges)}",
    )
    bindings = [binding for exchange in exchanges.values() for binding in exchange.bindings.values()]
    found = {
        (binding.source.name, binding.routing_key, isinstance(binding.destination, Queue), binding.destination.name)
        for binding in bindings
    }
    expected = {
        (
            binding.source,
            binding.key,
            isinstance(binding.destination, QueueModel),
            getattr(binding.destination, "name", binding.destination),
        )
        for binding in topology.bindings
    }
    demand(found == expected and len(bindings) == len(expected), f"the bindings are {found}, not {expected}")
    incoming = [
        binding for destination in (*exchanges.values(), *vhost.queues.values()) for binding in destination.incoming
    ]
    demand(set(incoming) == set(bindings), "a binding is known at one end only")
    for name, queue in vhost.queues.items():
        model = topology.queues[name]
        owner = model.owner
        demand(queue.owner is (owner.peer.session if isinstance(owner, Client) else None), f"{name} has another owner")
        demand(queue.owner is None or queue in queue.owner.exclusive_queues, f"{name} is not known to its owner")
        demand(len(queue.consumers) == model.consumer_count, f"{name} has {len(queue.consumers)} consumers")
