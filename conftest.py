"""Tests that only `make verify` runs, and the distribution of tests over workers.

The longest start first, and tests that share an expensive fixture run on one worker. The groups of xdist cannot express
this: xdist writes them into the ids of tests, which pytest 9.2 forbids.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.turns import turn_of_today

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

# Tests that a machine may not be able to run, or that take minutes. Single tests elsewhere have the mark `verify`.
VERIFY = (
    # A browser.
    "tests/page/",
    # Linux's namespaces, and root.
    "tests/container/test_dockerfile.py",
    "tests/container/test_image.py",
    "tests/container/test_monitoring.py",
    "tests/container/test_testcontainers.py",
    # Packages from the index.
    "tests/package/",
    # Clones, each with a make of its own.
    "tests/environments/test_environments.py",
    # A C compiler.
    "tests/bench/test_generator.py",
    "tests/bench/test_managed.py",
    "tests/torture/test_power_cuts.py",
    # The library that draws charts.
    "tests/bench/test_page.py",
    "tests/bench/test_shapes.py",
    # A Spark in processes of its own.
    "tests/docs/test_examples.py",
    "tests/docs/test_pages.py::test_examples_of_a_page_work[pipeline]",
    "tests/docs/test_pages.py::test_examples_of_a_page_work[spark]",
    "tests/docs/test_pages.py::test_examples_of_a_page_work[spark-recipes]",
    "tests/pipeline/test_report_page.py",
    "tests/pipeline/test_spark_session.py",
    "tests/pyspark_amqp/test_shipping_cluster.py",
    "tests/pyspark_amqp/test_shipping_kubernetes.py",
    "tests/pyspark_amqp/test_shipping_yarn.py",
    "tests/pyspark_amqp/test_data_source.py::test_a_spark_killed_between_batches_resumes",
    # Minutes of one processor.
    "compat/duel/test_duel.py::test_a_planted_bug_is_found_and_shown_by_a_small_scenario",
    "compat/management_admin/test_any_request.py",
    "tests/docs/test_pages.py::test_examples_of_a_page_work[conformance]",
    "tests/simulation/test_planted_bugs.py",
    "tests/store/test_pages.py::test_no_damage_ends_the_process",
    "tests/torture/test_failing_disk.py",
    "tests/torture/test_full_disk.py",
    "tests/torture/test_torture.py",
)
# Files whose tests use thousands of messages for each type of queue, or have hundreds of cases. `make coverage` runs
# the first case of each test: the others would take half of the time.
MANY_MESSAGES = (
    "tests/broker/lab/test_fault_injector_places.py",
    "tests/broker/queues/test_giving_up.py",
    "tests/broker/routing/test_dead_lettering.py",
    "tests/broker/routing/test_refused_letters.py",
    "tests/session/channel/test_acks.py",
    "tests/session/channel/test_returning_portions.py",
    "tests/session/connection/test_ack_timeouts.py",
    "tests/session/methods/test_transactions_portions.py",
)
# Files with tests that take long. With a third of `make verify`, as in CI, each of them runs on one of nine days.
NINTH = (
    "compat/duel/test_duel.py",
    "compat/duel/test_planted_bugs.py",
    "compat/fixtures/",
    "compat/shovel/",
    "tests/bench/",
    "tests/container/",
    "tests/environments/",
    "tests/management/http/test_connection_aborted.py",
    "tests/page/",
    "tests/simulation/test_planted_bugs.py",
    "tests/soak/",
    "tests/torture/",
)
# Files with tests that take longest, each on one of 27 days.
MONTHLY = (
    "compat/applications/test_applications.py",
    "compat/differential/test_conformance.py",
    "compat/oracle/test_profiles.py",
    "compat/oracles/",
    "tests/docs/test_examples.py",
    "tests/docs/test_pages.py",
    "tests/fuzzing/test_guided.py",
    "tests/package/",
    "tests/pipeline/",
    "tests/pyspark_amqp/",
    "tests/store/test_checkpoint.py",
    "tests/store/test_salvage.py",
)
# Files of `make test` of which CI runs a third of the tests.
THIRD_OF_TEST = (
    "compat/oracle/test_profiles.py",
    "tests/docs/test_pages.py",
    "tests/growth/",
)
# Tests that a third of `make verify`, as in CI, leaves out, since each takes minutes of both processors: AiiDA, and an
# image, Kubernetes and the suites of Go, which are built from their sources.
WHOLE_ONLY = (
    "compat/applications/dapr/",
    "compat/applications/go_cdk/",
    "compat/applications/test_applications.py::test_an_application_works_here_as_at_rabbitmq[aiida]",
    "tests/container/test_dockerfile.py",
    "tests/pyspark_amqp/test_shipping_kubernetes.py",
)
# Of these tests, each third runs every other one.
HALF = "compat/duel/test_random_programs.py"
# A folder that a third does not even collect: Ansible plays for minutes.
WHOLE_ONLY_FOLDER = "compat/ansible"
# The one test of Spark that `make test` has.
SMOKE = "tests/pyspark_amqp/test_data_source.py::test_a_batch_is_a_table[amqp_broker]"

# The tests that use the Spark of the session.
SPARK = ("tests/pyspark_amqp/", "tests/pipeline/", "tests/docs/test_examples.py")
# Limit of tests with Spark, and of those that `make verify` runs, unless they have their own. An interrupted call to
# Spark leaves its answer to the next call, and all later tests fail. So only a call that hangs may be interrupted, not
# one that is slow because other programs use the machine.
LONG_TIMEOUT_S = 900
# Files that take many minutes and whose tests share nothing expensive: each test is a unit.
APART = (
    "compat/applications/",
    "compat/oracle/",
    "tests/docs/test_pages.py",
    "tests/fuzzing/test_guided.py",
    "tests/simulation/",
)
# Tests that start first, in this order, because they take longest.
LONG = (
    *SPARK,
    "tests/container/",
    "tests/page/",
    "compat/oracle/test_records.py",
    "compat/oracle/",
    "tests/docs/test_pages.py",
    "compat/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and tests in each, in this random order")
    parser.addoption("--long-third", type=int, choices=range(3), help="run a third of the long tests, and all others")
    parser.addoption("--third", type=int, choices=range(3), help="run a third of the tests: one of each three, in turn")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the coverage of tests, not of the processes that they start and kill."""
    if hasattr(config, "workerinput"):
        os.environ.pop("COVERAGE_PROCESS_START", None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without a test for this run: some need large libraries."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    if config.getoption("third") is not None and path == WHOLE_ONLY_FOLDER:
        return True
    if config.getoption("markexpr") == "not verify":
        return True if f"{path}/" in VERIFY or path in VERIFY else None
    if config.getoption("markexpr") == "verify" and collection_path.name.startswith("test_"):
        return None if may_verify(path, collection_path.read_text("utf-8")) else True
    return None


def may_verify(path: str, source: str) -> bool:
    """Return whether a file may have a test with the mark `verify`: its own, that of a list, or because of Spark."""
    is_named = path.startswith((*VERIFY, *SPARK)) or any(prefix.startswith(f"{path}::") for prefix in VERIFY)
    return is_named or "verify" in source or "spark" in source


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without collecting garbage, which looks at each test again and again; afterwards, too."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffle files, and tests in each file. Tests of a file stay together, because they share fixtures."""
    chance = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    shuffled = list(files.values())
    chance.shuffle(shuffled)
    for tests in shuffled:
        chance.shuffle(tests)
    items[:] = [item for tests in shuffled for item in tests]


def third_of(number: int) -> int:
    """Return the third that runs a test by its number: 0, 1, 2, then 1, 2, 0, then 2, 0, 1.

    Many tests run once per version of RabbitMQ, one after another. By `number % 3` one third would ask the slowest
    version everything.
    """
    return (number + number // 3) % 3


def is_in_third(item: pytest.Item, number: int, third: int) -> bool:
    marked = item.get_closest_marker("turn")
    return third_of(number) == third and (marked is None or marked.args == (turn_of_today(),))


def is_of_today(number: int, days: int, third: int) -> bool:
    """Return whether a third of today runs a test, by its number among those of NINTH or MONTHLY."""
    return number % days == (third + 3 * turn_of_today()) % days


def of_third(items: list[pytest.Item], third: int) -> list[pytest.Item]:
    """Return the tests that a third of today runs."""
    ninth, monthly, halved = count(), count(), count()
    # The first test of a file has a multiple of three: so each third asks one of three versions.
    others: dict[str, count[int]] = {}
    chosen: list[pytest.Item] = []
    for item in items:
        has_turn = item.get_closest_marker("turn") is not None
        if item.nodeid.startswith(WHOLE_ONLY):
            is_chosen = False
        elif item.nodeid.startswith(HALF):
            is_chosen = next(halved) % 2 == third % 2
        elif item.nodeid.startswith(MONTHLY) and not has_turn:
            is_chosen = is_of_today(next(monthly), 27, third)
        elif item.nodeid.startswith(NINTH) and not has_turn:
            is_chosen = is_of_today(next(ninth), 9, third)
        else:
            file = item.nodeid.partition("::")[0]
            is_chosen = is_in_third(item, next(others.setdefault(file, count(3 * len(others)))), third)
        if is_chosen:
            chosen.append(item)
    return chosen


def of_long_third(items: list[pytest.Item], third: int) -> list[pytest.Item]:
    """Return a third of the long tests of `make test`, and all others."""
    numbers = count()
    return [item for item in items if not item.nodeid.startswith(THIRD_OF_TEST) or next(numbers) % 3 == third]


@pytest.fixture(scope="session")
def turn(pytestconfig: pytest.Config) -> int | None:
    """Provide the turn of a run of a third of the tests; None if all run."""
    return None if pytestconfig.getoption("third") is None else turn_of_today()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    mark(items)
    # Other plugins leave out what the marks and names exclude.
    result = yield
    third, long_third = config.getoption("third"), config.getoption("long_third")
    if third is not None or long_third is not None:
        chosen = of_long_third(items, long_third) if third is None else of_third(items, third)
        selected = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in selected])
        items[:] = chosen
    seed = config.getoption("shuffle")
    if seed is not None:
        shuffle(items, seed)
    elif hasattr(config, "workerinput"):
        items.sort(key=lambda item: next((n for n, part in enumerate(LONG) if item.nodeid.startswith(part)), len(LONG)))
    return result


