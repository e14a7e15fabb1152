"""`make duel ARGS="--oracle 4.3 --programs 1000 --seed 1"`: random programs at this broker and at a live RabbitMQ."""

from __future__ import annotations

import argparse
import difflib
import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import Phase

from amqp_broker.conformance.duel.player import Pace
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker, BrokerProcess
from compat.duel.campaign import BATCH, Tally, search
from compat.duel.judge import DIFFERS, OWN, Corner, Judge, Verdict
from compat.duel.planted import PlantedBroker
from compat.duel.quirks import quirks_of
from compat.duel.recording import add
from compat.oracle.profiles import ORACLES_OF
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ
from compat.waiting import wait_until

UNAVAILABLE = 69  # sysexits.h: a requirement is missing
# Files in memory are as quick as they can be.
MEMORY = Path("/dev/shm")
# A quorum queue of RabbitMQ looks every five seconds whether it has expired; here before a `Wait` ends. A log of each
# connection costs time.
PREPARATION = "application:set_env(rabbit, quorum_tick_interval, 200), logger:set_primary_config(level, error)."
# The profile that stands for each oracle; the default profile is compared with two.
PROFILE_OF = {oracles[0]: profile for profile, oracles in ORACLES_OF.items() if len(oracles) == 1}


class Brokers(NamedTuple):
    """The brokers of a campaign; `quirky` are amqp-broker, each with a quirk of RabbitMQ's."""

    ours: AmqpBroker
    theirs: list[RabbitMQ]
    quirky: list[AmqpBroker]


def main() -> int:
    options = _options()
    # Stop the brokers and remove their folder.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    number = date.today().toordinal() if options.today else options.seed
    oracles = (options.oracle,) if options.oracle else ORACLES_OF[options.compat]
    profile = PROFILE_OF[options.oracle] if options.oracle else options.compat
    versions = " and ".join(oracles)
    print(f"seed {number}, {options.programs} programs, RabbitMQ {versions}, --compat {profile}", flush=True)
    try:
        for name in oracles:
            ORACLES[name].have()
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return UNAVAILABLE
    with _brokers(oracles, profile) as brokers:
        tally = _campaign(brokers, number, options)
    if options.record:
        add(tally.agreed, options.oracle)
    return 1 if tally.found and _remain(tally.found, oracles, profile) else 0


def _remain(found: list[Verdict], oracles: tuple[str, ...], profile: str) -> int:
    """Return how many differences show at brokers that were just started.

    An oracle that plays many programs at a time may answer one as it never does alone, each time for a while. A program
    may have become another difference while it was made small.
    """
    remaining = 0
    with _brokers(oracles, profile) as brokers:
        judge = _judge(brokers, 0)
        for verdict in found:
            if any(judge.judge(program).outcome == DIFFERS for program in (verdict.program, verdict.drawn)):
                remaining += 1
            else:
                print(f"Not so at brokers that were just started: {verdict.kind}")
    return remaining


@contextmanager
def _brokers(oracles: tuple[str, ...], profile: str) -> Iterator[Brokers]:
    """Start amqp-broker, also with each quirk, and the oracles, and stop them in the end."""
    plugins = ("rabbitmq_management", *EXCHANGE_PLUGINS)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        theirs = [RabbitMQ(Path(folder, name), plugins=plugins, oracle=ORACLES[name]) for name in oracles]
        ours = AmqpBroker(Path(folder, "amqp-broker"), profile=profile)
        quirky: list[AmqpBroker] = [PlantedBroker(Path(folder, name), name, profile) for name in quirks_of(profile)]
        brokers: list[BrokerProcess] = [ours, *theirs, *quirky]
        try:
            for broker in brokers:
                broker.spawn()
            for broker in brokers:
                wait_until(broker.is_ready, 120)
            for oracle in theirs:
                oracle.run("rabbitmqctl", "--quiet", "eval", PREPARATION)
            yield Brokers(ours, theirs, quirky)
        finally:
            for broker in brokers:
                broker.kill()


