"""Random applications of many clients of one broker, with all checks after each step.

    Simulation(seed=1).run(300)

The same seed gives the same run. `Broken` is raised for the first difference from the model; its notes have the seed
and the last steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from pamqp import base, frame
from pamqp.commands import Channel

from amqp_broker.broker import broker as broker_module
from amqp_broker.broker.broker import PORTION_STEPS, Broker
from amqp_broker.broker.durability.journal import NullJournal
from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
from amqp_broker.broker.lab.withheld_confirms import DelayedConfirm
from amqp_broker.broker.operations import restoring
from amqp_broker.broker.queues.expiry import Expiry
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.unused_expiry import UnusedExpiry
from amqp_broker.broker.scheduling.timers import Timers
from amqp_broker.session.connection.ack_timeouts import TICK_MS
from amqp_broker.settings.settings import Settings
from tests.memory_journal import MemoryJournal
from tests.peer import CAPABILITIES, Lab
from tests.simulation import actions
from tests.simulation.checks import check, check_routes, has_bereft_exchange
from tests.simulation.client import ChannelModel, Client
from tests.simulation.connection_faults import check_heartbeats, end_block, is_end_of_block, on_open
from tests.simulation.counting import Tally, check_counts
from tests.simulation.delivery_faults import come_late, hear_of_late, is_strike, strike
from tests.simulation.faults import (
    ELSEWHERE,
    FAULT_ACTIONS,
    FAULT_WEIGHTS,
    FaultsModel,
    remove_all_faults,
)
from tests.simulation.leaks import check_empty, check_nothing_is_remembered, queue_of
from tests.simulation.ledger import Broken, demand
from tests.simulation.queues import QueueModel
from tests.simulation.recovery import remember, restore
from tests.simulation.taste import Taste
from tests.simulation.world import World

STORY_STEPS = 12


class TimersOneByOne(Timers):
    """The broker's timers, of which each call runs one, so that the model can follow what it did."""

    last: Callable[[int], None] | None = None
    last_queue = ""

    def run_due(self, now: int) -> None:
        if self.is_due(now):
            timer = heapq.heappop(self._heap)
            assert timer.callback is not None
            self.last, timer.callback = timer.callback, None
            part = getattr(self.last, "__self__", None)
            # A queue that the timer deletes cannot be found through it afterwards.
            self.last_queue = queue_of(part).name if isinstance(part, (Expiry, UnusedExpiry)) else ""
            self.last(now)

    def is_due(self, now: int) -> bool:
        deadline = self.next_deadline()
        return deadline is not None and deadline <= now


def is_backlog(call: Callable[[], None]) -> bool:
    """Return whether work that was put off is a method of a queue, compiled or not."""
    return isinstance(getattr(call, "__self__", None), Queue)


