"""What happens to queues, exchanges and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp.commands import Exchange, Queue

from tests.simulation.model import BindingModel, ExchangeModel, QueueModel, demand

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

QUEUES = [f"q{number}" for number in range(6)]
EXCHANGES = [f"x{number}" for number in range(4)]
KEYS = ["a", "b", "a.b", "a.b.c", "", "q1"]
PATTERNS = [*KEYS, "#", "*", "a.#", "*.b", "#.c", "*.*"]


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