def _campaign(brokers: Brokers, number: int, options: argparse.Namespace) -> Tally:
    """Share the programs among worker processes, and print what they find."""
    begun, total = time.monotonic(), Tally()
    forking = multiprocessing.get_context("fork")
    with forking.Manager() as manager:
        known, reports, batches = manager.dict(), manager.Queue(), manager.Queue()
        # A record is of programs that agree, and needs no small one that differs.
        phases = (Phase.generate,) if options.record else (Phase.generate, Phase.shrink)
        for begin in range(0, options.programs, BATCH):
            # The first batch begins with the programs that differed when they were played last.
            chosen = phases if begin else (Phase.reuse, *phases)
            batches.put((f"{number}.{begin // BATCH}", min(BATCH, options.programs - begin), chosen))
        workers = [
            forking.Process(
                target=_work,
                args=(brokers, worker, batches, known, reports),
                name=str(worker),
                daemon=True,
            )
            for worker in range(min(options.workers, batches.qsize()))
        ]
        for process in workers:
            process.start()
        for tally in _reported(reports, len(workers)):
            total.outcomes += tally.outcomes
            total.found += tally.found
            total.agreed += tally.agreed
            for verdict in tally.found:
                _show(verdict)
            if options.verbose:
                _show_progress(total.outcomes, begun)
        _show_progress(total.outcomes, begun)
        for kind, count in sorted(known.items(), key=lambda item: -item[1]):
            print(f"  {count} times {kind}")
    return total


def _reported(reports: Any, workers: int) -> Iterator[Tally]:
    """Yield the tallies until each worker has put None."""
    while workers:
        tally: Tally | None = reports.get()
        if tally is None:
            workers -= 1
        else:
            yield tally


def _work(
    brokers: Brokers,
    worker: int,
    batches: Any,
    known: MutableMapping[str, int],
    reports: Any,
) -> None:
    """Judge batches of programs in a vhost of its own until none is left."""
    try:
        judge = _judge(brokers, worker)
        while True:
            name, count, phases = batches.get_nowait()
            search(judge, name, count, known, reports.put, phases)
    except queue.Empty:
        return
    finally:
        reports.put(None)


def _judge(brokers: Brokers, worker: int) -> Judge:
    """Return a judge with a vhost at each broker."""
    vhost, profile = f"duel{worker}", brokers.ours.profile
    theirs = [Corner(broker, vhost, Pace(), profile) for broker in brokers.theirs]
    ours, *quirky = (Corner(broker, vhost, OWN, profile) for broker in (brokers.ours, *brokers.quirky))
    for corner in (ours, *theirs, *quirky):
        corner.prepare()
    return Judge(ours, theirs, worker, quirky)


def _show(verdict: Verdict) -> None:
    print(verdict.source)
    lines = difflib.unified_diff(verdict.theirs, verdict.ours, "RabbitMQ", "amqp-broker", "", "", 9, "")
    print(*lines, "", sep="\n", flush=True)


def _show_progress(outcomes: Counter[str], begun: float) -> None:
    rate = outcomes.total() / (time.monotonic() - begun)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{outcomes.total()} programs: {counts}; {rate:.1f} programs/s", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.duel", description=__doc__)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--oracle", choices=ORACLES, help="the version of RabbitMQ, with amqp-broker's profile of it")
    chosen.add_argument(
        "--compat",
        choices=ORACLES_OF,
        default=DEFAULT,
        help=f"amqp-broker's profile, with all of its oracles (default {DEFAULT})",
    )
    parser.add_argument("--programs", type=int, default=100, metavar="COUNT", help="so many programs (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same programs (default 1)")
    parser.add_argument("--today", action="store_true", help="the seed is that of this day")
    # Most of a program's time is waiting.
    workers = 16 * (os.cpu_count() or 1)
    parser.add_argument("--workers", type=int, default=workers, help=f"play so many at a time (default {workers})")
    parser.add_argument("--verbose", action="store_true", help="print the progress")
    parser.add_argument("--record", action="store_true", help="keep the programs that agree, with RabbitMQ's answers")
    options = parser.parse_args()
    if options.record and not options.oracle:
        parser.error("--record needs --oracle")
    return options


if __name__ == "__main__":
    sys.exit(main())
