"""The deletion of queues and exchanges, in steps: one object may have a hundred thousand bindings.

The first step takes the object out of reach: its name is free, the journal has forgotten it, and no message is routed
to it. Each further step removes one of its bindings from the other end and from the journal; until then `is_in_force`
of the binding is False. A declaration of the same name first finishes the deletion, because an old binding may have the
same names as a new one. A restart finishes a deletion that the end of a process has interrupted
(`operations/restoring.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from amqp_broker.broker import journal_entries
from amqp_broker.broker.queues.leaving_reasons import QUEUE_DELETED
from amqp_broker.broker.queues.statistics import NO_MESSAGES
from amqp_broker.broker.scheduling.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.durability.journal import DefinitionKey
    from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost


class VHostDeletions:
    """The deletions that are under way in a vhost."""

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        # By kind ("queue", "exchange") and name of the object.
        self._under_way: dict[tuple[str, str], Steps[None]] = {}
        # For a restart: the deletions that a former process has begun, and the sources of the bindings that were left.
        self._resumed: set[tuple[str, str]] = set()
        self._bereft: dict[str, None] = {}

    @property
    def are_under_way(self) -> bool:
        """True while objects are out of reach whose bindings are not removed yet."""
        return bool(self._under_way)

    def of_queue(self, queue: Queue, before_cancels: Callable[[], object] | None = None) -> Steps[None]:
        """Delete a queue with its messages, bindings and consumers.

        `before_cancels` is called before the first consumer is cancelled. If the caller gives the steps up, they are
        done in portions.
        """
        return self._shared(_Deletion(self._vhost, self._under_way), lambda one: one.of_queue(queue, before_cancels))

    def of_exclusive(self, exclusive: set[Queue]) -> Steps[None]:
        """Delete the queues of a connection that has ended. All are out of reach at the first step."""
        # By name, so that the order does not depend on chance.
        queues = sorted(exclusive, key=attrgetter("name"))
        for queue in queues:
            self._vhost.queues.pop(queue.name, None)
            take_out(self._vhost, queue)
        self._vhost.topology_changed()
        for queue in queues:
            yield from self.of_queue(queue)
            yield

    def of_exchange(self, exchange: Exchange) -> Steps[None]:
        """Delete an exchange with its bindings. If the caller gives the steps up, they are done in portions."""
        return self._shared(_Deletion(self._vhost, self._under_way), lambda one: one.of_exchange(exchange))

    def _shared(self, deletion: _Deletion, begin: Callable[[_Deletion], Steps[None]]) -> Steps[None]:
        broker = self._vhost.broker
        steps = deletion.steps = broker.events.attributed(begin(deletion))
        try:
            for _ in steps:
                yield
        finally:
            broker.do_in_portions(steps)

    def finish(self, kind: str, name: str) -> None:
        """Finish the deletion that frees a name, if there is one."""
        steps = self._under_way.get((kind, name))
        if steps is not None:
            finished(steps)

    def finishing(self) -> Steps[None]:
        """Finish all deletions in steps."""
        for steps in list(self._under_way.values()):
            for _ in steps:
                yield

    def resume(self, kind: str, name: str) -> None:
        """Note the deletion of an object whose bindings a restart may find."""
        self._resumed.add((kind, name))

    def are_resumed(self, *names: tuple[str, str]) -> bool:
        """Return whether a restart finishes the deletion of any of these."""
        return not self._resumed.isdisjoint(names)

    def on_lost_binding(self, source: str) -> None:
        """Note that a restart has removed a binding of an exchange."""
        self._bereft[source] = None

    def on_restored(self) -> None:
        """Finish the deletions of the former process: all other objects are restored."""
        vhost, bereft = self._vhost, list(self._bereft)
        for kind, name in self._resumed:
            vhost.broker.journal.undefine(journal_entries.of_deletion(vhost.name, kind, name)[0])
        self._resumed, self._bereft = set(), {}
        for name in bereft:
            exchange = vhost.exchanges.get(name)
            if exchange is not None and exchange.is_auto_delete and not exchange.bindings:
                vhost.broker.do_in_portions(self.of_exchange(exchange))


def take_out(vhost: VHost, queue: Queue) -> None:
    """Mark a queue as deleted, and take its messages out of the sums of the vhost."""
    queue.is_deleted = queue.is_changed = True
    vhost.broker.changed_queues.pop(queue, None)
    vhost.counts.sample_lengths(queue, NO_MESSAGES)


class _Deletion:
    """The deletion of an object, and of the auto-delete exchanges that lose their last bindings with it."""

    steps: Steps[None]

    def __init__(self, vhost: VHost, under_way: dict[tuple[str, str], Steps[None]]) -> None:
        self._vhost = vhost
        self._under_way = under_way
        self._names: list[tuple[str, str]] = []
        # Entries of the journal for a restart before the last step.
        self._entries: list[DefinitionKey] = []

    def of_queue(self, queue: Queue, before_cancels: Callable[[], object] | None) -> Steps[None]:
        vhost, broker = self._vhost, self._vhost.broker
        if vhost.queues.get(queue.name) is queue:
            del vhost.queues[queue.name]
            self._free("queue", queue, bool(queue.incoming))
        take_out(vhost, queue)
        if queue.is_durable:
            broker.journal.undefine(("queue", vhost.name, queue.name))
        if queue.owner is not None:
            queue.owner.exclusive_queues.discard(queue)
        vhost.topology_changed()
        queue.release()
        if vhost.trace is not None:
            for message in [*vhost.trace.take_unacked(queue), *broker.faults.kept_back(queue)]:
                vhost.trace.given_up(queue, message, QUEUE_DELETED)
                yield
        yield from self._unbinding(queue.incoming)
        if before_cancels is not None:
            before_cancels()
        # Source: rabbit_channel.erl, handle_consuming_queue_down_or_eol, with an ordered set of tags.
        for consumer in sorted(queue.consumers, key=attrgetter("tag")):
            # It may have left since.
            if consumer in queue.consumers:
                queue.unsubscribe(consumer)
                consumer.on_queue_deleted()
            yield
        broker.counters.queues_deleted += 1
        broker.events.queue_deleted(queue)

    def of_exchange(self, exchange: Exchange) -> Steps[None]:
        yield from self._unbinding(self._withdrawn(exchange))

    def _withdrawn(self, exchange: Exchange) -> list[Binding]:
        """Take an exchange out of reach; return the bindings that are left to remove."""
        vhost, broker = self._vhost, self._vhost.broker
        del vhost.exchanges[exchange.name]
        exchange.is_deleted = True
        self._free("exchange", exchange, bool(exchange.bindings or exchange.incoming))
        exchange.close()
        if exchange.is_durable:
            broker.journal.undefine(("exchange", vhost.name, exchange.name))
        if broker.profile.release >= (4, 3):
            broker.users.on_exchange_deleted(vhost.name, exchange.name)
        for queue in vhost.queues.values():
            queue.statistics.published_from.pop(exchange, None)
        vhost.topology_changed()
        broker.events.exchange_deleted(exchange)
        return [*exchange.bindings.values(), *exchange.incoming]

    def _free(self, kind: str, deleted: Destination, has_bindings: bool) -> None:
        vhost, name = self._vhost, deleted.name
        self._under_way[kind, name] = self.steps
        self._names.append((kind, name))
        if deleted.is_durable and has_bindings:
            entry = journal_entries.of_deletion(vhost.name, kind, name)
            self._entries.append(entry[0])
            vhost.broker.journal.define(*entry)

    def _unbinding(self, bindings: Iterable[Binding]) -> Steps[None]:
        pending = deque(bindings)
        while pending:
            binding = pending.popleft()
            source = binding.source
            # The deletion of its other end may have removed it.
            if binding in binding.destination.incoming:
                self._vhost.unlink(binding)
                if source.is_auto_delete and not source.bindings and not source.is_deleted:
                    pending.extendleft(reversed(self._withdrawn(source)))
            yield
        # Routes that were found meanwhile may rest on what is gone now.
        self._vhost.topology_changed()
        for name in self._names:
            del self._under_way[name]
        for key in self._entries:
            self._vhost.broker.journal.undefine(key)
