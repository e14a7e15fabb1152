"""Checks after every step: the broker's inside against the model."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from pamqp import frame

from amqp_broker.amqp.message import FRAME, Message
from amqp_broker.broker.durability.journal import Stored
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.queues.arrival_backlog import ArrivalBacklog
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.priority_backlog import PriorityBacklog
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
from amqp_broker.broker.queues.quorum_order import TwoLevels
from amqp_broker.session.channel.channel import Channel
from tests.memory_journal import MemoryJournal
from tests.simulation.client import ChannelModel, Client
from tests.simulation.connection_faults import check_notices
from tests.simulation.leaks import check_memory, has_next_portion
from tests.simulation.ledger import Broken, Copy, State, demand, heard_in
from tests.simulation.queues import QueueModel, in_turns
from tests.simulation.routing import Topology
from tests.simulation.topology import KEYS

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost
    from tests.simulation.simulation import Simulation

# Messages of a queue, by position.
Copies = dict[int, Copy]


def check(sim: Simulation) -> None:
    """Raise Broken for what is not as it must be."""
    vhost, topology, ledger = sim.lab.vhost, sim.topology, sim.world.ledger
    unacked: dict[Queue, Copies] = {queue: {} for queue in vhost.queues.values()}
    unacked_count = ready_count = 0
    for client in sim.clients:
        check_client(client)
        for number, channel in client.peer.session.channels.items():
            unacked_count += check_channel(channel, client.channels[number], client, unacked)
    unacked_count += check_late(sim, unacked)
    check_topology(vhost, topology)
    sim.faults.check()
    for name, queue in vhost.queues.items():
        check_queue(queue, topology.queues[name], unacked[queue])
        ready_count += queue.ready_count
        if sim.journal is not None:
            check_remembered(sim.journal, queue, topology.queues[name], unacked[queue])
    if sim.journal is not None:
        check_waiting(sim)
        buffered_bytes = sum(buffer._memory_bytes for queue in vhost.queues.values() for buffer in queue.buffers)
        demand(
            sim.journal.buffered_bytes == buffered_bytes, f"{sim.journal.buffered_bytes} octets, not {buffered_bytes}"
        )
    found = {State.READY: ready_count, State.UNACKED: unacked_count, State.DELAYED: 0}
    if found != {state: ledger.counts[state] for state in found}:
        raise Broken(f"{found} are there, not {ledger.counts}")
    demand(sum(ledger.counts.values()) == ledger.copies, f"of {ledger.copies} copies some are in no state or in two")
    sessions = {client.peer.session for client in sim.clients}
    demand(sim.lab.broker.connections == vhost.connections == sessions, "connections are counted wrongly")
    check_memory(sim.lab.broker, vhost, sessions, topology)


def check_late(sim: Simulation, unacked: dict[Queue, Copies]) -> int:
    """Also collects what is late as unacked; returns how many that are."""
    found = sim.lab.broker.faults.delayed
    late = {one: model for one, model in sim.faults.delayed.items() if model is not None}
    demand({one for ones in found.values() for one in ones.values()} == set(late), f"{late.values()} are to be late")
    for queue in set(found) & set(unacked):
        for position, one in found[queue].items():
            demand(position not in unacked[queue], f"{queue.name}: position {position} is late and unacked")
            unacked[queue][position] = late[one].copy
    return len(late)


def check_waiting(sim: Simulation) -> None:
    """No client waits for an empty batch, which the journal would never write."""
    assert sim.journal is not None
    coming = sim.journal.last_used_batch
    for client in sim.clients:
        session = client.peer.session
        awaited = [session.outbox.held_until, *(batch for one in session.gate.waiting for batch, *_ in one.uncommitted)]
        demand(max(awaited) <= coming, f"{client} waits for batches {awaited}, and {coming} is the last")


def number_of(message: Message) -> int:
    """The number that its body starts with."""
    start = FRAME.size + FRAME.unpack_from(message.content)[2] + 1 + FRAME.size
    return int(message.content[start : start + 12].partition(b" ")[0])


def check_client(client: Client) -> None:
    session = client.peer.session
    demand(not client.answers, f"{client}: {[method.name for _, method in client.answers]} is no answer")
    if set(session.channels) != set(client.channels):
        raise Broken(f"{client} has channels {set(session.channels)}")
    demand(session.closing_channels == client.closing, f"{client} has closing channels {session.closing_channels}")
    demand(
        sorted(client.cancels) == sorted(client.cancels_due),
        f"{client} received cancels of {client.cancels}, not of {client.cancels_due}",
    )
    client.cancels.clear()
    client.cancels_due.clear()
    check_notices(client)
    demand(not session.gate.confirming and not session.freed_consumers, f"{client} has work left from a read")
    demand(not session.reader._pending, f"{client} has octets left from a read")


def check_channel(channel: Channel, model: ChannelModel, client: Client, unacked: dict[Queue, Copies]) -> int:
    """Also collects what is unacked where; returns how many that are."""
    where = f"{client}, channel {channel.number}"
    committed = client.lab.broker.journal.committed
    for publish in model.unconfirmed.values():
        if publish.delay_ms and publish.latest_ms is None and publish.batch <= committed:
            publish.latest_ms = client.lab.now + publish.delay_ms
    due = [
        number
        for number, publish in model.unconfirmed.items()
        if publish.batch <= committed and (publish.latest_ms is None or client.lab.now > publish.latest_ms)
    ]
    if due:
        raise Broken(f"{where}: {due} are not confirmed")
    demand(not model.returns, f"{where}: {model.returns} were not returned")
    held = {tag: number_of(delivery[3]) for tag, delivery in channel.unacked.deliveries.items()}
    demand(list(held) == sorted(held), f"{where}: tags are out of order")
    duplicates = channel.unacked.duplicates
    held |= {tag: number_of(message) for tag, (_, message) in duplicates.items()}
    if held != {tag: held.copy.message.number for tag, held in model.held.items()}:
        raise Broken(f"{where} holds {held}")
    deliveries = list(channel.unacked.deliveries.items())
    if channel.transaction is not None:
        deliveries += channel.transaction.acks
        deliveries += [one for _, rejected in channel.transaction.rejects for one in rejected]
        duplicates = duplicates | channel.transaction.duplicates
    settled = ({tag for tag, _ in deliveries} | set(duplicates)) - set(held)
    if settled != set(model.settled):
        raise Broken(f"{where} has not committed {settled}")
    for delivery_tag, (queue, _, position, _) in deliveries:
        if queue in unacked:
            demand(position not in unacked[queue], f"{queue.name}: position {position} is unacked twice")
            unacked[queue][position] = model.unsettled[delivery_tag].copy
    if set(channel.consumers) != set(model.consumers):
        raise Broken(f"{where} has consumers {set(channel.consumers)}")
    for tag, consumer in channel.consumers.items():
        expected = model.consumers[tag]
        in_flight = expected.in_flight
        demand(consumer.in_flight == in_flight, f"{where}: {tag} has {consumer.in_flight} in flight")
        demand(consumer.prefetch == expected.prefetch, f"{where}: {tag} has the prefetch {consumer.prefetch}")
        demand(not expected.prefetch or in_flight <= expected.prefetch, f"{where}: {tag} has more than its prefetch")
        demand(consumer in consumer.queue.consumers, f"{where}: {tag} is no consumer of its queue")
    late_count, reserved_count = sum(not late.consumer.no_ack for late in model.late), channel.unacked.reserved_count
    demand(reserved_count == late_count, f"{where} waits for {reserved_count} that are late, not {late_count}")
    if model.prefetch_total:
        count = None if channel.limit is None else channel.limit.count
        demand(count == model.in_flight, f"{where} counts {count} in flight, not {model.in_flight}")
    return len(deliveries) + len(duplicates)


def ready_of(queue: BacklogQueue[Any]) -> list[tuple[int, Message]]:
    """Positions and messages in the order of delivery."""
    backlog = queue.backlog
    if isinstance(backlog, PriorityBacklog):
        priorities = backlog.range_count
        ready = [item for buffer in backlog._buffers for item in buffer.items()]
        ready += [(position, message) for _, position, message in backlog._returned]
        return sorted(ready, key=lambda item: (-(item[0] % priorities), item[0]))
    if isinstance(backlog, QuorumBacklog):
        order = backlog.order
        assert isinstance(order, TwoLevels)
        high, normal = ([item for level in levels for item in level.items()] for levels in (order._high, order._normal))
        return [*backlog._returned, *in_turns(high, normal, order.turn, age=lambda item: item[0])]
    assert isinstance(backlog, ArrivalBacklog)
    returned = sorted(backlog.returned, key=lambda item: item[0])
    if backlog.paged is not None:
        demand(not backlog.ready, f"{queue.name}: something is beside the buffer")
        return [*returned, *backlog.paged.items()]
    is_before = all(position < backlog.head for position, _ in returned)
    demand(is_before, f"{queue.name}: a returned message was never taken out")
    return [*returned, *enumerate(backlog.ready, backlog.head)]


def paged(queue: Queue) -> set[int]:
    """Positions of what is ready and not in memory."""
    return {
        position
        for buffer in queue.buffers
        if buffer.paged_count
        for position, _ in islice(buffer.items(), len(buffer.memory), len(buffer))
    }


def check_queue(queue: BacklogQueue[Any], model: QueueModel, unacked: Copies) -> None:
    name, ready = queue.name, ready_of(queue)
    numbers = [number_of(message) for _, message in ready]
    expected = [copy.message.number for copy in model.ready]
    if numbers != expected:
        raise Broken(f"{name} has {numbers} ready, not {model.ready} ({model})")
    demand(queue.ready_count == len(ready), f"{name} counts {queue.ready_count} ready")
    if set(unacked.values()) != model.unacked:
        raise Broken(f"{name} has {unacked} unacked, not {model.unacked}")
    demand(queue.unacked_count == len(unacked), f"{name} counts {queue.unacked_count} unacked")
    for (_, message), copy in zip(ready, model.ready, strict=True):
        check_message(message, copy)
    demand([message for _, message in ready] == list(queue.messages()), f"{name} shows another order than it has")
    copies = {position: copy for (position, _), copy in zip(ready, model.ready, strict=True)} | unacked
    demand(len(copies) == len(ready) + len(unacked), f"{name}: two messages are at one position")
    # check_remembered covers the messages that are only in the journal.
    away = paged(queue)
    copies = {position: copy for position, copy in copies.items() if position not in away}
    deadlines = {position: copy.deadline_ms for position, copy in copies.items() if copy.deadline_ms is not None}
    if queue.deadlines != deadlines:
        raise Broken(f"{name} has the deadlines {queue.deadlines}, not {deadlines}")
    if isinstance(queue, QuorumQueue):
        returns = {position: copy.returns for position, copy in copies.items() if copy.returns}
        # Of what is only in the journal some is known nevertheless.
        found = {position: count for position, count in queue.counts.returns.items() if position not in away}
        known = {position for position, _ in ready} | set(unacked)
        if found != returns or not set(queue.counts.returns) <= known:
            raise Broken(f"{name} counts returns {queue.counts.returns}, not {returns}")
        if not (set(queue.counts._originals) <= set(unacked)):
            raise Broken(f"{name} keeps the originals of {set(queue.counts._originals)}")
    check_limits(queue, model)
    check_consumers(queue, model)


def check_message(message: Message, copy: Copy) -> None:
    """Each ready message is as it was published, or as it was dead-lettered."""
    if copy.seen is not message:
        content_header, pieces = frame.unmarshal(message.content)[2], message.body_pieces()
        heard, expected = heard_in(message, content_header, b"".join(pieces)), copy.message.heard()
        demand(heard == expected, f"{copy} is {heard}, not {expected}")
        copy.seen = message


def check_limits(queue: BacklogQueue[Any], model: QueueModel) -> None:
    name, settings = queue.name, model.settings
    body_bytes = sum(message.body_bytes for _, message in ready_of(queue))
    if settings.bytes_max is not None:
        counted = queue.limit.ready_bytes
        demand(counted == body_bytes, f"{name} counts {counted} octets, not {body_bytes}")
    if settings.overflow == "drop-head":
        is_short = settings.length_max is None or queue.ready_count <= settings.length_max
        demand(is_short, f"{name} has {queue.ready_count} messages")
        is_small = settings.bytes_max is None or body_bytes <= settings.bytes_max
        demand(is_small, f"{name} has {body_bytes} octets")


def check_consumers(queue: Queue, model: QueueModel) -> None:
    name, ready = queue.name, list(queue.ready_consumers)
    tags = [(consumer.number, consumer.tag) for consumer in queue.consumers]
    if tags != [(c.channel.number, c.tag) for c in model.consumers]:
        raise Broken(f"{name} has the consumers {tags}")
    active = queue.rotation.active_consumer
    expected = model.active.tag if model.active is not None else None
    demand((active.tag if active is not None else None) == expected, f"{name}: another than {expected} is active")
    demand(len(set(ready)) == len(ready), f"{name} has a consumer twice")
    demand(
        set(ready) == {consumer for consumer in queue.consumers if consumer.is_taking},
        f"{name} has other ready consumers",
    )
    for consumer, consumer_model in zip(queue.consumers, model.consumers, strict=True):
        can_take = consumer_model.can_take()
        demand(consumer.is_taking or not can_take, f"{name}: {consumer.tag} can take and is not in line")
        demand(
            can_take or not consumer.is_taking or consumer.is_full, f"{name}: {consumer.tag} is in line and cannot take"
        )
        demand(
            not can_take or not queue.ready_count or has_next_portion(queue),
            f"{name}: {consumer.tag} and {queue.ready_count} messages wait for each other",
        )
    priorities = [consumer.priority for consumer in ready]
    demand(
        priorities == sorted(priorities, reverse=True),
        f"{name}: priorities are out of order",
    )
    paused = {c for c, other in zip(queue.consumers, model.consumers, strict=True) if other.client.is_paused}
    demand(queue.backpressured == paused, f"{name} has other backpressured consumers than the paused ones")


def check_remembered(journal: MemoryJournal, queue: BacklogQueue[Any], model: QueueModel, unacked: Copies) -> None:
    """A restart would find the durable state if everything in the journal were committed."""
    ready = {position: copy for (position, _), copy in zip(ready_of(queue), model.ready, strict=True)}
    copies, lines, away = ready | unacked, len(queue.buffers), paged(queue)
    demand(bool(lines) == model.is_durable, f"{queue.name} has {lines} buffers")
    for number, buffer in enumerate(queue.buffers):
        if not buffer.next:
            continue  # one of the many of a quorum queue that nothing ever was in
        found = {position: as_remembered(stored) for position, stored in told(journal, buffer).items()}
        here = {position: copy for position, copy in copies.items() if position % lines == number}
        kept = {position: copy for position, copy in here.items() if model.keeps(copy.message)}
        expected = {
            position: (copy.message.number, copy.deadline_ms, copy.stored_returns) for position, copy in kept.items()
        }
        for position, copy in kept.items():
            is_delivered = position < buffer.head or copy.stored_returns > 0
            demand(is_delivered == copy.was_delivered, f"{queue.name}: {copy} will be redelivered={is_delivered}")
        # Paged messages are there, too, also those that a former process paged out.
        others = set(found) - set(expected) - (set(here) & away)
        others = {position for position in others if position >= buffer._restored_before}
        if others or any(found.get(position) != expected[position] for position in expected):
            raise Broken(f"{queue.name} remembers {found}, not {expected}")
        in_buffer = dict(buffer.items())
        taken = [copy.message.body_bytes for position, copy in kept.items() if position not in in_buffer]
        body_bytes = [copy.message.body_bytes for copy in kept.values()]
        counts = (buffer.stored_count, buffer.stored_bytes, buffer.taken_count, buffer.taken_bytes)
        if counts != (len(kept), sum(body_bytes), len(taken), sum(taken)):
            raise Broken(f"{queue.name} counts {counts}, not {body_bytes} and of that {taken} as taken")
        ready_bytes = sum(message.body_bytes for message in buffer)
        demand(buffer.ready_bytes == ready_bytes, f"{queue.name}: {buffer.ready_bytes} octets are ready")


def told(journal: MemoryJournal, buffer: PagedBuffer) -> dict[int, Stored]:
    """Return the messages of a buffer in the journal, now and when everything is committed."""
    found = {position: stored for (other, position), stored in journal.disk.messages.items() if other == buffer.id}
    found |= buffer.writing
    for batch in (journal._writing, journal._collected):
        if batch is None:
            continue
        if batch is journal._collected:
            found |= buffer.puts
        for position in dict(batch.buffers).get(buffer, []) if batch is journal._writing else buffer.removes:
            found.pop(position, None)
        for other, start, end in batch.discards:
            for position in [position for position in found if other == buffer.id and start <= position < end]:
                del found[position]
    return found


def as_remembered(stored: Stored) -> tuple[int, int | None, int]:
    return number_of(stored.message), stored.deadline_ms, stored.returns


def has_bereft_exchange(vhost: VHost) -> bool:
    """Tell whether an auto-delete exchange is about to go: none of its bindings is in force any more."""
    return any(
        exchange.is_auto_delete and exchange.bindings and not any(one.is_in_force for one in exchange.bindings.values())
        for exchange in vhost.exchanges.values()
    )


def check_routes(vhost: VHost) -> None:
    """Check that no message is routed to a deleted queue."""
    for exchange in vhost.exchanges.values():
        for key in KEYS:
            queues, _ = vhost.route(exchange, (key,), {}, None)
            gone = [queue.name for queue in queues if vhost.queues.get(queue.name) is not queue]
            demand(not gone, f"{exchange.name} routes {key!r} to {gone}, which are gone")


def check_topology(vhost: VHost, topology: Topology) -> None:
    if list(vhost.queues) != list(topology.queues):
        raise Broken(f"the queues are {list(vhost.queues)}")
    exchanges = {name: exchange for name, exchange in vhost.exchanges.items() if name in topology.exchanges}
    others = set(vhost.exchanges) - set(topology.exchanges)
    demand(
        others == {"", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.rabbitmq.event"},
        f"the exchanges are {set(vhost.exchanges)}",
    )
    if set(exchanges) != set(topology.exchanges):
        raise Broken(f"the exchanges are {set(exchanges)}")
    for name, exchange in exchanges.items():
        model = topology.exchanges[name]
        alternate = model.alternate or model.policy_alternate
        demand(exchange.alternate == alternate, f"{name} has the alternate {exchange.alternate}")
    bindings = [one for exchange in exchanges.values() for one in exchange.bindings.values() if one.is_in_force]
    found = Counter(
        (binding.source.name, binding.routing_key, isinstance(binding.destination, Queue), binding.destination.name)
        for binding in bindings
    )
    expected = Counter(
        (
            binding.source,
            binding.key,
            isinstance(binding.destination, QueueModel),
            binding.destination.name if isinstance(binding.destination, QueueModel) else binding.destination,
        )
        for binding in topology.bindings
    )
    if found != expected:
        raise Broken(f"the bindings are {found}, not {expected}")
    destinations: list[Exchange | Queue] = [*exchanges.values(), *vhost.queues.values()]
    incoming = [one for destination in destinations for one in destination.incoming if one.is_in_force]
    demand(set(incoming) == set(bindings), "a binding is known at one end only")
    for name, queue in vhost.queues.items():
        owner = topology.queues[name].owner
        demand(queue.owner is (owner.peer.session if owner is not None else None), f"{name} has another owner")
        demand(queue.owner is None or queue in queue.owner.exclusive_queues, f"{name} is not known to its owner")
