"""Kill a broker at random moments while clients work, and check that no promise is lost.

python -m tests.torture --rounds 50 --seed 1
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.settings.settings import FULL
from compat.brokers import AmqpBroker, BrokerProcess
from compat.waiting import wait_until
from tests.torture.clients import (
    Client,
    Consumer,
    Declarer,
    Publisher,
    Target,
    TransactionPublisher,
    WindowPublisher,
    World,
)
from tests.torture.ledger import Ledger, Number, number_of

FANOUT, TOPIC, OBJECTS = "torture-all", "torture-some", "torture-objects"
TTL_MS = 300
# Time limit for the start of a broker that is killed later.
START_S = 0.6
# Confirms between a start and the next kill, and the delay of the kill.
CONFIRMS_MAX = 400
AFTER_S = 0.02

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
QUEUES: dict[str, dict[str, Any]] = {
    "kept": {},
    "classic": {},
    "priority": {"x-max-priority": 3},
    # Requeued messages keep their place in the first queue, and go to the end of the second.
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 1000},
    "quorum-unlimited": {"x-queue-type": "quorum", "x-delivery-limit": -1},
    "rejecting": DEAD,
    "expiring": {**DEAD, "x-message-ttl": TTL_MS},
    "dead": {},
    "marks": {},
}
CONSUMED = ("classic", "priority", "quorum", "quorum-unlimited")
ALL = ("kept", *CONSUMED, "rejecting", "expiring")
SOME = ("kept", "rejecting")
TARGETS: list[Target] = [(FANOUT, "", ALL), (TOPIC, "some.messages", SOME)]


@dataclass
class Result:
    """The result; `errors` are sentences about broken promises."""

    errors: list[str]
    confirmed: int
    # By queue: number of different messages its consumer received, and number of messages left at the end.
    delivered: dict[str, int]
    left: dict[str, int]
    kills_while_starting: int


def declare(channel: BlockingChannel) -> None:
    channel.exchange_declare(FANOUT, "fanout", durable=True)
    for name in (TOPIC, OBJECTS):
        channel.exchange_declare(name, "topic", durable=True)
    for queue, arguments in QUEUES.items():
        channel.queue_declare(queue, durable=True, arguments=arguments)
    for queue in ALL:
        channel.queue_bind(queue, FANOUT)
    for queue in SOME:
        channel.queue_bind(queue, TOPIC, "some.#")


def make_clients(world: World) -> list[Client]:
    return [
        Publisher(world, "publisher", TARGETS),
        TransactionPublisher(world, "transactions", TARGETS),
        WindowPublisher(world, "windows", TARGETS),
        *(Consumer(world, queue, "marks") for queue in CONSUMED),
        Consumer(world, "rejecting", "marks", may_reject=True),
        Declarer(world, OBJECTS),
    ]


def torture(folder: Path, rounds: int, seed: int, store_sync: str = FULL) -> Result:
    """Kill a broker a number of times; its folder must be new."""
    dice = random.Random(seed)
    broker = AmqpBroker(folder, options=("--store-sync", store_sync))
    broker.start()
    with_channel(broker, declare)
    world = World(broker.url, seed)
    clients = make_clients(world)
    for client in clients:
        client.start()
    kills_while_starting = 0
    try:
        for run in range(1, rounds + 1):
            world.set_run(run)
            wanted = len(world.ledger.confirmed) + dice.randrange(CONFIRMS_MAX)
            wait_until(partial(has_confirmed, world, wanted), 60.0)
            time.sleep(dice.random() * AFTER_S)
            broker.kill()
            world.set_run(0)
            while dice.random() < 0.3:
                kills_while_starting += 1
                broker.spawn()
                time.sleep(dice.random() * START_S)
                broker.kill()
            broker.start()
        world.end()
        for client in clients:
            client.join(30)
            assert not client.is_alive(), client.name
        if world.errors:
            raise world.errors[0]
        with_channel(broker, lambda channel: check(channel, world.ledger, clients))
    finally:
        world.end()
        broker.kill()
    ledger = world.ledger
    delivered = Counter(queue for (queue, _), fate in ledger.fates.items() if fate.delivered_in)
    return Result(ledger.errors, len(ledger.confirmed), delivered, ledger.left, kills_while_starting)


def with_channel(broker: BrokerProcess, work: Any) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    work(connection.channel())
    connection.close()


def check(channel: BlockingChannel, ledger: Ledger, clients: list[Client]) -> None:
    """Check the remaining messages, and remove them."""
    wait_until(lambda: count(channel, "expiring") == 0)
    died: dict[Number, list[str]] = {}
    left: dict[str, list[tuple[Number, bool]]] = {}
    for queue in QUEUES:
        left[queue] = []
        for method, properties, body in take_out(channel, queue, ledger):
            number = number_of(body)
            if queue == "dead":
                died.setdefault(number, []).append(properties.headers["x-death"][0]["queue"])
            else:
                left[queue].append((number, method.redelivered))
    ledger.check_end(left, died)
    for client in clients:
        if isinstance(client, Declarer):
            check_objects(channel, ledger, client)


def take_out(channel: BlockingChannel, queue: str, ledger: Ledger) -> list[tuple[Any, Any, bytes]]:
    """Return all messages of a queue, whose number must equal its count."""
    expected, found = count(channel, queue), []
    if expected:
        for message in channel.consume(queue, auto_ack=True, inactivity_timeout=10):
            if message[0] is None:
                break
            found.append(message)
            if len(found) == expected:
                break
        channel.cancel()
    rest = count(channel, queue)
    if len(found) != expected or rest:
        ledger.errors.append(f"{queue}: it said {expected}, gave {len(found)}, and says {rest} now")
    ledger.left[queue] = len(found)
    return found


def has_confirmed(world: World, count: int) -> bool:
    """Return whether this number is confirmed, or a failure prevents further confirms."""
    return bool(world.errors) or len(world.ledger.confirmed) > count


def count(channel: BlockingChannel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def check_objects(channel: BlockingChannel, ledger: Ledger, declarer: Declarer) -> None:
    """Check that declared objects exist and are bound, unless they were deleted."""
    channel.confirm_delivery()
    for name in sorted(declarer.exchanges):
        channel.exchange_declare(name, "topic", durable=True, passive=True)
    for name in sorted(declarer.bound):
        channel.basic_publish(OBJECTS, name, b"", mandatory=True)
        if count(channel, name) != 1:
            ledger.errors.append(f"{name} did not get what was published to it")
    for name in sorted(declarer.deleted):
        try:
            channel.basic_publish(OBJECTS, name, b"", mandatory=True)
        except pika.exceptions.UnroutableError:
            continue
        ledger.errors.append(f"{name} was deleted, and is there")
