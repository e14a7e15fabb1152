"""Cut the power of a working broker, and check that what it promised is there.

    python -m tests.torture.power_cuts --cuts 300 --seed 1 [--store-sync os]

A broker works with clients on a recorded disk (tests/torture/disk.py). Each cut makes an image of the disk at a random
moment of the record, on which a broker starts. Some of these starts are cut off as well.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from pamqp.commands import Basic, Channel, Confirm, Exchange, Queue, Tx

from amqp_broker.settings.settings import FULL, OS
from amqp_broker.store.checkpoint import CHECKPOINT_FILE
from amqp_broker.store.environment import DATA_FILE
from amqp_broker.store.verify import verify
from compat.brokers import AmqpBroker
from tests.client import Client
from tests.present import present
from tests.store.stores import fill
from tests.torture.disk import Disk, Kind, Record, read_records, variables
from tests.torture.interrupted_tools import (
    BODY_BYTES,
    CONVERTING,
    MESSAGES,
    TOOLS,
    command,
    contents,
    losses,
    strip_checksums,
)
from tests.torture.ledger import Copy, Number
from tests.torture.promises import Promises, body_of, number_in

T = TypeVar("T")

FANOUT = "cuts"
QUEUES: dict[str, dict[str, Any]] = {
    "classic": {},
    "kept": {},
    "priority": {"x-max-priority": 3},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
}
CONSUMED = ("classic", "quorum")
WINDOW = 30
PREFETCH = 20
# Time of work before and after a restart.
WORK_S = 1.5
# Cuts of one record: with another record, other work is cut off.
CUTS_PER_RECORD = 50
# The first records create the store.
FIRST_RECORDS = 60
BREAKS = (OSError, AssertionError)


@dataclass
class Result:
    """The result; `errors` are sentences about broken promises."""

    cuts: int = 0
    confirmed: int = 0
    cuts_while_starting: int = 0
    errors: list[str] = field(default_factory=list)


class World:
    """A broker on a recorded disk, its clients, and what it promised them."""

    def __init__(self, folder: Path, seed: int, store_sync: str) -> None:
        self.log, self.seed = folder.with_name(f"{folder.name}.record"), seed
        folder.mkdir()
        self.broker = AmqpBroker(folder, options=("--store-sync", store_sync))
        self.broker.variables = variables(folder, self.log)
        self.promises = Promises()
        self.is_over = False
        self._numbers: dict[str, int] = {}

    def place(self) -> int:
        return self.log.stat().st_size

    def numbers(self, publisher: str, count: int) -> list[Number]:
        """Return numbers of new messages, which are about to be sent."""
        first = self._numbers.get(publisher, 0) + 1
        self._numbers[publisher] = first + count - 1
        numbers, place = [Number(publisher, number) for number in range(first, first + count)], self.place()
        self.promises.sent.update(dict.fromkeys(numbers, place))
        return numbers

    def confirmed(self, numbers: list[Number], queues: tuple[str, ...]) -> None:
        copies = [(queue, number) for number in numbers for queue in queues]
        self.promises.note(self.promises.confirmed, copies, self.place())


def publish(client: Client, numbers: list[Number], exchange: str, routing_key: str = "") -> None:
    for number in numbers:
        properties = {"delivery_mode": 2, "priority": number.number % 3}
        client.publish(routing_key, body_of(number), exchange=exchange, **properties)


def expect_confirms(client: Client, count: int) -> None:
    until = 0
    while until < count:
        until = client.expect(Basic.Ack).delivery_tag


def work_with_confirms(world: World, client: Client, dice: random.Random) -> None:
    """Publish messages, and wait for their confirms."""
    client.call(Confirm.Select())
    published = 0
    while not world.is_over:
        numbers = world.numbers("publisher", dice.randrange(1, WINDOW))
        publish(client, numbers, FANOUT)
        published += len(numbers)
        expect_confirms(client, published)
        world.confirmed(numbers, tuple(QUEUES))


def work_in_transactions(world: World, client: Client, dice: random.Random) -> None:
    client.call(Tx.Select())
    while not world.is_over:
        numbers = world.numbers("transactions", dice.randrange(1, WINDOW))
        publish(client, numbers, FANOUT)
        client.call(Tx.Commit())
        world.confirmed(numbers, tuple(QUEUES))


def work_as_consumer(queue: str) -> Callable[[World, Client, random.Random], None]:
    """Ack messages; the confirm of a later publish on the channel makes these acks certain."""

    def work(world: World, client: Client, dice: random.Random) -> None:
        client.call(Confirm.Select())
        client.call(Basic.Qos(prefetch_count=PREFETCH))
        client.consume(queue)
        settled: list[Copy] = []
        # Those before the last mark, which is not confirmed yet.
        marked: list[Copy] = []
        mark: list[Number] = []
        while not world.is_over:
            method, _ = client.next()
            if isinstance(method, Basic.Ack):
                world.confirmed(mark, ("kept",))
                world.promises.note(world.promises.settled, marked, world.place())
                marked = []
                continue
            settled.append((queue, present(number_in(client.expect_body()))))
            world.promises.note(world.promises.acked, settled[-1:], world.place())
            client.send(Basic.Ack(method.delivery_tag))
            if len(settled) >= PREFETCH and not marked:
                marked, settled = settled, []
                mark = world.numbers(f"marks-of-{queue}", 1)
                publish(client, mark, "", "kept")

    return work


def work_with_queues(world: World, client: Client, dice: random.Random) -> None:
    """Declare queues, and delete every third."""
    promises = world.promises
    while not world.is_over:
        name = f"object-{dice.getrandbits(64)}"
        client.declare(name, durable=True)
        promises.declared[name] = world.place()
        if dice.random() < 0.3:
            promises.deleting[name] = world.place()
            client.call(Queue.Delete(queue=name))
            promises.deleted[name] = world.place()
        time.sleep(0.02)


WORKS = (work_with_confirms, work_in_transactions, *map(work_as_consumer, CONSUMED), work_with_queues)


def work(world: World) -> None:
    """Let clients work with the broker, and stop it while they do."""
    threads, errors, world.is_over = [], [], False

    def run(number: int) -> None:
        client = Client(world.broker.port).open()
        try:
            WORKS[number](world, client, random.Random(f"{world.seed} {number} {world.place()}"))
        except BREAKS as error:
            # The broker ends its clients' connections.
            if not world.is_over:
                errors.append(error)
        finally:
            client.close()

    for number in range(len(WORKS)):
        threads.append(threading.Thread(target=run, args=(number,), daemon=True))
        threads[-1].start()
    time.sleep(WORK_S)
    world.is_over = True
    world.broker.stop()
    for thread in threads:
        thread.join(30)
    if errors:
        raise errors[0]


def record(world: World) -> list[Record]:
    """Let a broker work on a new disk, restart it, and let it work again; return the record of the disk."""
    for is_new in (True, False):
        world.broker.start()
        if is_new:
            with Client(world.broker.port).open() as client:
                client.call(Exchange.Declare(exchange=FANOUT, exchange_type="fanout", durable=True))
                for queue, arguments in QUEUES.items():
                    client.declare(queue, durable=True, arguments=arguments)
                    client.call(Queue.Bind(queue=queue, exchange=FANOUT))
                    world.promises.declared[queue] = world.place()
        work(world)
    return list(read_records(world.log))


def sure_places(records: list[Record], store_sync: str) -> list[int]:
    """Return for each moment of a record the place until which promises are kept.

    With lazy commits that is the last flush but one: a commit may end while a flush begins.
    """
    if store_sync == FULL:
        return [record.end for record in records]
    places, ends = [], [0, 0]
    for found in records:
        if found.kind is Kind.SYNC_END and found.name.endswith(CHECKPOINT_FILE):
            ends.append(found.end)
        places.append(ends[-2])
    return places


def cut(folder: Path, cuts: int, seed: int, store_sync: str, result: Result, *, is_lying: bool = False) -> None:
    """Cut the power at random moments of one record; the folder must be new.

    A disk that `is_lying` flushes nothing; its power is cut until a promise is broken.
    """
    folder.mkdir()
    dice = random.Random(f"{seed} {store_sync}")
    world = World(folder / "disk", seed, store_sync)
    records = record(world)
    result.confirmed += world.promises.at(records[-1].end)
    moments = [dice.randrange(FIRST_RECORDS if dice.random() < 0.1 else len(records)) for _ in range(cuts)]
    sure = sure_places(records, store_sync)
    disk, done = Disk(dice), 0
    for moment in sorted(moments):
        for found in records[done : moment + 1]:
            if not is_lying or found.kind not in (Kind.WRITTEN, Kind.SYNC_END):
                disk.replay(found)
        done = max(done, moment + 1)
        result.cuts += 1
        image, boot = folder / "image", 1
        shutil.rmtree(image, ignore_errors=True)
        disk.image(image)
        if dice.random() < 0.2:
            result.cuts_while_starting += 1
            image, boot = cut_start(image, store_sync, dice), 2
        for error in check(image, boot, store_sync, world.promises, records[moment].end, sure[moment]):
            result.errors.append(f"seed {seed}, moment {moment} of {len(records)}: {error}")
        if is_lying and result.errors:
            return


def cut_start(image: Path, store_sync: str, dice: random.Random) -> Path:
    """Start a broker on an image, cut it off at a moment of the start, and return the image of that."""
    again = image.with_name("image-again")
    shutil.rmtree(again, ignore_errors=True)
    disk = Disk(dice, image)
    broker = AmqpBroker(image, options=("--store-sync", store_sync))
    log = image.with_name("start.record")
    log.unlink(missing_ok=True)
    broker.variables = variables(image, log, boot=1)
    # The next start tells what is wrong.
    with contextlib.suppress(RuntimeError), broker.running():
        pass
    records = list(read_records(log))
    for found in records[: dice.randrange(len(records) + 1)]:
        disk.replay(found)
    disk.image(again)
    return again


def check(image: Path, boot: int, store_sync: str, promises: Promises, place: int, sure: int) -> list[str]:
    """Start a broker on an image, and return sentences about broken promises."""
    broker = AmqpBroker(image, options=("--store-sync", store_sync))
    broker.variables = variables(image, boot=boot)
    try:
        broker.start()
    except RuntimeError as error:
        return [f"no start: {error}"]
    try:
        # A busy machine may need more time than the broker gives for a login.
        client = patient(lambda: Client(broker.port).open())
        with client:
            names = [*QUEUES, *sorted(promises.declared.keys() - QUEUES.keys())]
            found = {name: patient(partial(take_out, broker, name)) for name in names if exists(client, name)}
    finally:
        broker.stop()
    errors = list(promises.broken(found, place, sure))
    return errors + [f"verify: {problem}" for problem in verify(image / "data").problems]


def patient(call: Callable[[], T], attempts: int = 5) -> T:
    """Return the result of a call, which may lose its connection some times."""
    for _ in range(attempts - 1):
        with contextlib.suppress(ConnectionError):
            return call()
    return call()


def exists(client: Client, queue: str) -> bool:
    """Return whether there is a queue; the channel of a failed question is opened again."""
    client.send(Queue.Declare(queue=queue, passive=True))
    if isinstance(client.next()[0], Queue.DeclareOk):
        return True
    client.send(Channel.CloseOk(), Channel.Open())
    client.expect(Channel.OpenOk)
    return False


def take_out(broker: AmqpBroker, queue: str) -> list[bytes]:
    """Return the bodies of a queue in order."""
    with Client(broker.port).open() as client:
        count = client.ready_count(queue)
        if not count:
            return []
        if queue == "stream":
            client.call(Basic.Qos(prefetch_count=count))
            client.call(Basic.Consume(queue=queue, arguments={"x-stream-offset": "first"}))
        else:
            client.consume(queue, no_ack=True)
        return [client.expect_delivery()[1] for _ in range(count)]


def cut_power(folder: Path, cuts: int, seed: int, store_sync: str = FULL) -> Result:
    """Cut the power of brokers in a folder a number of times."""
    result, number = Result(), 0
    while result.cuts < cuts:
        count = min(CUTS_PER_RECORD, cuts - result.cuts)
        cut(folder / f"{store_sync}-{number}", count, seed + number, store_sync, result)
        shutil.rmtree(folder / f"{store_sync}-{number}")
        number += 1
    return result


def cut_tool(tool: str, folder: Path, cuts: int, seed: int) -> Result:
    """Cut the power of a tool of the store, or of a broker that starts; the folder must be new."""
    dice, result, begun = random.Random(f"{seed} {tool}"), Result(), folder / "begun"
    begun.mkdir(parents=True)
    fill(begun / "used", MESSAGES, BODY_BYTES)
    if tool in CONVERTING:
        strip_checksums(begun / "used")
    whole = contents(begun / "used")
    disk, log = folder / "disk", folder / "record"
    shutil.copytree(begun, disk)
    before = Disk(dice, disk)
    ran = {**os.environ, **variables(disk, log)}
    subprocess.run(command(tool, disk / "used", disk / "copy"), check=True, capture_output=True, env=ran)
    records = list(read_records(log))
    done = 0
    for moment in sorted([*(dice.randrange(len(records)) for _ in range(cuts - 1)), len(records)]):
        for found in records[done:moment]:
            before.replay(found)
        done, image = moment, folder / "image"
        shutil.rmtree(image, ignore_errors=True)
        before.image(image)
        result.cuts += 1
        errors = losses(tool, image / "used", image / "copy", whole)
        if tool == "backup" and moment == len(records) and not (image / "copy" / DATA_FILE).exists():
            errors.append("the backup is lost")
        result.errors += [f"{tool}, seed {seed}, moment {moment} of {len(records)}: {error}" for error in errors]
    return result


@click.command()
@click.option("--cuts", default=100, show_default=True, help="Number of power cuts.")
@click.option("--seed", default=1, show_default=True, help="Seed of the work and of the moments.")
@click.option("--store-sync", default=FULL, type=click.Choice([FULL, OS]), help="When the broker confirms.")
@click.option("--tool-cuts", default=0, show_default=True, help="Number of power cuts of each tool of the store.")
def main(cuts: int, seed: int, store_sync: str, tool_cuts: int) -> None:
    """Cut the power of a working broker, and check that what it promised is there."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = cut_power(Path(folder), cuts, seed, store_sync)
        for tool in TOOLS if tool_cuts else ():
            of_tool = cut_tool(tool, Path(folder, tool), tool_cuts, seed)
            click.echo(f"{tool}: {of_tool.cuts} cuts, {len(of_tool.errors)} errors")
            result.errors += of_tool.errors
    click.echo(
        f"{result.cuts} cuts, {result.cuts_while_starting} of them again while a broker started; "
        f"{result.confirmed} copies of messages confirmed; {time.monotonic() - began:.0f} s"
    )
    for error in result.errors[:50]:
        click.echo(error, err=True)
    sys.exit(1 if result.errors else 0)


if __name__ == "__main__":
    main()
