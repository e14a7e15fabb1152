"""Random applications of many clients over one broker, a step at a time, and a look at everything after each step.

Simulation(seed=1).run(300)

The same seed gives the same run. `Broken` is raised for the first thing that is not as it must be.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from pamqp import base, frame
from pamqp.commands import Channel

from tests.peer import CAPABILITIES, Lab
from tests.simulation import actions
from tests.simulation.checks import check
from tests.simulation.client import ChannelModel, Client
from tests.simulation.model import QueueModel, Topology, demand


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
        action = self.chance.choices(actions.ACTIONS, actions.WEIGHTS)[0]
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
        self._do(actions.resume_all)
        while self.lab.broker.undrained:
            self._do(actions.drain_on)
        while self.clients:
            self._do(actions.disconnect)
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
