"""Lines and CPU time of each test, which select the tests that may catch a mutant."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from coverage import Coverage

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "amqp_broker" / name for name in ("broker", "session", "store")]
CORE = (
    *("tests/broker", "tests/session", "tests/store"),
    *("tests/properties", "tests/simulation/test_simulation.py"),
)
CACHE = ROOT / ".cache" / "mutants"


class Measured(msgspec.Struct):
    """The `tests` and their CPU times, and the tests (as indexes) that run each line of each file."""

    digest: str
    tests: list[str]
    durations_s: list[float]
    lines: dict[str, dict[int, list[int]]]

    def running(self, file: Path, lines: range) -> set[int]:
        known = self.lines.get(file.relative_to(ROOT).as_posix(), {})
        return {test for line in lines for test in known.get(line, ())}


class Measuring:
    """A pytest plugin that measures each test separately."""

    def __init__(self) -> None:
        self.coverage = Coverage(data_file=None, config_file=False, source=list(map(str, FOLDERS)))
        self.durations_s: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_sessionstart(self) -> None:
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        began_s = time.process_time()
        try:
            return (yield)
        finally:
            self.durations_s[item.nodeid] = time.process_time() - began_s
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def result(self) -> Measured:
        self.coverage.stop()
        tests = list(self.durations_s)
        indexes = {test: index for index, test in enumerate(tests)}
        data = self.coverage.get_data()
        lines = {
            Path(file).relative_to(ROOT).as_posix(): {
                line: [indexes[test] for test in ran if test in indexes]
                for line, ran in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        return Measured(digest(), tests, list(self.durations_s.values()), lines)


def digest() -> str:
    """Return a digest of all files that determine the lines of each test."""
    paths = [*ROOT.glob("amqp_broker/**/*.py"), *ROOT.glob("tests/*.py"), *ROOT.glob("tests/simulation/*.py")]
    paths += [path for name in CORE for path in (ROOT / name).rglob("*.py")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(set(paths)))).hexdigest()


def measure() -> None:
    """Run the core tests and store the measurement. Raise SystemExit if a test fails."""
    measuring = Measuring()
    pytest.main([*CORE, "-p", "no:cacheprovider"], plugins=[measuring])
    if measuring.failed or not measuring.durations_s:
        raise SystemExit(f"The tests must pass before mutants mean anything: {measuring.failed}")
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "lines.json").write_bytes(msgspec.json.encode(measuring.result()))


def last() -> Measured | None:
    """Return the last measurement if it is still valid."""
    try:
        measured = msgspec.json.decode((CACHE / "lines.json").read_bytes(), type=Measured)
    except FileNotFoundError:
        return None
    return measured if measured.digest == digest() else None
