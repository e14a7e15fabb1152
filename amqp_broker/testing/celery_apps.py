"""Celery applications in tests: they send and work in the vhost of a test.

An application keeps its connections for all tests, and with them the vhost of the first, which is deleted by then: each
later task would be refused (530) and tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

# Celery prefers these variables to its configuration.
VARIABLES: Final = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")

# Between two looks of a worker whether to end.
LOOK_INTERVAL_S: Final = 0.05


class CeleryApps:
    """The applications of a test. The worker processes that it starts inherit the vhost."""

    def __init__(self, url: str, environment: pytest.MonkeyPatch) -> None:
        for name in VARIABLES:
            environment.setenv(name, url)
        self._apps: list[Any] = []

    def __call__(self, app: Any) -> Any:
        """Let a Celery application use the vhost until the end of the test, and return it."""
        if app not in self._apps:
            forget_connections(app)
            self._apps.append(app)
        return app

    @contextmanager
    def worker(self, app: Any, **options: Any) -> Iterator[Any]:
        """Run a worker of an application in a thread of its own, with options of Celery's `start_worker`.

        It consumes when the block begins, and has finished its task when the block ends.
        """
        from celery.contrib.testing.worker import TestWorkController, start_worker

        class Worker(TestWorkController):  # type: ignore[misc]
            """Looks often whether to end; Celery's own waits for a timer or a message, longer than ten seconds."""

            def on_consumer_ready(self, consumer: Any) -> None:
                super().on_consumer_ready(consumer)
                consumer.timer.call_repeatedly(LOOK_INTERVAL_S, lambda: None)

        with start_worker(self(app), **{"perform_ping_check": False, "WorkController": Worker, **options}) as worker:
            yield worker

    def close(self) -> None:
        """Close the connections of all applications."""
        while self._apps:
            forget_connections(self._apps.pop())


def forget_connections(app: Any) -> None:
    """Close the connections that a Celery application has cached, and those of its results."""
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
