"""The matrix: each mutant in a separate process, and the tests that fail there.

A pytest plugin. The process that has collected all tests forks for each mutant, so that no fork waits for imports. The
fork replaces the code of existing functions, wherever they were imported.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Protocol
from unittest.mock import patch

import msgspec
import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.coverage_of_tests import CACHE, ROOT, Measured
from tests.mutants.operators import Mutant
from tests.simulation.planting import Plant

# This many failing tests catch a mutant; the others are irrelevant.
CATCHES_MAX = 12
# Time beyond that of the test without a mutant, for other load of the machine.
CPU_FACTOR, CPU_EXTRA_S = 10, 2
SILENCE_S = 60
MEMORY_BYTES_MAX = 2 << 30


class Outcome(msgspec.Struct):
    """The result for a mutant: `catchers` are the failed tests of the `count` tests that run its lines."""

    name: str
    place: str
    catchers: list[str]
    count: int


class Change(Protocol):
    """A change in one fork."""

    name: str
    place: str

    def make(self) -> None:
        """Change the functions of this process."""

    def tests(self, measured: Measured) -> set[int]:
        """Return the tests that may detect the change."""


class ChangedLine:
    def __init__(self, mutant: Mutant) -> None:
        self.name = mutant.name
        self.place = f"{mutant.file.relative_to(ROOT).as_posix()}:{mutant.lines.start}"
        self._mutant = mutant

    def make(self) -> None:
        codes = {(code.co_qualname, code.co_firstlineno): code for code in all_codes(self._mutant.compiled())}
        # The root conftest.py freezes objects after the collection of tests, and those that are frozen are not listed.
        gc.unfreeze()
        changed = 0
        for function in gc.get_objects():
            if isinstance(function, FunctionType) and function.__code__.co_filename == str(self._mutant.file):
                known = function.__code__
                function.__code__ = codes.get((known.co_qualname, known.co_firstlineno), known)
                changed += function.__code__ is not known
        if not changed:
            raise LookupError(f"no function of {self._mutant.file} is imported")

    def tests(self, measured: Measured) -> set[int]:
        return measured.running(self._mutant.file, self._mutant.lines)


class PlantedBug:
    """A bug of `tests/simulation`, which replaces whole functions."""

    def __init__(self, plant: Plant) -> None:
        self.name = f"{plant.__module__}:{plant.__name__}"
        self.place = f"{Path(plant.__code__.co_filename).relative_to(ROOT)}:{plant.__code__.co_firstlineno}"
        self._plant = plant

    def make(self) -> None:
        self._plant(pytest.MonkeyPatch())

    def tests(self, measured: Measured) -> set[int]:
        with patch.object(pytest.MonkeyPatch, "setattr") as setattr_:
            self._plant(pytest.MonkeyPatch())
        replaced = [vars(owner).get(name) for owner, name, *_ in (call.args for call in setattr_.call_args_list)]
        found: set[int] = set()
        for function in replaced:
            if not isinstance(function, FunctionType):
                return set(range(len(measured.tests)))
            code = function.__code__
            last = max(line for one in all_codes(code) for _, _, line in one.co_lines() if line)
            # The line of the `def` runs at import.
            found |= measured.running(Path(code.co_filename), range(code.co_firstlineno + 1, last + 1))
        return found


def all_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_codes(constant)


class Matrix:
    """Runs all changes until the time is over; `outcomes` are their results."""

    def __init__(self, changes: list[Change], measured: Measured, seconds: float) -> None:
        self.outcomes: list[Outcome] = []
        self._changes = changes
        self._measured = measured
        self._until_s = time.monotonic() + seconds
        self._items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        for number, change in enumerate(self._changes, 1):
            if time.monotonic() > self._until_s:
                break
            # Quick tests first: slow ones are needed only if too few of the others catch the mutant.
            tests = sorted(change.tests(self._measured), key=lambda test: self._measured.durations_s[test])
            caught = self._fork(change, tests)
            if caught is None:
                continue
            catchers = [self._measured.tests[test] for test in caught]
            self.outcomes.append(Outcome(change.name, change.place, catchers, len(tests)))
            print(f"{number}/{len(self._changes)} {len(catchers):3} of {len(tests):4} {change.name}"[:150], flush=True)
            (CACHE / "matrix.json").write_bytes(msgspec.json.format(msgspec.json.encode(self.outcomes)))
        return True

    def _fork(self, change: Change, tests: list[int]) -> list[int] | None:
        """Return the tests that catch the change; a test that crashes or hangs the process catches it.

        None means that the change is impossible, since a function without its `super()` has another shape.
        """
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            # Even an unexpected error must not let the child continue as a second parent.
            try:
                os.close(reading)
                self._run(change, tests, writing)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading) as results:
            lines = list(until_silent(results.fileno()))
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if not lines:
            raise RuntimeError(f"{change.name} could not be made")
        caught = [int(test) for verb, _, test in (line.partition(" ") for line in lines) if verb == "failed"]
        verb, _, test = lines[-1].partition(" ")
        if verb == "impossible":
            return None
        return [*caught, int(test)] if verb == "begun" else caught

    def _run(self, change: Change, tests: list[int], writing: int) -> None:
        """Run the tests in the fork and report each of them."""
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            change.make()
        except ValueError:
            os.write(writing, b"impossible\n")
            return
        items = [self._items[self._measured.tests[test]] for test in tests]
        failed = 0
        for place, (test, item) in enumerate(zip(tests, items, strict=True)):
            os.write(writing, f"begun {test}\n".encode())
            # The timer's signal ends the process. It counts CPU time, so load does not matter; the parent ends a test
            # that waits.
            signal.setitimer(signal.ITIMER_PROF, CPU_EXTRA_S + CPU_FACTOR * self._measured.durations_s[test])
            reports = runtestprotocol(item, log=False, nextitem=items[place + 1] if place + 1 < len(items) else None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            has_failed = any(report.failed for report in reports)
            failed += has_failed
            os.write(writing, f"{'failed' if has_failed else 'passed'} {test}\n".encode())
            if failed == CATCHES_MAX:
                break
        os.write(writing, b"end\n")


def until_silent(descriptor: int) -> Iterator[str]:
    """Yield lines until the end, or until none arrives for too long."""
    rest = b""
    while select.select([descriptor], [], [], SILENCE_S)[0] and (data := os.read(descriptor, 65536)):
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode() for line in lines)
