"""Random applications of many clients over one broker, a step at a time, and a look at everything after each step.

Simulation(seed=1).run(300)

The same seed gives the same run. `Broken` is raised for the first thing that is not as it must be.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from pamqp import base, frame
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue, Tx

from tests.peer import CAPABILITIES, Lab, publish_bytes
from tests.simulation.checks import check
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
from tests.simulation.model import BindingModel, Broken, ExchangeModel, Number, QueueModel, Topology, demand

QUEUES = [f"q{number}" for number in range(6)]
EXCHANGES = [f"x{number}" for number in range(4)]
KEYS = ["a", "b", "a.b", "a.b.c", "", "q1"]
PATTERNS = [*KEYS, "#", "*", "a.#", "*.b", "#.c", "*.*"]
CLIENTS_MAX = 5
CHANNELS_MAX = 3
# Two of the largest are more than one portion of a drain.
BODY_BYTES = [0, 0, 0, 0, 10, 100, 100, 9000, 150_000]


class Simulation:
    """The broker, its clients, the model of what must be, and the chance that decides what happens."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.lab = Lab()
        self.topology = Topology()
        self.clients: list[Client] = []
        self.connected = 0
        self.numbers = 0
        self.story: list[str] = []
        self.is_ending = False
        for _ in range(2):
            self.connect()

    def run(self, steps: int) -> None:
        """Live so many steps, and then see that nothing is left behind."""
        for _ in range(steps):
            self.step()
        self.end()

    def step(self) -> None:
        """Something happens; and everything is still as it must be."""
        action = self.chance.choices(ACTIONS, WEIGHTS)[0]
        self._do(action)

    def _do(self, action: Callable[[Simulation], None]) -> None:
        self.story.append(action.__name__)
        try:
            action(self)
            self.listen()
            check(self.lab, self.topology, self.clients)
        except Exception as error:
            error.add_note(f"step {len(self.story)}: {action.__name__}")
            raise

    def end(self) -> None:
        """Everything that was put off is done; everybody leaves; what nobody had settled is there."""
        self.is_ending = True
        for client in self.clients:
            if client.is_paused:
                self._do(lambda _, client=client: resume(self, client))  # type: ignore[misc]
        while self.lab.broker.undrained:
            self._do(drain_on)
        while self.clients:
            self._do(disconnect)
        demand(not self.lab.broker.connections, "a connection is left")
        for queue in self.topology.queues.values():
            demand(not queue.unacked, f"{queue.name} has unacked messages of nobody")

    # For the actions

    def listen(self) -> None:
        """Let everybody read; first those whose heartbeats the broker has missed, as others get what they held."""
        self.lab.dirty.clear()
        for client in [client for client in self.clients if client.peer.is_dropped]:
            client.listen()
            silent_ms = self.lab.now - client.spoke_at
            demand(0 < client.heartbeat_s * 2000 <= silent_ms, f"{client} is dropped for no reason")
            self.forget(client)
        for client in self.clients:
            client.listen()
            demand(not client.answers, f"{client}: {[method.name for _, method in client.answers]} is no answer")
        while len(self.clients) < 2 and not self.is_ending:
            self.connect()

    def connect(self) -> None:
        self.connected += 1
        chance = self.chance
        capabilities = chance.choice([CAPABILITIES, CAPABILITIES, {}])
        client = Client(
            self.lab,
            f"client{self.connected}",
            heartbeat_s=chance.choice([0, 0, 5]),
            frame_max=chance.choice([131072, 8192]),
            capabilities=capabilities,
        )
        self.clients.append(client)

    def forget(self, client: Client) -> None:
        """A client is gone, and what lives with it."""
        client.is_open = False
        self.clients.remove(client)
        queues = [queue for channel in list(client.channels.values()) for queue in client.lose_channel(channel)]
        self.leave(queues)
        for queue in [queue for queue in self.topology.queues.values() if queue.owner is client]:
            self.delete_queue(queue)

    def leave(self, queues: list[QueueModel]) -> None:
        """Consumers of these queues are gone; an auto-delete queue goes with its last one."""
        for queue in queues:
            queue.consumer_count -= 1
            queue.has_exclusive_consumer = False
            if queue.is_auto_delete and not queue.consumer_count and not queue.is_deleted:
                self.delete_queue(queue)

    def delete_queue(self, queue: QueueModel) -> None:
        self.topology.delete_queue(queue)
        for client in self.clients:
            for channel in client.channels.values():
                for consumer in [consumer for consumer in channel.consumers.values() if consumer.queue is queue]:
                    del channel.consumers[consumer.tag]
                    if client.capabilities.get("consumer_cancel_notify"):
                        client.bereft.append((channel.number, consumer))

    def close_by_error(self, client: Client, channel: ChannelModel, method: base.Frame | bytes, code: int) -> None:
        """Do something wrong, which closes the channel."""
        data = method if isinstance(method, bytes) else frame.marshal(method, channel.number)
        queues = client.lose_channel(channel)
        client.closing.add(channel.number)
        self.leave(queues)
        client.send(data)
        # What was sent before the close belongs to a channel that is still there.
        client.channels[channel.number] = ChannelModel(channel.number)
        client.listen()
        del client.channels[channel.number]
        close = client.answer(channel.number, Channel.Close)
        demand(close.reply_code == code, f"{client}: {close.reply_text}, not {code}")

    def ask(self, client: Client, channel: ChannelModel, method: base.Frame, answer: type[base.Frame]) -> Any:
        """Send a method and return its answer."""
        client.send(frame.marshal(method, channel.number))
        client.listen()
        return client.answer(channel.number, answer)

    def any_channel(self, *modes: str) -> tuple[Client, ChannelModel] | None:
        """An open channel of somebody."""
        found = [
            (client, channel)
            for client in self.clients
            for channel in client.channels.values()
            if not modes or channel.mode in modes
        ]
        return self.chance.choice(found) if found else None

    def any_queue(self, client: Client) -> QueueModel | None:
        """A queue that the client may use."""
        found = [queue for queue in self.topology.queues.values() if queue.owner in (None, client)]
        return self.chance.choice(found) if found else None

    def message(self, client: Client, channel: ChannelModel) -> tuple[Publish, bytes]:
        """A new message to somewhere, and its frames."""
        chance = self.chance
        self.numbers += 1
        to_queue = chance.random() < 0.6
        exchange = "" if to_queue else chance.choice(sorted(self.topology.exchanges))
        key = chance.choice(QUEUES if to_queue else KEYS)
        mandatory = chance.random() < 0.2
        body = b"%d " % self.numbers + bytes(chance.choice(BODY_BYTES))
        copies = [chance.choice(QUEUES)] if chance.random() < 0.1 else []
        properties = chance.choice([{}, {}, {"delivery_mode": 2}, {"message_id": str(self.numbers)}])
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
        return Publish(self.numbers, self.topology.route(exchange, [key, *copies]), mandatory), data


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