def mark(items: list[pytest.Item]) -> None:
    """Give tests their marks: of `make verify`, limits of time, and those that `make coverage` leaves out."""
    covered = set[str]()
    for item in items:
        name = item.nodeid.partition("[")[0]
        # Where the mark `interpreted` is, the compiled modules do not run the other cases.
        is_interpreted = item.get_closest_marker("interpreted") is not None
        if item.nodeid.startswith(MANY_MESSAGES) and name in covered and not is_interpreted:
            item.add_marker("uncovered")
        covered.add(name)
        needs_spark = "spark" in getattr(item, "fixturenames", ())
        if item.nodeid.startswith(VERIFY) or (needs_spark and item.nodeid != SMOKE):
            item.add_marker("verify")
        is_long = needs_spark or item.get_closest_marker("verify") is not None
        if is_long and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))


def scope_of(nodeid: str) -> str:
    """Return the unit that runs on one worker: a test, a file, or a folder with an expensive fixture."""
    file = nodeid.partition("::")[0]
    if file.startswith(APART):
        return nodeid
    if file.startswith(SPARK):
        return "Spark"
    is_folder = file.startswith(("compat/", "tests/page/", "tests/container/"))
    return file.rpartition("/")[0] if is_folder else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    # In the order of collection instead of by number of tests.
    config.option.loadscopereorder = False
    return Together(config, log)
