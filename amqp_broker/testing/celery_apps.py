"""Celery applications in tests: they send and work in the vhost of a test.

An application keeps its connections for all tests, and with them the vhost of the first, which is deleted by then: each
later task would be refused (530) and tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pytest

# Celery prefers these variables to its configuration.
VARIABLES: Final = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")
# Between two looks of a worker whether to end.
LOOK_INTERVAL_S: Final = 0.05
# The time that a task has left when its worker is to end.
SHUTDOWN_S: Final = 60.0


class CeleryApps:
    """All applications of the process during a test. The worker processes that it starts inherit the vhost."""

    def __init__(self, url: str, environment: pytest.MonkeyPatch) -> None:
        for name in VARIABLES:
            environment.setenv(name, url)
        self._numbers = count(1)
        self._is_working = False
        forget_connections()

    @contextmanager
    def worker(self, app: Any, **options: Any) -> Iterator[Any]:
        """Run a worker of an application in a thread of its own, with options of Celery's `start_worker`.

        It consumes when the block begins, and has finished its task when the block ends. Raise RuntimeError for a
        second worker at the same time, and for a task that takes longer than `shutdown_timeout`, by default a minute.
        """
        if self._is_working:
            raise RuntimeError("Celery's workers share the state of a process: start a second one as a process")
        from celery.contrib.testing import tasks  # noqa: F401 -- the task of perform_ping_check
        from celery.contrib.testing.worker import TestWorkController, start_worker

        class Worker(TestWorkController):  # type: ignore[misc]
            """Looks often whether to end; Celery's own waits for a timer or a message, longer than ten seconds."""

            def on_consumer_ready(self, consumer: Any) -> None:
                super().on_consumer_ready(consumer)
                consumer.timer.call_repeatedly(LOOK_INTERVAL_S, lambda: None)

        usual = {
            # One that goes on would lock out another with its name.
            "hostname": f"worker-{next(self._numbers)}@test",
            "perform_ping_check": False,
            "shutdown_timeout": SHUTDOWN_S,
            "WorkController": Worker,
        }
        worker: Any = None
        self._is_working = True
        try:
            with start_worker(app, **{**usual, **options}) as worker:
                yield worker
        finally:
            self._is_working = False
            _end(worker)

    def close(self) -> None:
        """Close the connections of all applications."""
        forget_connections()


def _end(worker: Any) -> None:
    """Undo Celery's state of a worker that goes on: the next one would end at once, or wait for results."""
    from celery.result import _set_task_join_will_block
    from celery.worker import state
    from celery.worker.consumer.consumer import CLOSE
    from kombu.asynchronous import set_event_loop

    state.should_terminate = None
    set_event_loop(None)
    _set_task_join_will_block(False)
    if worker is not None and worker.consumer is not None:
        worker.consumer.blueprint.state = CLOSE


def forget_connections() -> None:
    """Close the connections that Celery applications have cached, and forget their queues and results."""
    from celery._state import _get_active_apps

    for app in list(_get_active_apps()):
        pool = app._pool
        results: Any = getattr(app._backend, "result_consumer", None)
        # Celery's own way to begin anew after a fork.
        app._after_fork()
        if pool is not None:
            pool.force_close_all()
        if getattr(results, "_connection", None) is not None:
            results.stop()
        app._backend_cache = None
        vars(app._local).pop("backend", None)
        # The queues that a worker was limited to, and those of an earlier configuration.
        vars(app).pop("amqp", None)
