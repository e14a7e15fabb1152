"""Messages are published, consumed, pulled and settled, in transactions and without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pamqp import base, frame
from pamqp.commands import Basic, Confirm, Tx

from tests.peer import publish_bytes
from tests.simulation.client import CONFIRMING, PLAIN, TRANSACTIONAL, ChannelModel, Client, ConsumerModel, Publish
from tests.simulation.counting import count_publish
from tests.simulation.ledger import Message, demand
from tests.simulation.topology import KEYS

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

# The largest is more than one portion of a drain, all others together are less.
BODY_BYTES = [0, 0, 0, 0, 0, 10, 100, 100, 100, 9000, 300_000]
EXPIRATIONS = ["0", "1", "300", "2000", "20000"]


def new_publish(sim: Simulation, channel: ChannelModel) -> tuple[Publish, bytes]:
    """A new message to somewhere, and its frames."""
    chance = sim.chance
    sim.numbers += 1
    to_queue = chance.random() < 0.6
    bound = [binding.source for binding in sim.topology.bindings]
    exchange = "" if to_queue else chance.choice([*sim.topology.exchanges, *bound, *bound])
    key = chance.choice(([*sim.topology.queues] * 3 + sim.taste.queues) if to_queue else KEYS)
    mandatory = chance.random() < 0.2
    body = b"%d " % sim.numbers + bytes(chance.choice(BODY_BYTES))
    properties: dict[str, Any] = chance.choice(
        [{}, {}, {"delivery_mode": 2}, {"message_id": str(sim.numbers)}, {"priority": chance.randrange(8)}]
    )
    if sim.taste.likes("expiration"):
        properties = {**properties, "expiration": chance.choice(EXPIRATIONS)}
    copies = [chance.choice(sim.taste.queues)] if chance.random() < 0.1 else []
    is_blind = chance.random() < 0.5
    data = publish_bytes(
        key,
        body,
        exchange=exchange,
        channel=channel.number,
        mandatory=mandatory,
        frame_size=chance.choice([8184, 8184, 3000]),
        **properties,
        headers={"BCC" if is_blind else "CC": copies} if copies else None,
    )
    message = Message(
        sim.numbers,
        len(body),
        exchange,
        key,
        properties,
        copy_keys=() if is_blind else tuple(copies),
        shown_copies=() if is_blind else tuple(copies),
        blind_keys=tuple(copies) if is_blind else (),
    )
    sim.tell(message)
    return Publish(message, sim.world.route(exchange, message.keys), mandatory), data


def publish(sim: Simulation) -> None:
    """Publish on all channels of a client at once, in one read or in two that cut anywhere."""
    if not sim.speakers:
        return
    client = sim.chance.choice(sim.speakers)
    channels = list(client.channels.values())
    if not channels:
        return
    frames, publishes = [], []
    # While a backlog is drained, each push continues the drain: then push one by one.
    for _ in range(1 if sim.lab.broker.undrained else sim.chance.choice([1, 1, 3, 10])):
        channel = sim.chance.choice(channels)
        message, data = new_publish(sim, channel)
        frames.append(data)
        sim.faults.on_publish(client, channel, message)
        channel.returns += [message] * message.returns
        if channel.mode == TRANSACTIONAL:
            channel.publishes.append(message)
            continue
        publishes.append((message, channel))
        count_publish(sim, channel, message, message.queues)
        if message.mandatory and not message.queues and not message.is_lost:
            channel.returns.append(message)
        if channel.mode == CONFIRMING:
            channel.published += 1
            if message.is_unconfirmed:
                channel.lost_confirms.add(channel.published)
                continue
            channel.unconfirmed[channel.published] = message
            message.earliest_ms = sim.lab.now + message.delay_ms if message.delay_ms else 0
            message.batch = sim.lab.broker.journal.batch
    data = b"".join(frames)
    # A read that blocks its client is the last.
    is_cut = sim.chance.random() < 0.3 and not client.blocked_by
    cut = sim.chance.randrange(len(data)) if is_cut else 0
    if cut:
        client.send(data[:cut])
    client.send(data[cut:])
    sim.hear()
    for message, channel in publishes:
        is_taken = sim.world.publish(message, channel) and not message.is_nacked
        if channel.mode == CONFIRMING:
            message.is_taken = is_taken
            message.must_be_safe = sim.world.must_keep(message.message)
            if message.is_acked is not None:
                client.check_confirm(message)


def consume(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    client, channel = found
    tag = sim.chance.choice("abcd")
    if tag in channel.consumers or (queue.is_quorum and channel.prefetch_total):
        return
    no_ack, exclusive = sim.chance.random() < 0.3, sim.chance.random() < 0.1
    priority = sim.chance.choice([0, 0, *range(-2, 3)])
    arguments = {"x-priority": priority} if priority else {}
    method = Basic.Consume(queue=queue.name, consumer_tag=tag, no_ack=no_ack, exclusive=exclusive, arguments=arguments)
    sim.tell(f"{client}: {tag} on {channel.number} from {queue}, no_ack={no_ack}, priority={priority}")
    is_shared = bool(queue.consumers) or queue.is_single_active
    if not queue.is_quorum and (queue.has_exclusive_consumer or (exclusive and is_shared)):
        sim.close_by_error(client, channel, method, 403)
        return
    queue.has_exclusive_consumer = exclusive and not queue.is_quorum
    prefetch = 0 if no_ack else channel.prefetch
    consumer = channel.consumers[tag] = ConsumerModel(client, channel, tag, queue, no_ack, prefetch, priority)
    consumer.take_over()
    sim.ask(client, channel, method, Basic.ConsumeOk)
    queue.join(consumer)


def cancel(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None:
        return
    client, channel = found
    tag = sim.chance.choice("abcd")
    demand(sim.ask(client, channel, Basic.Cancel(tag), Basic.CancelOk).consumer_tag == tag, "another is cancelled")
    if (consumer := channel.consumers.get(tag)) is not None:
        sim.world.cancel(consumer)


def get(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    client, channel = found
    no_ack = sim.chance.random() < 0.5
    method = Basic.Get(queue=queue.name, no_ack=no_ack)
    sim.tell(f"{client}: {queue}")
    queue.use()
    if queue.is_quorum and queue.is_single_active:
        sim.close_by_error(client, channel, method, 405)
    elif not queue.ready:
        sim.ask(client, channel, method, Basic.GetEmpty)
        sim.world.count(channel, queue, "get_empty")
    else:
        sim.ask(client, channel, method, Basic.GetOk)
        assert channel.got is not None
        ok, heard = channel.got
        assert ok.delivery_tag is not None
        head = queue.ready[0]
        expected, was_delivered = head.heard(), head.is_redelivered
        again = ["redeliver"] if was_delivered else []
        sim.world.count(channel, queue, "get_no_ack" if no_ack else "get", *again)
        # Dead letters of expired messages follow the answer, which does not count those that return.
        with sim.world.deaths_held():
            channel.hold(ok.delivery_tag, queue.take_head(), None, no_ack)
            behind = len(queue.ready)
            queue.expire()
            # A quorum queue counts expired messages behind one that will be settled.
            left = behind if queue.is_quorum and not no_ack else len(queue.ready)
        demand(heard == expected, f"{client} gets {heard}, not {expected}")
        demand(ok.redelivered == was_delivered, f"{client} gets {heard} with redelivered={ok.redelivered}")
        demand(ok.message_count == left, f"get-ok says {ok.message_count}, but {left} are there: {queue.ready}")


def settle(sim: Simulation) -> None:
    """Settle some deliveries of a channel, several in one read only if none can be returned."""
    if (found := sim.any_channel()) is None or not found[1].held:
        return
    client, channel = found
    verdict = sim.chance.choice(["ack", "requeue", "reject"])
    frames: list[bytes] = []
    settled: list[int] = []
    for _ in range(sim.chance.choice([1, 1, 2, 5]) if verdict == "ack" and not sim.faults.loses_acks else 1):
        left = [tag for tag in sorted(channel.held) if tag not in settled]
        if not left:
            break
        tag, multiple = sim.chance.choice(left), sim.chance.random() < 0.3
        method: base.Frame
        if verdict == "ack":
            method = Basic.Ack(tag, multiple)
        elif sim.chance.random() < 0.5:
            method = Basic.Nack(tag, multiple, requeue=verdict == "requeue")
        else:
            method, multiple = Basic.Reject(tag, requeue=verdict == "requeue"), False
        if multiple and not frames and sim.chance.random() < 0.2:
            tag = method.delivery_tag = 0  # not behind others, for which there may be new deliveries already
        of_method = [other for other in left if other in channel.tags(tag, multiple)]
        for other in of_method if channel.mode != TRANSACTIONAL else ():
            channel.held[other].frame = len(frames)
        frames.append(frame.marshal(method, channel.number))
        settled += of_method
    sim.tell(f"{client}: {verdict} {[channel.held[tag].copy for tag in settled]}")
    client.send(*frames)
    sim.hear()
    channel.was_freed = True
    if channel.mode == TRANSACTIONAL:
        number = 1 + max((held.method for held, _ in channel.settled.values()), default=0)
        for tag in settled:
            channel.settled[tag] = channel.held.pop(tag), verdict
            channel.settled[tag][0].method = number
    else:
        lost = sim.faults.lost_acks(channel.held, settled) if verdict == "ack" else set()
        sim.world.settle(channel, [tag for tag in settled if tag not in lost], verdict)


def recover(sim: Simulation) -> None:
    if (found := sim.any_channel(PLAIN, CONFIRMING)) is not None:
        client, channel = found
        sim.ask(client, channel, Basic.Recover(requeue=True), Basic.RecoverOk)
        channel.was_freed = True
        sim.world.settle(channel, sorted(channel.held), "requeue")


def qos(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None:
        return
    client, channel = found
    count, is_global = sim.chance.choice([0, 1, 2, 5]), sim.chance.random() < 0.3
    sim.tell(f"{client}: {count} on {channel.number}, global={is_global}")
    blocked = sim.world.blocked(channel)
    if is_global:
        channel.limit(count)
    else:
        channel.prefetch = count
        channel.limit(0)
    channel.was_freed = True
    sim.ask(client, channel, Basic.Qos(prefetch_count=count, global_=is_global), Basic.QosOk)
    sim.world.wake(blocked)


def select(sim: Simulation) -> None:
    if (found := sim.any_channel(PLAIN)) is None:
        return
    if sim.chance.random() < 0.6:
        sim.ask(*found, Confirm.Select(), Confirm.SelectOk)
        found[1].mode = CONFIRMING
    else:
        sim.ask(*found, Tx.Select(), Tx.SelectOk)
        found[1].mode = TRANSACTIONAL


def commit(sim: Simulation) -> None:
    if (found := sim.any_channel(TRANSACTIONAL)) is None:
        return
    client, channel = found
    if channel.prefetch_total and any(verdict != "ack" for _, verdict in channel.settled.values()):
        # Two limits are in effect, and the one that frees a consumer first would determine the receiver.
        roll_back_on(sim, client, channel)
        return
    sim.tell(
        f"{client}: {[one.message for one in channel.publishes]} and "
        f"{[(verdict, held.copy) for held, verdict in channel.settled.values()]}"
    )
    channel.returns = []
    for publish in channel.publishes:
        targets = [queue for queue in publish.queues if not queue.is_deleted]
        if publish.mandatory and not publish.queues:
            channel.returns.append(publish)
        sim.faults.return_mandatory(publish, targets)
        channel.returns += [publish] * publish.returns
        if publish.is_lost:
            publish.queues, targets = [queue for queue in publish.queues if queue.is_deleted], []
        count_publish(sim, channel, publish, targets)
    acked = sorted(tag for tag, (_, verdict) in channel.settled.items() if verdict == "ack")
    lost = sim.faults.lost_acks({tag: channel.settled[tag][0] for tag in acked}, acked)
    channel.held.update({tag: channel.settled.pop(tag)[0] for tag in sorted(lost)})
    channel.held = dict(sorted(channel.held.items()))
    journal, messages = sim.lab.broker.journal, [publish.message for publish in channel.publishes]
    batch = journal.batch
    client.send(frame.marshal(Tx.Commit(), channel.number))
    sim.hear()
    channel.was_freed = True
    is_complete = sim.world.commit(channel)
    sim.world.drain()
    if is_complete:
        client.answer(channel.number, Tx.CommitOk)
        is_safe = journal.committed >= batch or not any(sim.world.must_keep(message) for message in messages)
        demand(is_safe, f"{client}: a transaction is committed that is not safe")
    else:
        sim.expect_close(client, channel, 406)


def roll_back(sim: Simulation) -> None:
    if (found := sim.any_channel(TRANSACTIONAL)) is not None:
        roll_back_on(sim, *found)


def roll_back_on(sim: Simulation, client: Client, channel: ChannelModel) -> None:
    sim.ask(client, channel, Tx.Rollback(), Tx.RollbackOk)
    channel.roll_back()
