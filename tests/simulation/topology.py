"""Actions on queues, exchanges, bindings and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pamqp.commands import Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.broker.admin.policies import Policy
from tests.simulation.client import ConsumerModel
from tests.simulation.ledger import demand
from tests.simulation.queue_settings import PolicyModel
from tests.simulation.queues import QueueModel
from tests.simulation.routing import BindingModel, ExchangeModel

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation
    from tests.simulation.taste import Taste

EXCHANGES = [f"x{number}" for number in range(4)]
KEYS = ["a", "b", "a.b", "a.b.c", "", "q1"]
PATTERNS = [*KEYS, "#", "*", "a.#", "*.b", "#.c", "*.*"]
OVERFLOWS = ["drop-head", "reject-publish", "reject-publish-dlx"]
LIVES_MS = [0, 1, 100, 700, 2500, 9000, 30_000]
# One that is never there among them.
DEAD_LETTER_EXCHANGES = ["", "amq.fanout", "missing", *EXCHANGES]


def some_settings(taste: Taste) -> dict[str, Any]:
    """Settings of a queue that arguments and policies share, by their names in policies."""
    chance = taste.chance
    found: dict[str, Any] = {}
    if taste.likes("message-ttl"):
        found["message-ttl"] = chance.choice(LIVES_MS)
    if taste.likes("dead-letter-exchange"):
        if chance.random() < taste.dead_letters_to_queues:
            found["dead-letter-exchange"] = ""
            found["dead-letter-routing-key"] = chance.choice(taste.queues)
        else:
            found["dead-letter-exchange"] = chance.choice(DEAD_LETTER_EXCHANGES)
            if chance.random() < 0.3:
                found["dead-letter-routing-key"] = chance.choice([*taste.queues, *KEYS])
    if taste.likes("max-length"):
        found["max-length"] = chance.randrange(6)
    if taste.likes("max-length-bytes"):
        found["max-length-bytes"] = chance.choice([0, 10, 120, 500, 9500])
    if taste.likes("overflow"):
        found["overflow"] = chance.choice(OVERFLOWS)
    if taste.likes("expires"):
        found["expires"] = chance.choice([1, 2000, 5000, 10_000, 10_000])
    if taste.likes("consumer-timeout"):
        found["consumer-timeout"] = chance.choice([0, 1000, 70_000])
    return found


def new_queue(sim: Simulation, name: str) -> QueueModel:
    """A queue of any kind."""
    taste, chance = sim.taste, sim.chance
    kind = chance.choice(taste.kinds)
    arguments: dict[str, Any] = {}
    if kind != "plain":
        arguments = {f"x-{key}": value for key, value in some_settings(taste).items()}
        if "x-dead-letter-routing-key" in arguments and chance.random() < 0.3:
            arguments["x-dead-letter-routing-key"] = name
        if taste.likes("single-active-consumer"):
            arguments["x-single-active-consumer"] = True
    if kind == "priority":
        arguments["x-max-priority"] = chance.randrange(1, 6)
    elif kind == "quorum":
        arguments["x-queue-type"] = "quorum"
        if taste.likes("delivery-limit"):
            arguments["x-delivery-limit"] = chance.randrange(-1, 3)
        return QueueModel(sim.world, name, arguments, is_durable=True)
    return QueueModel(
        sim.world, name, arguments, is_durable=chance.random() < 0.5, is_auto_delete=chance.random() < 0.1
    )


def declare_queue(sim: Simulation) -> None:
    name = sim.chance.choice(sim.taste.queues)
    if (found := sim.any_channel()) is None or name in sim.topology.queues:
        return
    queue = new_queue(sim, name)
    if not queue.is_quorum and sim.chance.random() < 0.1:
        queue.owner, queue.is_durable = found[0], False
    sim.tell(queue)
    declare = Queue.Declare(
        queue=name,
        durable=queue.is_durable,
        exclusive=queue.owner is not None,
        auto_delete=queue.is_auto_delete,
        arguments=queue.arguments,
    )
    ok = sim.ask(*found, declare, Queue.DeclareOk)
    demand((ok.queue, ok.message_count, ok.consumer_count) == (name, 0, 0), f"{name} is new and not empty")
    if sim.journal is not None and queue.is_durable:
        demand(("queue", "/", name) in sim.journal.disk.definitions, f"{name} is declared and not safe")
    sim.world.add_queue(queue)


def look_at_queue(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    ok = sim.ask(*found, Queue.Declare(queue=queue.name, passive=True), Queue.DeclareOk)
    demand(ok.message_count == len(queue.ready), f"{queue.name} says {ok.message_count}, but has {queue.ready}")
    more = pulled_from(sim, queue) + len(leavers_of(sim, queue)) if queue.is_quorum else 0
    # A quorum queue does not count consumers that wait to become the active one.
    active = min(1, len(queue.consumers)) if queue.is_quorum and queue.is_single_active else len(queue.consumers)
    demand(ok.consumer_count == active + more, f"{queue.name} says {ok.consumer_count} consumers")
    if not queue.is_quorum:
        queue.use()


def pulled_from(sim: Simulation, queue: QueueModel) -> int:
    """Return the number of unsettled messages that clients have asked for by basic.get."""
    channels = [channel for client in sim.clients for channel in client.channels.values()]
    return sum(
        held.consumer is None and held.copy.queue is queue for one in channels for held in one.unsettled.values()
    )


def leavers_of(sim: Simulation, queue: QueueModel) -> set[ConsumerModel]:
    """Return the consumers of the queue that were cancelled and have unsettled messages."""
    channels = [channel for client in sim.clients for channel in client.channels.values()]
    holders = {held.consumer for one in channels for held in one.unsettled.values() if held.copy.queue is queue}
    return {holder for holder in holders if holder is not None and holder not in queue.consumers}


def delete_queue(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    sim.tell(queue.name)
    ok = sim.ask(*found, Queue.Delete(queue=queue.name), Queue.DeleteOk)
    demand(ok.message_count == len(queue.ready), f"deleting {queue.name} says {ok.message_count}")
    sim.world.delete_queue(queue)


def purge(sim: Simulation) -> None:
    if (found := sim.any_channel()) is None or (queue := sim.any_queue(found[0])) is None:
        return
    # Prefer the fullest one: it has most to go wrong.
    own = [other for other in sim.topology.queues.values() if other.owner in (None, found[0])]
    queue = max(own, key=lambda other: len(other.ready)) if sim.chance.random() < 0.5 else queue
    sim.tell(queue.name)
    ok = sim.ask(*found, Queue.Purge(queue=queue.name), Queue.PurgeOk)
    demand(ok.message_count == queue.purge(), f"purging {queue.name} says {ok.message_count}")


def declare_exchange(sim: Simulation) -> None:
    name = sim.chance.choice(EXCHANGES)
    if (found := sim.any_channel()) is None or name in sim.topology.exchanges:
        return
    exchange = ExchangeModel(sim.chance.choice(["direct", "fanout", "topic"]), sim.chance.random() < 0.3)
    exchange.is_durable = sim.chance.random() < 0.5
    arguments: FieldTable = {}
    if sim.chance.random() < 0.3:
        exchange.alternate = arguments["alternate-exchange"] = sim.chance.choice([*EXCHANGES, "amq.fanout"])
    declare = Exchange.Declare(
        exchange=name,
        exchange_type=exchange.kind,
        durable=exchange.is_durable,
        auto_delete=exchange.is_auto_delete,
        arguments=arguments,
    )
    sim.tell(f"{name} {exchange}")
    sim.ask(*found, declare, Exchange.DeclareOk)
    sim.world.add_exchange(name, exchange)


def delete_exchange(sim: Simulation) -> None:
    if (found := sim.any_channel()) is not None:
        name = sim.chance.choice(EXCHANGES)
        sim.tell(name)
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
        sim.topology.bindings[BindingModel(source, key, name)] = None
    elif (queue := sim.any_queue(found[0])) is not None:
        sim.ask(*found, Queue.Bind(queue=queue.name, exchange=source, routing_key=key), Queue.BindOk)
        sim.topology.bindings[BindingModel(source, key, queue)] = None


def unbind(sim: Simulation) -> None:
    bindings = list(sim.topology.bindings)
    if (found := sim.any_channel()) is None or not bindings:
        return
    binding = sim.chance.choice(bindings)
    source, key, destination = binding.source, binding.key, binding.destination
    if isinstance(destination, str):
        sim.ask(*found, Exchange.Unbind(source=source, destination=destination, routing_key=key), Exchange.UnbindOk)
    elif destination.owner in (None, found[0]):
        sim.ask(*found, Queue.Unbind(queue=destination.name, exchange=source, routing_key=key), Queue.UnbindOk)
    else:
        return
    sim.topology.unbind(binding)


def set_policy(sim: Simulation) -> None:
    chance = sim.chance
    is_operators = chance.random() < 0.5
    definition = some_settings(sim.taste)
    if is_operators:
        for key in ("dead-letter-exchange", "dead-letter-routing-key", "consumer-timeout"):
            definition.pop(key, None)
    elif chance.random() < 0.3:
        definition["alternate-exchange"] = chance.choice([*EXCHANGES, "amq.fanout"])
    if sim.taste.likes("delivery-limit"):
        definition["delivery-limit"] = chance.randrange(-1, 3)
    if not definition:
        return
    policy = PolicyModel(
        name=chance.choice(["one", "other"]),
        pattern=chance.choice([".*", "^q", "^q[0-2]$", "q[35]", "x", "1"]),
        apply_to=chance.choice(["all", "all", "queues", "classic_queues", "quorum_queues", "exchanges"]),
        priority=chance.randrange(3),
        definition=definition,
    )
    sim.tell(f"is_operators={is_operators} {policy}")
    vhost = sim.lab.vhost
    put = vhost.operator_policies.set if is_operators else vhost.policies.set
    put(Policy(policy.name, policy.pattern, definition, policy.priority, policy.apply_to))
    sim.hear()
    (sim.world.operator_policies if is_operators else sim.world.policies)[policy.name] = policy
    sim.world.follow_policies()


def clear_policy(sim: Simulation) -> None:
    world, vhost = sim.world, sim.lab.vhost
    for policies, clear in (
        (world.policies, vhost.policies.clear),
        (world.operator_policies, vhost.operator_policies.clear),
    ):
        for name in list(policies):
            if sim.is_ending or sim.chance.random() < 0.5:
                sim.tell(name)
                clear(name)
                sim.hear()
                del policies[name]
                world.follow_policies()


def remove_all(sim: Simulation) -> None:
    """Remove all remaining policies, queues and exchanges."""
    clear_policy(sim)
    vhost, world = sim.lab.vhost, sim.world
    late = {late.copy for late in sim.faults.delayed.values() if late is not None}
    for queue in list(sim.topology.queues.values()):
        demand(queue.unacked <= late, f"{queue.name} has unacked messages without an owner")
        vhost.remove_queue(vhost.queues[queue.name])
        world.delete_queue(queue)
    for name in [name for name in sim.topology.exchanges if not name.startswith("amq.")]:
        vhost.delete_exchange(name, if_unused=False)
        sim.topology.delete_exchange(name)
    for binding in list(sim.topology.bindings):
        source = vhost.exchanges[binding.source]
        vhost.unbind(source.binding(vhost.exchanges[binding.destination], binding.key, {}))
        sim.topology.unbind(binding)