def declare_queue(sim: Simulation) -> None:
    name = sim.chance.choice(QUEUES)
    if (found := sim.any_channel()) is None or name in sim.topology.queues:
        return
    client, channel = found
    queue = QueueModel(name)
    arguments: dict[str, object] = {}
    match sim.chance.randrange(8):
        case 0:
            queue.owner = client
        case 1:
            queue.is_auto_delete = True
        case 2:
            queue.length_max = arguments["x-max-length"] = sim.chance.randrange(5)
        case 3:
            queue.length_max = arguments["x-max-length"] = sim.chance.randrange(5)
            queue.rejects_publish = True
            arguments["x-overflow"] = "reject-publish"
    declare = Queue.Declare(
        queue=name,
        durable=sim.chance.random() < 0.5,
        exclusive=queue.owner is not None,
        auto_delete=queue.is_auto_delete,
        arguments=arguments,
    )
    ok = sim.ask(client, channel, declare, Queue.DeclareOk)
    demand((ok.queue, ok.message_count, ok.consumer_count) == (name, 0, 0), f"{name} is new and not empty")
    sim.topology.queues[name] = queue


def look_at_queue(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    ok = sim.ask(*found, Queue.Declare(queue=queue.name, passive=True), Queue.DeclareOk)
    demand(queue.is_limited or ok.message_count == queue.ready_count, f"{queue.name} says {ok.message_count}")
    demand(ok.consumer_count == queue.consumer_count, f"{queue.name} says {ok.consumer_count} consumers")


def delete_queue(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    count = queue.ready_count
    sim.delete_queue(queue)
    ok = sim.ask(*found, Queue.Delete(queue=queue.name), Queue.DeleteOk)
    demand(queue.is_limited or ok.message_count == count, f"deleting {queue.name} says {ok.message_count}")


def purge(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    count = queue.purge()
    ok = sim.ask(*found, Queue.Purge(queue=queue.name), Queue.PurgeOk)
    demand(queue.is_limited or ok.message_count == count, f"purging {queue.name} says {ok.message_count}")


def declare_exchange(sim: Simulation) -> None:
    name = sim.chance.choice(EXCHANGES)
    if (found := sim.any_channel()) is None or name in sim.topology.exchanges:
        return
    exchange = ExchangeModel(sim.chance.choice(["direct", "fanout", "topic"]), sim.chance.random() < 0.3)
    arguments: dict[str, object] = {}
    if sim.chance.random() < 0.3:
        exchange.alternate = arguments["alternate-exchange"] = sim.chance.choice([*EXCHANGES, "amq.fanout"])
    declare = Exchange.Declare(
        exchange=name, exchange_type=exchange.kind, auto_delete=exchange.is_auto_delete, arguments=arguments
    )
    sim.ask(*found, declare, Exchange.DeclareOk)
    sim.topology.exchanges[name] = exchange


def delete_exchange(sim: Simulation) -> None:
    if (found := sim.any_channel()) is not None:
        name = sim.chance.choice(EXCHANGES)
        sim.ask(*found, Exchange.Delete(exchange=name), Exchange.DeleteOk)
        sim.topology.delete_exchange(name)


def bind(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None:
        return
    source = sim.chance.choice(sorted(sim.topology.exchanges))
    key = sim.chance.choice(PATTERNS if sim.topology.exchanges[source].kind == "topic" else KEYS)
    if sim.chance.random() < 0.3:
        name = sim.chance.choice(sorted(sim.topology.exchanges))
        sim.ask(*found, Exchange.Bind(source=source, destination=name, routing_key=key), Exchange.BindOk)
        sim.topology.bindings.add(BindingModel(source, key, name))
    elif (queue := sim.any_queue(found[0])) is not None:
        sim.ask(*found, Queue.Bind(queue=queue.name, exchange=source, routing_key=key), Queue.BindOk)
        sim.topology.bindings.add(BindingModel(source, key, queue))


def unbind(sim: Simulation) -> None:
    mine = sorted(sim.topology.bindings, key=lambda binding: (binding.source, binding.key, str(binding.destination)))
    if (found := sim.any_channel()) is None or not mine:
        return
    binding = sim.chance.choice(mine)
    source, key, destination = binding.source, binding.key, binding.destination
    if isinstance(destination, str):
        sim.ask(*found, Exchange.Unbind(source=source, destination=destination, routing_key=key), Exchange.UnbindOk)
    elif destination.owner in (None, found[0]):
        sim.ask(*found, Queue.Unbind(queue=destination.name, exchange=source, routing_key=key), Queue.UnbindOk)
    else:
        return
    sim.topology.unbind(binding)


def publish(sim: Simulation) -> None:
    """Publish on all channels of a client at once, in one read or in two that cut anywhere."""
    client = sim.chance.choice(sim.clients)
    channels = list(client.channels.values())
    if not channels:
        return
    frames = []
    for _ in range(sim.chance.choice([1, 1, 3, 10])):
        channel = sim.chance.choice(channels)
        message, data = sim.message(client, channel)
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

__all__ = ["Broken", "Number", "Simulation"]
