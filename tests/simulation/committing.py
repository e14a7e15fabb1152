"""The journal commits or fails to, the process dies, and clients reconnect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import base, frame
from pamqp.commands import Basic, Queue, Tx

from tests.peer import publish_bytes
from tests.simulation.client import TRANSACTIONAL, ChannelModel
from tests.simulation.ledger import demand
from tests.simulation.recovery import remember

if TYPE_CHECKING:
    from tests.memory_journal import MemoryJournal
    from tests.simulation.simulation import Simulation


def commit_or_fail(sim: Simulation) -> None:
    """The next that a journal can do: take a batch; or have it safe, or not at all."""
    journal = sim.journal
    if journal is None:
        return
    if not sim.is_committing:
        if journal.is_void and sim.lab.broker.awaiting_commit:
            sim.tell("is passed over")
            journal.pass_batch()
            sim.lab.broker.on_committed()
            check_all_is_safe(sim, journal)
        if journal.has_work:
            journal.take_batch()
            sim.is_committing, sim.taken = True, remember(sim.world)
    elif sim.chance.random() < 0.3:
        sim.tell("fails")
        journal.take_back()
        sim.is_committing = False
    else:
        sim.commit_ends()
        sim.safe = sim.taken


def check_all_is_safe(sim: Simulation, journal: MemoryJournal) -> None:
    """The disk has all messages that queues keep, and all objects."""
    for queue in sim.lab.vhost.queues.values():
        for buffer in queue.buffers:
            kept = [*buffer.puts, *(position for position, message in buffer.memory if buffer.keeps(message))]
            missing = [position for position in kept if (buffer.id, position) not in journal.disk.messages]
            demand(not missing, f"{queue} would lose the confirmed messages at {missing}")
    demand(not journal._collected.definitions, "objects would be lost that clients know of")


def crash(sim: Simulation) -> None:
    """Kill the process before, during or after an unconfirmed commit, or in the middle of a read."""
    if sim.journal is None:
        return
    if sim.is_committing and sim.chance.random() < 0.5:
        sim.tell("after a commit")
        sim.journal.on_committed()
        sim.safe = sim.taken
    for client in sim.speakers:
        for channel in client.channels.values():
            if sim.chance.random() < 0.5:
                client.send(last_words(sim, channel))
    if not sim.is_committing and sim.chance.random() < 0.3:
        sim.journal.take_batch()
    sim.restart()


def last_words(sim: Simulation, channel: ChannelModel) -> bytes:
    """Return requests that the dying broker never answers."""
    name = sim.chance.choice(sim.taste.queues)
    words: list[base.Frame] = [
        Queue.Declare(queue=name, durable=True),
        Queue.Delete(queue=name),
        Queue.Purge(queue=name),
        Queue.Unbind(queue=name, exchange="amq.fanout", routing_key=""),
        Basic.Get(queue=name),
        Basic.Nack(0, multiple=True),
        Basic.Nack(0, multiple=True, requeue=False),
        Basic.Ack(0, multiple=True),
    ]
    if channel.mode == TRANSACTIONAL:
        words += [Tx.Commit()] * 5
    publish = publish_bytes(name, b"0 ", channel=channel.number, delivery_mode=2)
    return publish + frame.marshal(sim.chance.choice(words), channel.number)
