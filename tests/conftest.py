"""Property tests run the same examples every time; HYPOTHESIS_PROFILE=explore looks for new ones.

Programs that tests start hear Ctrl-C, also where a shell that put the tests into the background has it ignored.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# An application with tests of its own, which tests/testing runs against a broker.
collect_ignore = ["sample_app"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


BROKERS = pytest.StashKey[set[threading.Thread]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BROKERS] = {thread for thread in threading.enumerate() if thread.name == "amqp-broker"}


@pytest.fixture
def caplog(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Without what brokers log that ran before the test: their other clients, Spark's for one, end when they like."""
    others = request.node.stash[BROKERS]

    def is_ours(record: logging.LogRecord) -> bool:
        return threading.current_thread() not in others

    caplog.handler.addFilter(is_ours)
    yield caplog
    caplog.handler.removeFilter(is_ours)
