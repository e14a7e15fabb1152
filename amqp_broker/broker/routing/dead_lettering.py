"""The dead letters of a broker that are to be routed, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amqp_broker.broker.queues.kept_dead_letters import RETRY_MS
from amqp_broker.broker.routing.dead_letter import dead_letter, finding_targets, push
from amqp_broker.broker.routing.refused_letters import RefusedLetter, RefusedLetters
from amqp_broker.broker.scheduling.portions import COPIED_BYTES, DEAD_LETTER_WORK, FLOOD_BYTES, TARGET_WORK, WORK_MAX

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queues.kept_dead_letters import KeptDeadLetter
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.routing.dead_letter import DeadLetter
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost


class DeadLettering:
    """The dead letters that wait until what made them is done.

    They wait no longer than a turn: a message and its dead letter belong to one batch of the journal. So a chain of
    queues is interrupted where a queue has taken a message that it is to give up again (`BacklogQueue.giving_up`).

    A message that full queues refuse, one after the other (`reject-publish-dlx`), is in none of them. Where a turn has
    no more time for it, it waits here, in memory, and its publisher waits with it (`until_routed`).

    Full queues that dead-letter into each other multiply a message, by each way through them. RabbitMQ keeps all of
    these in memory. Here a queue that gives up messages takes no more dead letters beyond `FLOOD_BYTES` but refuses
    them, and gives up nothing while one that was refused waits (`is_flooded`).
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: deque[tuple[Queue, DeadLetter | None, KeptDeadLetter | None]] = deque()
        # Those that were refused, and wait for the next turn; and how many have waited so far.
        self._refused = RefusedLetters()
        self.interruptions = 0
        self._is_undrained = False
        self._is_held = False
        # Set while a dead letter is routed to its targets, which may give up messages, too.
        self.is_routing = False

    def add(
        self, queue: Queue, message: Message, reason: str, kept: KeptDeadLetter | None, is_refused: bool = False
    ) -> None:
        """Route a dead letter, and then those that it displaces from its targets, without recursion."""
        if is_refused and (self._refused.waits_in(queue.vhost) or self._broker.work >= WORK_MAX):
            self._interrupt(queue, message, reason)
            return
        # It and its targets count now, so that no more die in a turn than can be routed in it.
        broker = self._broker
        died_at_ms = broker.now if kept is None else kept.died_at_ms
        letter = dead_letter(broker.vhosts[queue.vhost.name], queue, message, reason, died_at_ms)
        broker.work += DEAD_LETTER_WORK + len(message.content) // COPIED_BYTES
        if letter is not None and letter.targets is None:
            broker.do_in_portions(self._adding(letter, kept))
        elif letter is not None or kept is not None:
            self._add(queue, letter, kept)

    def _adding(self, letter: DeadLetter, kept: KeptDeadLetter | None) -> Steps[None]:
        """Route a dead letter of many keys."""
        vhost = letter.queue.vhost
        found = yield from finding_targets(vhost, letter)
        if self._broker.vhosts.get(vhost.name) is vhost:
            self._add(letter.queue, found, kept)

    def _add(self, queue: Queue, letter: DeadLetter | None, kept: KeptDeadLetter | None) -> None:
        if letter is not None:
            self._broker.work += TARGET_WORK * len(letter.targets or ())
        self._waiting.append((queue, letter, kept))
        if not self._is_held:
            self._is_held = True
            self._route_all()

    def _interrupt(self, queue: Queue, message: Message, reason: str) -> None:
        self._refused.append(RefusedLetter(queue, message, reason))
        self.interruptions += 1
        self._come_back()

    def _come_back(self) -> None:
        if not self._is_undrained:
            self._is_undrained = True
            self._broker.undrained.append(self._go_on)

    def _go_on(self) -> None:
        """Route those that were refused, as far as this turn has time."""
        self._is_undrained = False
        while self._refused and self._broker.work < WORK_MAX:
            queue, message, reason = self._refused.pop()
            if queue.vhost.name in self._broker.vhosts:
                self.add(queue, message, reason, None)
        if self._refused:
            self._come_back()

    def until_routed(self, vhost: VHost) -> Steps[None]:
        """Wait, turn by turn, until all that were refused in a vhost are routed."""
        while self._refused.waits_in(vhost):
            yield

    def is_flooded(self, vhost: VHost) -> bool:
        """Return whether queues that dead letters have come to are to wait for those that were refused."""
        return vhost.dead_letter_bytes > FLOOD_BYTES and self._refused.waits_in(vhost)

    @contextmanager
    def held(self, *, serves_freed: bool) -> Iterator[None]:
        """Have them wait until the end of the block, and (`serves_freed`) until freed consumers have been served."""
        is_outermost = not self._is_held
        self._is_held = True
        try:
            yield
        finally:
            if is_outermost:
                if serves_freed and self._waiting:
                    self._broker.resume_freed_consumers()
                self._route_all()

    def _route_all(self) -> None:
        try:
            while self._waiting:
                self.is_routing = True
                self._route(*self._waiting.popleft())
        finally:
            self._is_held = self.is_routing = False

    def _route(self, queue: Queue, letter: DeadLetter | None, kept: KeptDeadLetter | None) -> None:
        broker = self._broker
        vhost = broker.vhosts[queue.vhost.name]
        if kept is None:
            assert letter is not None
            push(vhost, letter)
            return
        taken_by, is_done = ([], False) if letter is None else push(vhost, letter, kept.taken_by)
        kept.taken_by = {*kept.taken_by, *taken_by}
        kept.retry_at_ms = broker.now + RETRY_MS
        kept.on_routed(kept, is_done)
