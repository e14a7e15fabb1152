"""The programs that find bugs: `python -m compat.duel.finding` writes `found.json`, where no program is yet.

A bug is a function that makes the broker's code wrong: the simulation's (`tests/simulation/bugs_in_*.py`), and former
faults (`unmended.py`). The broker with the bug is compared with the broker without it, which stands for RabbitMQ.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hypothesis import Phase

from amqp_broker.conformance.duel.program_records import from_json, to_json
from amqp_broker.conformance.duel.steps import Program
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker
from compat.duel.campaign import BATCH, Search, Tally
from compat.duel.judge import DIFFERS, OWN, Corner, Judge
from compat.duel.planted import PlantedBroker, bugs
from compat.duel.unmended import UNMENDED

# The profiles of even and odd seeds, and that of the former faults.
PROFILES, PROFILE_OF_UNMENDED = ("3.13", DEFAULT), "4.3"
VHOST = "finding"
FOUND = Path(__file__).with_name("found.json")
# The programs of a bug, of several seeds: of one after the other, until one finds it. They are those of a campaign.
SEEDS = range(1, 5)
PROGRAMS_OF_SEED = 1000
# Most of a program's time is waiting.
WORKERS = 40
# The bugs of these modules are in what a program does not do, or in what is not compared.
NEVER = {
    "bugs_in_faults": "RabbitMQ has no fault rules",
    "bugs_in_remembering": "no program restarts the broker, or makes its disk fail",
    "bugs_in_counting": "the statistics of messages are not compared",
}
_ONCE_A_MINUTE = "timeouts of classic queues are looked at once a minute"
_MEMORY = "it only leaves something in the memory"
# Other bugs that no program can find, and why.
UNSEEN = {
    "nobody_times_out": _ONCE_A_MINUTE,
    "everybody_times_out_after_the_shortest_time": _ONCE_A_MINUTE,
    "a_paused_client_is_delivered_to": "no program pauses a client",
    "a_client_that_resumes_stays_out": "no program pauses a client",
    "a_purge_leaves_the_counts_of_what_came_back": _MEMORY,
    "a_portion_is_the_last_one": "programs have too few messages for a second portion",
    "a_settled_message_leaves_its_deadline": _MEMORY,
    "an_exchange_remembers_keys_that_nobody_is_bound_with": _MEMORY,
    "bindings_that_are_about_to_be_removed_count": "the broker is at rest after each step",
    "confirms_are_always_for_one": "RabbitMQ may group confirms in any way",
    "declaring_renews_the_lease_of_a_quorum_queue": "programs wait for longer than each lease, never for a part",
    "the_journal_is_not_told_what_a_queue_gives_up": "no program restarts the broker",
    "the_timer_is_set_once_only": "a program has shown it, but does not show it each time",
    "timers_outlive_their_queue": "they find nothing to do in a deleted queue",
}


@dataclass(frozen=True)
class Found:
    """A program that finds a bug with a profile.

    It was found among random programs: how many were `played` with a `seed` until then.
    """

    profile: str
    seed: int
    played: int
    program: Program


def load_found() -> dict[str, Found | None]:
    """Return what finds each bug; None if nothing has found it."""
    return {name: one and _read(one) for name, one in json.loads(FOUND.read_text("utf-8")).items()}


def _read(value: Any) -> Found:
    return Found(value["profile"], value["seed"], value["played"], tuple(from_json(step) for step in value["program"]))


def _written(found: Found) -> Any:
    program = [to_json(step) for step in found.program]
    return {"profile": found.profile, "seed": found.seed, "played": found.played, "program": program}


def _write(found: dict[str, Any]) -> None:
    """Write a line for each bug."""
    lines = [f"{json.dumps(bug)}: {json.dumps(one, ensure_ascii=False)}" for bug, one in sorted(found.items())]
    FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def sought() -> list[str]:
    """Return the names of the bugs that programs may find."""
    return [name for name, module in bugs().items() if module not in NEVER and name not in UNSEEN]


def finds(found: Found, bug: str, folder: Path) -> bool:
    """Return whether a program shows a bug."""
    with _judge(bug, found.profile, folder) as judge:
        return judge.differs_at_once(found.program).outcome == DIFFERS


def search(bug: str, seed: int, folder: Path) -> Found | None:
    """Play random programs until one shows the bug; return a smaller one."""
    profile = PROFILE_OF_UNMENDED if bug in UNMENDED else PROFILES[seed % 2]
    with _judge(bug, profile, folder) as judge:
        tally = Tally()
        for batch in range(PROGRAMS_OF_SEED // BATCH):
            name = f"{seed}.{batch}.0"
            verdict = Search(judge, tally, {}).run(name, BATCH, (Phase.generate, Phase.shrink))
            if verdict is not None:
                return Found(profile, seed, tally.programs, verdict.program)
    return None


@contextmanager
def _judge(bug: str, profile: str, folder: Path) -> Iterator[Judge]:
    planted, sound = PlantedBroker(folder / "planted", bug, profile), AmqpBroker(folder / "sound", profile=profile)
    with planted.running(), sound.running():
        corners = [Corner(broker, VHOST, OWN, profile) for broker in (planted, sound)]
        for corner in corners:
            corner.prepare()
        yield Judge(corners[0], corners[1:], 0)
        for corner in corners:
            corner.observer.close()


def _search(found: MutableMapping[str, Found | None], number: tuple[int, str]) -> None:
    """Search with one seed unless another one has found the bug."""
    seed, bug = number
    if found[bug] is None:
        with tempfile.TemporaryDirectory() as folder:
            one = search(bug, seed, Path(folder))
        if one is not None and found[bug] is None:
            found[bug] = one
            print(f"seed {one.seed}, {one.played} programs: {bug}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compat.duel.finding", description=__doc__)
    parser.add_argument("bugs", nargs="*", help="look for these anew")
    chosen = parser.parse_args().bugs
    known = load_found() if FOUND.exists() else {}
    context = get_context("spawn")
    with context.Manager() as manager, context.Pool(WORKERS, maxtasksperchild=1) as pool:
        found = manager.dict({bug: None if bug in chosen else known.get(bug) for bug in sought()})
        tasks = [(seed, bug) for seed in SEEDS for bug, one in found.items() if one is None]
        for _ in pool.imap_unordered(partial(_search, found), tasks):
            _write({bug: one and _written(one) for bug, one in found.items()})


if __name__ == "__main__":
    main()
