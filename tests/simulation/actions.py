"""What can happen to a simulated world: one short action after the other, chosen by weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pamqp import base, frame
from pamqp.commands import Basic, Channel, Confirm, Connection, Queue, Tx

from tests.peer import publish_bytes
from tests.simulation.client import (
    CLOSE_CHANNEL,
    CLOSE_CONNECTION,
    CONFIRMING,
    PLAIN,
    TRANSACTIONAL,
    ChannelModel,
    Client,
    ConsumerModel,
    Publish,
)
from tests.simulation.model import demand
from tests.simulation.topology import (
    KEYS,
    QUEUES,
    bind,
    declare_exchange,
    declare_queue,
    delete_exchange,
    delete_queue,
    look_at_queue,
    purge,
    unbind,
)

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

CLIENTS_MAX = 5
CHANNELS_MAX = 3
# Two of the largest are more than one portion of a drain.
BODY_BYTES = [0, 0, 0, 0, 10, 100, 100, 9000, 150_000]


def new_message(sim: Simulation, channel: ChannelModel) -> tuple[Publish, bytes]:
    """A new message to somewhere, and its frames."""
    chance = sim.chance
    sim.numbers += 1
    to_queue = chance.random() < 0.6
    exchange = "" if to_queue else chance.choice(sorted(sim.topology.exchanges))
    key = chance.choice(QUEUES if to_queue else KEYS)
    mandatory = chance.random() < 0.2
    body = b"%d " % sim.numbers + bytes(chance.choice(BODY_BYTES))
    copies = [chance.choice(QUEUES)] if chance.random() < 0.1 else []
    properties = chance.choice([{}, {}, {"delivery_mode": 2}, {"message_id": str(sim.numbers)}])
    if copies:
        properties = {**properties, "headers": {chance.choice(["CC", "BCC"]): copies}}
    data = publish_bytes(
        key,
        body,
        exchange=exchange,
        channel=channel.number,
        mandatory=mandatory,
        frame_size=chance.choice([8184, 8184, 3000]),
        **properties,
    )
    return Publish(sim.numbers, sim.topology.route(exchange, [key, *copies]), mandatory), data


def take_effect(channel: ChannelModel, publish: Publish) -> None:
    """A message gets to its queues, or back to its publisher."""
    for queue in publish.queues:
        if not queue.is_deleted:
            queue.push(publish.number)
    if publish.mandatory and not publish.queues:
        channel.returns.append((publish.number, 0))


# What can happen


def connect(sim: Simulation) -> None:
    if len(sim.clients) < CLIENTS_MAX:
        sim.connect()


def disconnect(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    client.peer.disconnect()
    sim.forget(client)


def close_connection(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    sim.forget(client)
    client.send(frame.marshal(CLOSE_CONNECTION, 0))
    client.listen()
    client.answer(0, Connection.CloseOk)
    demand(client.peer.is_dropped, f"{client} is not dropped after its close")


def lose_some(sim: Simulation) -> None:
    if len(sim.clients) > 2:
        sim.chance.choice([disconnect, close_connection, force_close, break_protocol])(sim)


def force_close(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    sim.forget(client)
    client.peer.session.force_close("for a reason", sim.lab.now)
    client.listen()
    demand(client.answer(0, Connection.Close).reply_code == 320, f"{client} is closed otherwise")
    client.send(frame.marshal(Connection.CloseOk(), 0))


def break_protocol(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    sim.forget(client)
    client.send(b"\x09\x00\x00\x00\x00\x00\x00\xce")
    client.listen()
    demand(client.answer(0, Connection.Close).reply_code == 501, f"{client} is closed otherwise")
    client.peer.disconnect()


def open_channel(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    number = sim.chance.randrange(1, CHANNELS_MAX + 1)
    if number not in client.channels and number not in client.closing:
        channel = client.channels[number] = ChannelModel(number)
        sim.ask(client, channel, Channel.Open(), Channel.OpenOk)


def close_channel(sim: Simulation) -> None:
    if (found := sim.any_channel()) is not None:
        client, channel = found
        queues = client.lose_channel(channel)
        sim.leave(queues)
        client.send(frame.marshal(CLOSE_CHANNEL, channel.number))
        client.listen()
        client.answer(channel.number, Channel.CloseOk)


def do_wrong(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None:
        return
    client, channel = found
    faults: list[tuple[base.Frame | bytes, int]] = [
        (Basic.Ack(channel.last_tag + 1), 406),
        (Basic.Nack(channel.last_tag + 5, multiple=True), 406),
        (Queue.Declare(queue="missing", passive=True), 404),
        (publish_bytes("k", b"0 ", exchange="missing", channel=channel.number), 404),
        (publish_bytes("q1", b"0 ", channel=channel.number, expiration="soon"), 406),
    ]
    faults += [
        (Basic.Get(queue=queue.name), 405)
        for queue in sim.topology.queues.values()
        if queue.owner not in (None, client)
    ]
    sim.close_by_error(client, channel, *sim.chance.choice(faults))


def speak_on_closing_channel(sim: Simulation) -> None:
    for client in sim.clients:
        for number in client.closing:
            client.send(
                publish_bytes("q1", b"0 ", channel=number),
                frame.marshal(Basic.Ack(1), number),
                frame.marshal(Queue.Declare(queue="q1", passive=True), number),
            )


def answer_close(sim: Simulation) -> None:
    for client in sim.clients:
        while client.closing:
            client.send(frame.marshal(Channel.CloseOk(), client.closing.pop()))


def publish(sim: Simulation) -> None:
    """Publish on all channels of a client at once, in one read or in two that cut anywhere."""
    client = sim.chance.choice(sim.clients)
    channels = list(client.channels.values())
    if not channels:
        return
    frames = []
    for _ in range(sim.chance.choice([1, 1, 3, 10])):
        channel = sim.chance.choice(channels)
        message, data = new_message(sim, channel)
        frames.append(data)
        if channel.mode == TRANSACTIONAL:
            channel.publishes.append(message)
            continue
        take_effect(channel, message)
        if channel.mode == CONFIRMING:
            channel.published += 1
            channel.unconfirmed[channel.published] = message
    data = b"".join(frames)
    cut = sim.chance.randrange(len(data)) if sim.chance.random() < 0.3 else 0
    if cut:
        client.send(data[:cut])
    client.send(data[cut:])


def consume(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    client, channel = found
    tag = sim.chance.choice("abcd")
    if tag in channel.consumers or any(at == channel.number and c.tag == tag for at, c in client.bereft):
        return
    no_ack, exclusive = sim.chance.random() < 0.3, sim.chance.random() < 0.1
    arguments = sim.chance.choice([{}, {}, {"x-priority": sim.chance.randrange(-2, 3)}])
    method = Basic.Consume(queue=queue.name, consumer_tag=tag, no_ack=no_ack, exclusive=exclusive, arguments=arguments)
    if queue.has_exclusive_consumer or (exclusive and queue.consumer_count):
        sim.close_by_error(client, channel, method, 403)
        return
    queue.has_exclusive_consumer = exclusive
    channel.consumers[tag] = ConsumerModel(tag, queue, no_ack, 0 if no_ack else channel.prefetch)
    queue.consumer_count += 1
    sim.ask(client, channel, method, Basic.ConsumeOk)


def cancel(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None:
        return
    client, channel = found
    tag = sim.chance.choice("abcd")
    demand(sim.ask(client, channel, Basic.Cancel(tag), Basic.CancelOk).consumer_tag == tag, "another is cancelled")
    if (consumer := channel.consumers.pop(tag, None)) is not None:
        sim.leave([consumer.queue])


def get(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    client, channel = found
    channel.pulls_from, channel.pulls_no_ack = queue, sim.chance.random() < 0.5
    is_empty = not queue.ready_count
    client.send(frame.marshal(Basic.Get(queue=queue.name, no_ack=channel.pulls_no_ack), channel.number))
    client.listen()
    _, answer = client.answers.pop()
    demand(queue.is_limited or isinstance(answer, Basic.GetEmpty) == is_empty, f"{client}: {answer.name}")


def settle(sim: Simulation) -> None:
    """Settle some of what a channel holds, in one read."""
    if (found := sim.any_channel()) is None or not found[1].held:
        return
    client, channel = found
    frames = []
    for _ in range(sim.chance.choice([1, 1, 2, 5])):
        if not channel.held:
            break
        tag = sim.chance.choice(list(channel.held))
        multiple, requeue = sim.chance.random() < 0.3, sim.chance.random() < 0.5
        if multiple and not frames and sim.chance.random() < 0.2:
            tag = 0  # not behind others, for which new messages may have come that this client does not know of yet
        method: base.Frame
        match sim.chance.choice(["ack", "ack", "nack", "reject"]):
            case "ack":
                method, requeue = Basic.Ack(tag, multiple), False
            case "nack":
                method = Basic.Nack(tag, multiple, requeue)
            case _:
                tag = tag or min(channel.held)
                method, multiple = Basic.Reject(tag, requeue), False
        client.settle(channel, tag, multiple=multiple, requeue=requeue)
        frames.append(frame.marshal(method, channel.number))
        if requeue and channel.mode != TRANSACTIONAL:
            # It may come back at once, and then this client holds what it does not know of yet.
            break
    client.send(*frames)


def recover(sim: Simulation) -> None:
    if (found := sim.any_channel(PLAIN, CONFIRMING)) is not None:
        client, channel = found
        client.settle(channel, 0, multiple=True, requeue=True)
        sim.ask(client, channel, Basic.Recover(requeue=True), Basic.RecoverOk)


def qos(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None:
        return
    client, channel = found
    count, is_global = sim.chance.choice([0, 1, 2, 5]), sim.chance.random() < 0.3
    if is_global:
        channel.prefetch_total = count
        channel.in_flight_before = len(channel.held) + len(channel.settled)
    else:
        channel.prefetch, channel.prefetch_total = count, 0
    sim.ask(client, channel, Basic.Qos(prefetch_count=count, global_=is_global), Basic.QosOk)


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
    if any(queue.rejects_publish for publish in channel.publishes for queue in publish.queues):
        return  # whether that is partial is the queue's to decide
    for publish in channel.publishes:
        take_effect(channel, publish)
    for queue, number, requeue in channel.settled.values():
        queue.settle(number, requeue)
    channel.publishes.clear()
    channel.settled.clear()
    sim.ask(client, channel, Tx.Commit(), Tx.CommitOk)


def roll_back(sim: Simulation) -> None:
    if (found := sim.any_channel(TRANSACTIONAL)) is None:
        return
    client, channel = found
    sim.ask(client, channel, Tx.Rollback(), Tx.RollbackOk)
    channel.publishes.clear()
    channel.held |= {tag: (queue, number) for tag, (queue, number, _) in channel.settled.items()}
    channel.held = dict(sorted(channel.held.items()))
    channel.settled.clear()


def pause_or_resume(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    if client.is_paused:
        resume(sim, client)
    else:
        client.is_paused = True
        client.peer.session.pause()


def resume(sim: Simulation, client: Client) -> None:
    client.is_paused = False
    client.peer.session.resume(sim.lab.now)


def resume_all(sim: Simulation) -> None:
    for client in sim.clients:
        if client.is_paused:
            resume(sim, client)


def drain_on(sim: Simulation) -> None:
    sim.lab.broker.drain_on()


def pass_time(sim: Simulation) -> None:
    end = sim.lab.now + sim.chance.choice([1, 500, 3000, 8000])
    timers = sim.lab.broker.timers
    while (deadline := timers.next_deadline()) is not None and deadline <= end:
        sim.lab.advance(max(0, deadline - sim.lab.now))
        sim.listen()
    sim.lab.advance(end - sim.lab.now)


def send_heartbeats(sim: Simulation) -> None:
    for client in sim.clients:
        client.send(b"\x08\x00\x00\x00\x00\x00\x00\xce")


ACTIONS_AND_WEIGHTS: list[tuple[Callable[[Simulation], None], int]] = [
    (publish, 30),
    (settle, 25),
    (consume, 12),
    (get, 6),
    (open_channel, 8),
    (declare_queue, 8),
    (bind, 6),
    (qos, 6),
    (cancel, 4),
    (drain_on, 8),
    (pause_or_resume, 4),
    (send_heartbeats, 6),
    (pass_time, 4),
    (connect, 4),
    (declare_exchange, 3),
    (select, 5),
    (commit, 8),
    (roll_back, 3),
    (recover, 2),
    (look_at_queue, 2),
    (purge, 1),
    (unbind, 2),
    (close_channel, 2),
    (do_wrong, 2),
    (answer_close, 3),
    (speak_on_closing_channel, 1),
    (delete_queue, 1),
    (delete_exchange, 1),
    (lose_some, 2),
]
ACTIONS = [action for action, _ in ACTIONS_AND_WEIGHTS]
WEIGHTS = [weight for _, weight in ACTIONS_AND_WEIGHTS]
