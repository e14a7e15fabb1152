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
# With `--day`, as in CI: the number of days of which one runs a test. Other tests of `make test` run on each day.
DAYS: dict[int, tuple[str, ...]] = {
    3: (
        "compat/aio_pika/test_faults.py",
        "compat/celery/",
        "compat/duel/",
        "compat/go/",
        "compat/oracle/test_profiles.py",
        "compat/pika/test_faults.py",
        "tests/cli/own/test_conformance.py",
        "tests/cli/own/test_demo.py",
        "tests/cli/own/test_pipeline.py",
        "tests/cli/own/test_run.py",
        "tests/demo/",
        "tests/docs/test_cookbook_page.py",
        "tests/docs/test_pages.py",
        "tests/growth/",
        "tests/management/documents/",
        "tests/management/http/test_connection_aborted.py",
        "tests/management/page/test_admin_script.py",
        "tests/pipeline/",
        "tests/properties/",
        "tests/pyspark_amqp/",
        "tests/readback/",
        "tests/testing/",
    ),
}
# Of the tests that run with the compiled modules, too.
DAYS_COMPILED: dict[int, tuple[str, ...]] = {3: ("tests/management/",)}
# The same of `make verify`, whose other tests run on one of nine days. All but the first are multiples of three.
DAYS_OF_VERIFY: dict[int, tuple[str, ...]] = {
    # They play at one RabbitMQ each.
    2: ("compat/duel/test_random_programs.py",),
    27: (
        "compat/applications/test_applications.py",
        "compat/differential/test_conformance.py",
        "compat/oracle/test_profiles.py",
        "compat/oracle/test_records.py::test_an_oracle_still_answers_as_recorded[ctl-",
        "compat/oracles/",
        "tests/docs/test_examples.py",
        "tests/docs/test_pages.py",
        "tests/fuzzing/test_guided.py",
        "tests/package/",
        "tests/simulation/test_planted_bugs.py",
        "tests/store/test_checkpoint.py",
        "tests/store/test_salvage.py",
    ),
    81: (
        "tests/pipeline/",
        "tests/pyspark_amqp/",
    ),
}
# Tests of `make verify` in one place share what is slow to start: Spark, a browser, RabbitMQs. Each day runs those of a
# third of the places. These take longest, and are in turn in one of the thirds.
PLACES = (
    *("Spark", "compat/oracle", "tests/page"),
    *("tests/container", "compat/duel", "tests/simulation"),
    *("compat/ctl", "tests/torture", "tests/growth"),
)
# Tests that no day has, since each takes minutes of both processors: AiiDA, and an image, Kubernetes and the suites of
# Go, which are built from their sources.
WHOLE_ONLY = (
    "compat/applications/dapr/",
    "compat/applications/go_cdk/",
    "compat/applications/test_applications.py::test_an_application_works_here_as_at_rabbitmq[aiida]",
    "tests/container/test_dockerfile.py",
    "tests/pyspark_amqp/test_shipping_kubernetes.py",
)
# A folder of which no day collects anything: Ansible plays for minutes.
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
    parser.addoption("--day", type=int, metavar="N", help="run a part of the long tests, another one each day")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and tests in each, in this random order")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the coverage of tests, not of the processes that they start and kill."""
    if hasattr(config, "workerinput"):
        os.environ.pop("COVERAGE_PROCESS_START", None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without a test for this run: some need large libraries."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    if config.getoption("day") is not None and path == WHOLE_ONLY_FOLDER:
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


def days_of(item: pytest.Item) -> int:
    """Return the number of days of which one runs a test."""
    if item.get_closest_marker("verify") is not None:
        table, others = DAYS_OF_VERIFY, 9
    else:
        table, others = (DAYS_COMPILED if os.environ.get("AMQP_BROKER_COMPILED") else DAYS), 1
    return next((days for days, prefixes in table.items() if item.nodeid.startswith(prefixes)), others)


def place_of(nodeid: str) -> str:
    """Return the place of a test of `make verify`: a folder, or Spark."""
    return "Spark" if nodeid.startswith(SPARK) else "/".join(nodeid.split("/")[:2])


def of_day(items: list[pytest.Item], day: int) -> list[pytest.Item]:
    """Return the tests that run on a day.

    Many tests of a place run once per version of RabbitMQ, one after another: a day has one version.
    """
    places = {place: number for number, place in enumerate(PLACES)}
    numbers: dict[str, count[int]] = {}
    chosen: list[pytest.Item] = []
    for item in items:
        days, turn = days_of(item), day
        if days % 3 == 0 and item.get_closest_marker("verify") is not None:
            place = place_of(item.nodeid)
            file = item.nodeid.partition("::")[0]
            number = next(numbers.setdefault(file, count(3 * len(numbers))))
            # On every third day, one of the others of these tests.
            is_place = places.setdefault(place, len(places)) % 3 == day % 3
            days, turn = days // 3, day // 3
        else:
            number, is_place = next(numbers.setdefault("", count())), True
        if is_place and not item.nodeid.startswith(WHOLE_ONLY) and (number - turn) % days == 0:
            chosen.append(item)
    return chosen


@pytest.fixture(scope="session")
def day(pytestconfig: pytest.Config) -> int | None:
    """Provide the number of the day of which a part of the tests run; None if all run."""
    number: int | None = pytestconfig.getoption("day")
    return number


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    mark(items)
    # Other plugins leave out what the marks and names exclude.
    result = yield
    day = config.getoption("day")
    if day is not None:
        chosen = of_day(items, day)
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
