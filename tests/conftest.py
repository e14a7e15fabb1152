"""Property tests run the same examples every time; HYPOTHESIS_PROFILE=quick runs fewer, =explore new ones.

Programs that tests start obey Ctrl-C, even if a shell ignores it for tests in the background.

Except on Windows, the folder of a broker without `data_dir` is one of the test process, and a test that writes there
fails: for a user, it would be their own store.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# An application with tests of its own, which tests/testing runs against a broker.
collect_ignore = ["sample_app"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
REPEATABLE = settings(COMMON, derandomize=True, database=None)
settings.register_profile("repeatable", REPEATABLE)
settings.register_profile("quick", REPEATABLE, max_examples=10, stateful_step_count=20)
settings.register_profile("explore", COMMON, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


BROKERS = pytest.StashKey[set[threading.Thread]]()
DATA_HOME = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[DATA_HOME] = Path(tempfile.mkdtemp(prefix="data-home-"))
    os.environ["XDG_DATA_HOME"] = str(config.stash[DATA_HOME])


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[DATA_HOME], ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    users_folder = item.config.stash[DATA_HOME] / "amqp-broker"
    if users_folder.exists():
        shutil.rmtree(users_folder)
        pytest.fail("a broker of this test has no folder of its own: it wrote to the user's")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BROKERS] = {thread for thread in threading.enumerate() if thread.name == "amqp-broker"}


@pytest.fixture
def caplog(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Ignore logs of brokers that ran before the test: their clients, for example Spark's, end late."""
    others = request.node.stash[BROKERS]

    def is_ours(record: logging.LogRecord) -> bool:
        return threading.current_thread() not in others

    caplog.handler.addFilter(is_ours)
    yield caplog
    caplog.handler.removeFilter(is_ours)