class Simulation:
    """The broker, its clients, the model of what must be, and the chance that decides what happens.

    Every other seed has a `journal`: with it durable things survive a crash. `safe` is what is committed, `taken` what
    the batch has that is just being committed. With every third seed, deletions are done in batches of one step, and
    clients go on in between.
    """

    def __init__(self, seed: int, *, has_faults: bool = False) -> None:
        """With `has_faults` rules come and go; without, a seed runs as it did before there were any."""
        self.seed = seed
        self.batch_steps = 1 if seed % 3 == 2 else PORTION_STEPS
        self.actions = [*actions.ACTIONS, *(FAULT_ACTIONS if has_faults else [])]
        self.weights = actions.WEIGHTS + (FAULT_WEIGHTS if has_faults else [])
        self.faults = FaultsModel()
        self.chance = Random(seed)
        self.taste = Taste(self.chance)
        self.lab = Lab()
        self.journal: MemoryJournal | None = MemoryJournal() if seed % 2 else None
        self.timers = self._start()
        self.lab.broker.add_defaults()
        self.world = World(self.lab.now, self._order, self.faults)
        self.topology = self.world.topology
        self.is_committing = False
        self.safe = self.taken = remember(self.world)
        # Set if a commit of this step remains to be remembered when the model knows its content.
        self._was_committed = False
        if self.journal is not None:
            self.journal.commit()
        elif has_faults:
            self.lab.broker.add_vhost(ELSEWHERE)
        self.clients: list[Client] = []
        self.connected = 0
        self.numbers = 0
        self.story: list[str] = []
        self.is_ending = False
        for _ in range(2):
            self.connect()

    def _start(self) -> TimersOneByOne:
        """A new process."""
        broker = Broker(Settings(), lambda size: next(self.lab.ports).to_bytes(size, "big"), self.journal)
        broker.now, timers = self.lab.now, TimersOneByOne()
        broker.timers = broker.real_timers = timers
        self.lab.broker = broker
        return timers

    def restart(self) -> None:
        """The process was killed, and the next one finds what is safe."""
        assert self.journal is not None
        for client in self.clients:
            client.is_lost = True
        self.clients.clear()
        self.is_committing = False
        self.faults = self.world.faults = FaultsModel()
        self.journal = MemoryJournal(self.journal.disk)
        self.timers = self._start()
        self.journal.is_restoring = True
        restoring.restore(self.lab.broker, self.journal.definitions_of)
        self.journal.is_restoring = False
        self.world.tally = Tally()
        restore(self.world, self.safe, list(self.lab.vhost.queues))

    def _order(self, exchange: str, keys: list[str]) -> list[str]:
        vhost = self.lab.vhost
        found = vhost.exchanges.get(exchange)
        return [] if found is None else [queue.name for queue in vhost.route(found, keys, {}, None)[0]]

    def run(self, steps: int) -> None:
        """Run a number of steps, and then check that nothing is left behind."""
        for _ in range(steps):
            self.step()
        self.end()

    def step(self) -> None:
        """Something happens; and everything is still as it must be."""
        self._do(self.chance.choices(self.actions, self.weights)[0])

    def _do(self, action: Callable[[Simulation], None]) -> None:
        self.story.append(action.__name__)
        # Other simulations may run in turn.
        broker_module.PORTION_STEPS = self.batch_steps  # type: ignore[misc]
        try:
            self.delete_on()
            action(self)
            self._finish()
        except Exception as error:
            steps = "\n".join(f"  {number} {step}" for number, step in list(enumerate(self.story, 1))[-STORY_STEPS:])
            broken = error if isinstance(error, Broken) else Broken(f"{type(error).__name__}: {error}")
            broken.add_note(f"seed {self.seed}, step {len(self.story)}; the last steps:\n{steps}")
            raise broken from error.__cause__ if broken is error else error
        finally:
            broker_module.PORTION_STEPS = PORTION_STEPS  # type: ignore[misc]

    def tell(self, what: object) -> None:
        """Add details of this step to the notes of a failure."""
        self.story[-1] += f" {what}"

    def _finish(self) -> None:
        self.hear()
        for client in self.clients:
            demand(not client.peer.is_dropped, f"{client} is dropped for no reason")
        self.world.explain_all()
        if self._was_committed:
            if self.journal is not None and self.journal.has_work:
                self.commit()
                self.hear()
            self._was_committed, self.safe = False, remember(self.world)
        check(self)
        check_counts(self)
        self.lab.broker.is_congested = False
        for client in self.clients:
            for channel in client.channels.values():
                channel.was_freed = False
        while len(self.clients) < 2 and not self.is_ending:
            self.connect()

    def end(self) -> None:
        """Finish deferred work, disconnect all clients, remove all objects, and check that nothing is left."""
        self.is_ending = True
        self._do(remove_all_faults)
        for action in (actions.resume_all, actions.drain_all, actions.leave_all, actions.remove_all, actions.wait_long):
            self._do(action)
        # The last timer belongs to the simulation, and refers to a deleted queue.
        self.timers.last = None
        if self.journal is not None:
            self.commit()
            check_nothing_is_remembered(self.journal)
        self.lab.broker.journal = NullJournal()
        check_empty(self.lab.broker)

    # For the actions

    def hear(self) -> None:
        """Let every client read, also the last frames of connections that are lost.

        Replies that the broker holds until a commit arrive after it.
        """
        self.lab.dirty.clear()
        # A client waits for the end of its deletion. The model waits where an exchange goes with its last binding.
        while any(client.peer.session.is_working for client in self.clients) or has_bereft_exchange(self.lab.vhost):
            backlogs = [call for call in self.lab.broker.undrained if is_backlog(call)]
            demand(len(backlogs) < len(self.lab.broker.undrained), "a deletion does not end")
            self.delete_on()
        if any(client.peer.session.outbox.held_until for client in self.clients):
            self.commit()
            self._was_committed = True
            held = [client.name for client in self.clients if client.peer.session.outbox.held_until]
            demand(not held, f"{held} wait for what is safe")
        for client in self.clients:
            client.listen()
        hear_of_late(self)

    def delete_on(self) -> None:
        """Do the next step of each deletion."""
        broker = self.lab.broker
        undrained, broker.undrained = broker.undrained, []
        for call in undrained:
            if is_backlog(call):
                broker.undrained.append(call)
            else:
                call()
        check_routes(self.lab.vhost)

    def commit(self) -> None:
        """Commit the changes in the journal, perhaps at the second attempt."""
        assert self.journal is not None
        if self.is_committing and self.chance.random() < 0.3:
            self.journal.take_back()
        elif self.is_committing:
            self.commit_ends()
        self.journal.take_batch()
        self.commit_ends()

    def commit_ends(self) -> None:
        """A batch is safe, and who waited for it hears so."""
        assert self.journal is not None
        self.is_committing = False
        self.journal.on_committed()
        self.lab.broker.on_committed()

    def connect(self) -> None:
        self.connected += 1
        chance = self.chance
        capabilities = chance.choice([CAPABILITIES, CAPABILITIES, {}])
        client = Client(
            self.lab,
            f"client{self.connected}",
            self.world.hear,
            self.world.count_confirms,
            heartbeat_s=chance.choice([0, 0, 0, 5]),
            frame_max=chance.choice([131072, 8192]),
            capabilities=capabilities,
        )
        self.clients.append(client)
        on_open(self, client)
        actions.open_channel_of(self, client, 1)

    def forget(self, client: Client) -> None:
        """A client is gone, and what lives with it."""
        self.hear()
        client.is_lost = True
        client.suffers_from.clear()
        self.clients.remove(client)
        self.world.lose_client(client)

    def close_by_error(self, client: Client, channel: ChannelModel, method: base.Frame | bytes, code: int) -> None:
        """Do something wrong, which closes the channel."""
        client.send(method if isinstance(method, bytes) else frame.marshal(method, channel.number))
        self.hear()
        self.expect_close(client, channel, code)

    def expect_close(self, client: Client, channel: ChannelModel, code: int) -> str:
        """The broker has closed a channel; returns the reason that it gave."""
        close = client.answer(channel.number, Channel.Close)
        demand(close.reply_code == code, f"{client}: {close.reply_text}, not {code}")
        self.world.close_channel(client, channel)
        client.closing.add(channel.number)
        return str(close.reply_text)

    def ask(self, client: Client, channel: ChannelModel, method: base.Frame, answer: type[base.Frame]) -> Any:
        """Send a method and return its answer."""
        client.send(frame.marshal(method, channel.number))
        self.hear()
        return client.answer(channel.number, answer)

    @property
    def speakers(self) -> list[Client]:
        """Return the clients that are not blocked; the broker does not read the others."""
        return [client for client in self.clients if not client.blocked_by]

    def any_channel(self, *modes: str) -> tuple[Client, ChannelModel] | None:
        """Return an open channel of a client that is not blocked."""
        found = [
            (client, channel)
            for client in self.speakers
            for channel in client.channels.values()
            if not modes or channel.mode in modes
        ]
        return self.chance.choice(found) if found else None

    def any_queue(self, client: Client) -> QueueModel | None:
        """A queue that the client may use."""
        found = [queue for queue in self.topology.queues.values() if queue.owner in (None, client)]
        return self.chance.choice(found) if found else None

    # Time

    def let_pass(self, duration_ms: int) -> None:
        """Time passes; before it does, everything is handed out, as a server does before it sleeps."""
        actions.drain_all(self)
        end = self.lab.now + duration_ms
        while self.timers.is_due(end):
            self._go_to(max(self.lab.now, self.timers.next_deadline() or 0))
            self.hear()
            self._follow_timer()
            if not self.timers.is_due(self.lab.now):
                self.world.expire_all()
                actions.drain_all(self)
        self._go_to(end)
        self.world.expire_all()
        for client in self.clients:
            check_heartbeats(client)
        for client in self.clients if duration_ms >= TICK_MS else ():
            late = [channel.number for channel in client.overdue(by_ms=2 * TICK_MS)]
            demand(not late, f"{client}: the deliveries on {late} have not timed out")

    def _go_to(self, now: int) -> None:
        self.lab.now = self.world.now = now
        self.lab.broker.tick(now)

    def _follow_timer(self) -> None:
        """Something was due in the broker: the same is due in the model."""
        callback: Any = self.timers.last
        if isinstance(callback, DelayedConfirm):
            return
        if isinstance(callback, DelayedDelivery):
            come_late(self, callback)
            return
        if is_strike(callback):
            strike(self, callback)
            return
        if is_end_of_block(callback):
            end_block(self, callback)
            return
        part = callback.__self__
        if isinstance(part, (Expiry, UnusedExpiry)):
            queue = self.topology.queues[self.timers.last_queue]
            if isinstance(part, Expiry):
                queue.expire()
            elif queue.is_overdue:
                self.world.delete_queue(queue)
        for client in list(self.clients):
            while client.answers and isinstance(client.answers[0][1], Channel.Close):
                self._time_out(client, client.channels[client.answers[0][0]])
            if client.peer.is_dropped:
                # A blocked client sends nothing here, so its silence does not count.
                heard_at = max(client.spoke_at, client.excused_until - client.heartbeat_s * 1000)
                silent_ms = 0 if client.blocked_by else self.lab.now - heard_at
                demand(0 < client.heartbeat_s * 2000 <= silent_ms, f"{client} is dropped for no reason")
                self.forget(client)

    def _time_out(self, client: Client, channel: ChannelModel) -> None:
        demand(channel in client.overdue(), f"{client}: nothing on channel {channel.number} is overdue")
        text = self.expect_close(client, channel, 406)
        demand("timed out" in text, f"{client}: channel {channel.number} is closed: {text}")
