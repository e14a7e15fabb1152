"""Leaks: timers and entries of deleted objects, and anything at all at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
from amqp_broker.broker.lab.withheld_confirms import DelayedConfirm
from amqp_broker.broker.queues.expiry import Expiry
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.unused_expiry import UnusedExpiry
from amqp_broker.session.session import Session
from tests.memory_journal import MemoryJournal
from tests.peer import Lab
from tests.simulation.connection_faults import is_end_of_block
from tests.simulation.delivery_faults import is_strike
from tests.simulation.ledger import demand
from tests.simulation.routing import Topology

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

# A connection that is over waits for its socket to close.
LAST_TIMERS = {"_on_time_over"}


def check_memory(broker: Broker, vhost: VHost, sessions: set[Session], topology: Topology) -> None:
    """Timers, and what the broker has put off, belong to what is there."""
    queues = set(vhost.queues.values())
    deadlines: dict[tuple[Queue, type], int] = {}
    for timer in broker.timers._heap:
        callback: Any = timer.callback
        if callback is None:
            continue
        if isinstance(callback, (DelayedConfirm, DelayedDelivery)) or is_strike(callback) or is_end_of_block(callback):
            # These timers check by themselves whether their connection still exists.
            continue
        owner, name = callback.__self__, callback.__name__
        if isinstance(owner, (Expiry, UnusedExpiry)):
            queue, kind = queue_of(owner), type(owner)
            # A deletion takes several batches if the connection that ended had many queues and bindings.
            is_going = queue.is_deleted and bool(broker.undrained)
            demand(queue in queues or is_going, f"{queue.name} is gone, and its timer {kind} is not")
            demand((queue, kind) not in deadlines, f"{queue.name} has two timers {kind}")
            deadlines[queue, kind] = timer.deadline_ms
        elif name not in LAST_TIMERS:
            session = owner if isinstance(owner, Session) else owner._session
            demand(session in sessions, f"{session.name} is gone, and its timer {name} is not")
    for queue in queues:
        # Seen from outside: looking at the head of a buffer would have it read on.
        ready = topology.queues[queue.name].ready
        due = ready[0].deadline_ms if ready else None
        woken = deadlines.get((queue, Expiry))
        is_woken = due is None or (woken is not None and woken <= due) or has_next_portion(queue)
        demand(is_woken, f"{queue.name}: the head expires at {due}, and the timer is set to {woken}")
        if queue.settings.expires_ms is not None and not queue.consumers:
            # A quorum queue that is due stays until its last message is settled, and has a timer from then on.
            is_kept = queue.type == "quorum" and queue.unacked_count > 0
            has_timer = (queue, UnusedExpiry) in deadlines or is_kept
            demand(has_timer, f"{queue.name} expires, and has no timer")
    dead_lettering = broker.dead_lettering
    demand(not dead_lettering._waiting and not dead_lettering._is_held, "dead letters wait for nothing")
    demand(not vhost.reply_queues, "reply queues are there")
    for session in sessions:
        gone = session.exclusive_queues - queues
        demand(not gone, f"{session.name} owns {[queue.name for queue in gone]}, which are gone")


def has_next_portion(queue: Queue) -> bool:
    """Tell whether the broker has the next drain batch of a queue in line. The flag of the queue is no proof."""
    return queue._drain_next_portion in queue.vhost.broker.undrained


def queue_of(part: Expiry | UnusedExpiry) -> Queue:
    """Return the queue that a timer belongs to."""
    callback: Any = part._on_due if isinstance(part, Expiry) else part._delete
    queue: Queue = callback.__self__
    return queue


def check_nothing_is_remembered(journal: MemoryJournal) -> None:
    """The disk of an empty broker has what a new one tells, and nothing of what was removed."""
    disk = journal.disk
    kinds = sorted(key[0] for key in disk.definitions)
    demand(kinds == ["permission", "user", "vhost"], f"still defined: {list(disk.definitions)}")
    demand(not disk.messages and not disk.states, f"left of the buffers: {disk.states} with {list(disk.messages)}")


def check_empty(broker: Broker) -> None:
    """An empty broker without clients holds no more than a new one, but for samples."""
    # Advice about clients, and the connections and channels that they have lost, outlive them.
    broker.advice.clear()
    broker.incidents.lost.clear()
    broker.incidents.refused.clear()
    broker.incidents.closed_channels.clear()
    found, new = census(broker), census(Lab().broker)
    # The routes of a user have a cache of their own, which stays when it is empty.
    for where in found:
        if where[0].startswith("Broker.vhosts.VHost.route_cache"):
            new[where] = found[where]
    left = {
        where: found[where] - new[where] for where in found if found[where] > new[where] and ".history." not in where[0]
    }
    demand(not left, f"more is left than there was in the beginning: {left}")


def census(root: object) -> Counter[tuple[str, str]]:
    """How many entries the containers have that can be reached from an object, by the way to them."""
    counts: Counter[tuple[str, str]] = Counter()
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [(type(root).__name__, root)]
    while pending:
        where, value = pending.pop()
        if id(value) in seen or isinstance(value, (type, FunctionType, str, bytes, int, float, type(None))):
            continue
        seen.add(id(value))
        if isinstance(value, MethodType):
            pending.append((where, value.__self__))
            continue
        items: Iterable[Any]
        if isinstance(value, dict):
            items = [*value, *value.values()]
        elif hasattr(value, "__len__") and hasattr(value, "__iter__"):
            items = list(value)
        else:
            pending += attributes(where, value)
            continue
        counts[where, type(value).__name__] += len(value)
        pending += [(f"{where}.{type(item).__name__}", item) for item in items]
        pending += attributes(where, value)
    return counts


def attributes(where: str, value: object) -> list[tuple[str, Any]]:
    names = [*getattr(value, "__dict__", {})]
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [(f"{where}.{name}", getattr(value, name)) for name in names if hasattr(value, name)]
