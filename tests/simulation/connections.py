"""Clients come, go and break rules; channels open and close; sockets fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import base, frame
from pamqp.commands import Basic, Channel, Connection, Queue

from tests.peer import publish_bytes
from tests.simulation.client import ChannelModel, Client
from tests.simulation.ledger import demand

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

CLIENTS_MAX = 5
CHANNELS_MAX = 3
CLOSE_CHANNEL = Channel.Close(200, "bye", 0, 0)
CLOSE_CONNECTION = Connection.Close(200, "bye", 0, 0)


def connect(sim: Simulation) -> None:
    if len(sim.clients) < CLIENTS_MAX:
        sim.connect()


def disconnect(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    client.peer.disconnect()
    sim.forget(client)


def close_connection(sim: Simulation) -> None:
    if not sim.speakers:
        return
    client = sim.chance.choice(sim.speakers)
    client.send(frame.marshal(CLOSE_CONNECTION, 0))
    sim.forget(client)
    client.answer(0, Connection.CloseOk)
    demand(not client.peer.is_dropped, f"{client} has not closed its socket, but the broker has")
    client.peer.disconnect()


def force_close(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    client.peer.session.force_close("for a reason", sim.lab.now)
    sim.forget(client)
    demand(client.answer(0, Connection.Close).reply_code == 320, f"{client} is closed otherwise")
    client.send(frame.marshal(Connection.CloseOk(), 0))


def break_protocol(sim: Simulation) -> None:
    if not sim.speakers:
        return
    client = sim.chance.choice(sim.speakers)
    client.send(b"\x09\x00\x00\x00\x00\x00\x00\xce")
    sim.forget(client)
    demand(client.answer(0, Connection.Close).reply_code == 501, f"{client} is closed otherwise")
    client.peer.disconnect()


def lose_some(sim: Simulation) -> None:
    if len(sim.clients) > 2:
        way = sim.chance.choice([disconnect, close_connection, force_close, break_protocol])
        sim.tell(way.__name__)
        way(sim)


def leave_all(sim: Simulation) -> None:
    while sim.clients:
        disconnect(sim)


def open_channel(sim: Simulation) -> None:
    if not sim.speakers:
        return
    client = sim.chance.choice(sim.speakers)
    number = sim.chance.randrange(1, CHANNELS_MAX + 1)
    if number not in client.channels and number not in client.closing:
        open_channel_of(sim, client, number)


def open_channel_of(sim: Simulation, client: Client, number: int) -> None:
    client.channels[number] = ChannelModel(number)
    client.send(frame.marshal(Channel.Open(), number))
    client.listen()
    client.answer(number, Channel.OpenOk)


def close_channel(sim: Simulation) -> None:
    if (found := sim.any_channel()) is not None:
        client, channel = found
        client.send(frame.marshal(CLOSE_CHANNEL, channel.number))
        sim.hear()
        client.answer(channel.number, Channel.CloseOk)
        sim.world.close_channel(client, channel)


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
    method, code = sim.chance.choice(faults)
    sim.tell(f"{code} on {channel.number} of {client}")
    sim.close_by_error(client, channel, method, code)


def speak_on_closing_channel(sim: Simulation) -> None:
    for client in sim.speakers:
        for number in client.closing:
            client.send(
                publish_bytes("q1", b"0 ", channel=number),
                frame.marshal(Basic.Ack(1), number),
                frame.marshal(Queue.Declare(queue="q1", passive=True), number),
            )


def answer_close(sim: Simulation) -> None:
    for client in sim.speakers:
        while client.closing:
            client.send(frame.marshal(Channel.CloseOk(), client.closing.pop()))


def pause_or_resume(sim: Simulation) -> None:
    client = sim.chance.choice(sim.clients)
    sim.tell(client)
    if client.is_paused:
        resume(sim, client)
    else:
        client.is_paused = True
        client.peer.session.pause()


def resume(sim: Simulation, client: Client) -> None:
    client.is_paused = False
    client.heard_at = sim.lab.now
    for channel in client.channels.values():
        channel.was_freed = True
    client.peer.session.resume(sim.lab.now)
    sim.hear()
    sim.world.wake([consumer for channel in client.channels.values() for consumer in channel.consumers.values()])


def resume_all(sim: Simulation) -> None:
    for client in sim.clients:
        if client.is_paused:
            resume(sim, client)


def drain_on(sim: Simulation) -> None:
    sim.lab.broker.drain_on()


def drain_all(sim: Simulation) -> None:
    while sim.lab.broker.undrained:
        drain_on(sim)
        sim.hear()
        sim.world.explain_all()


def send_heartbeats(sim: Simulation) -> None:
    for client in sim.speakers:
        client.send(b"\x08\x00\x00\x00\x00\x00\x00\xce")
