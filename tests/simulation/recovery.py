"""The safe part of a world, and the world after a crash.

`remember` notes the content of a batch at the moment when the broker's journal takes one; `restore` makes a world from
these notes: durable objects, and the durable messages of durable queues. Unacked messages are ready again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.simulation.ledger import Copy, Ledger, State
from tests.simulation.queue_settings import PolicyModel, policy_for
from tests.simulation.queues import QueueModel
from tests.simulation.routing import BindingModel, ExchangeModel
from tests.simulation.world import World


@dataclass
class SafeQueue:
    """A durable queue; `copies` are as they were then."""

    name: str
    arguments: dict[str, Any]
    is_auto_delete: bool
    arrived: int
    copies: list[Copy]


@dataclass
class Safe:
    """Bindings name the queues that they lead to: (source, key, is it a queue?, name)."""

    policies: dict[str, PolicyModel] = field(default_factory=dict)
    operator_policies: dict[str, PolicyModel] = field(default_factory=dict)
    exchanges: dict[str, ExchangeModel] = field(default_factory=dict)
    queues: list[SafeQueue] = field(default_factory=list)
    bindings: list[tuple[str, str, bool, str]] = field(default_factory=list)


def remember(world: World) -> Safe:
    topology = world.topology
    safe = Safe(dict(world.policies), dict(world.operator_policies))
    for name, exchange in topology.exchanges.items():
        if exchange.is_durable:
            safe.exchanges[name] = replace(exchange)
    for queue in topology.queues.values():
        if queue.is_durable:
            copies = [replace(copy) for copy in (*queue.ready, *queue.unacked) if queue.keeps(copy.message)]
            safe.queues.append(SafeQueue(queue.name, queue.arguments, queue.is_auto_delete, queue.arrived, copies))
    for binding in topology.bindings:
        if not topology.exchanges[binding.source].is_durable:
            continue
        destination = binding.destination
        if isinstance(destination, QueueModel):
            if destination.is_durable:
                safe.bindings.append((binding.source, binding.key, True, destination.name))
        elif topology.exchanges[destination].is_durable:
            safe.bindings.append((binding.source, binding.key, False, destination))
    return safe


def restore(world: World, safe: Safe, order: list[str]) -> None:
    """Reduce the world to its safe part, without clients; `order` is that of the broker's queues."""
    topology = world.topology
    world.ledger = Ledger()
    world.heard.clear()
    topology.published.clear()
    world.policies, world.operator_policies = dict(safe.policies), dict(safe.operator_policies)
    topology.exchanges = {name: replace(exchange) for name, exchange in safe.exchanges.items()}
    queues = {queue.name: restored(world, queue) for queue in safe.queues}
    topology.queues = {name: queues[name] for name in sorted(queues, key=order.index)}
    topology.bindings = {
        BindingModel(source, key, queues[name] if is_queue else name): None
        for source, key, is_queue, name in safe.bindings
    }
    policies, operator_policies = list(world.policies.values()), list(world.operator_policies.values())
    for name, exchange in topology.exchanges.items():
        policy = policy_for(policies, "exchanges", name)
        exchange.policy_alternate = policy.definition.get("alternate-exchange") if policy else None
    for queue in topology.queues.values():
        queue.obey(
            policy_for(policies, queue.policy_kind, queue.name),
            policy_for(operator_policies, queue.policy_kind, queue.name),
        )
    for queue in list(topology.queues.values()):
        queue.catch_up()


def restored(world: World, safe: SafeQueue) -> QueueModel:
    """Return the queue after a restart: delivered messages have their positions and are redelivered."""
    queue = QueueModel(world, safe.name, safe.arguments, is_durable=True, is_auto_delete=safe.is_auto_delete)
    queue.arrived = safe.arrived
    for old in safe.copies:
        copy = world.ledger.enter(old.message, queue, State.READY)
        copy.rank = copy.place = old.place
        copy.deadline_ms, copy.was_delivered = old.deadline_ms, old.was_delivered
        copy.stored_returns = old.stored_returns
        if queue.is_quorum and old.was_delivered:
            # A delivered message whose return was not recorded is redelivered; for the others both are possible.
            copy.returns = old.stored_returns or 1
        queue.ready.append(copy)
    queue.arrange()
    return queue
