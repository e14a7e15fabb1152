from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from celery import Celery

from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.celery_apps import VARIABLES, CeleryApps
from tests.testing.user_suites import Suite

pytest_plugins = ["pytester"]

app = Celery("shop", broker="amqp://rabbit.example.com", backend="rpc://", set_as_current=False)


@app.task  # type: ignore[untyped-decorator]
def charge(order: str) -> str:
    return f"charged {order}"


EVENTS: dict[str, threading.Event] = {}


@app.task  # type: ignore[untyped-decorator]
def wait() -> None:
    EVENTS["began"].set()
    EVENTS["ends"].wait(30)


other = Celery("other", broker="amqp://rabbit.example.com", set_as_current=False)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def apps(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[CeleryApps]:
    with broker.vhost(warns=False) as vhost:
        apps = CeleryApps(vhost.url, monkeypatch)
        yield apps
        apps.close()
    assert vhost.leaks == []


def test_all_applications_of_modules_send_to_the_vhost_of_each_test(broker: EmbeddedBroker) -> None:
    for _ in range(3):
        with broker.vhost(warns=False) as vhost, pytest.MonkeyPatch.context() as environment:
            apps = CeleryApps(vhost.url, environment)
            charge.delay("1")
            other.send_task("another", queue="others")
            assert (vhost.depth("celery"), vhost.depth("others")) == (1, 1)
            apps.close()
        assert vhost.leaks == []


@pytest.mark.parametrize("order", ["1", "2"])
def test_a_worker_does_a_task_and_returns_its_result(apps: CeleryApps, order: str) -> None:
    with apps.worker(app):
        assert charge.delay(order).get(timeout=30) == f"charged {order}"


def test_a_worker_takes_the_options_of_celery(apps: CeleryApps) -> None:
    with apps.worker(app, pool="threads", concurrency=2) as worker:
        assert worker.concurrency == 2
        assert charge.delay("1").get(timeout=30) == "charged 1"


def test_a_second_worker_at_the_same_time_is_refused(apps: CeleryApps) -> None:
    with apps.worker(app), pytest.raises(RuntimeError, match="start a second one as a process"), apps.worker(other):
        pass
    with apps.worker(other):
        pass


def test_a_worker_limited_to_a_queue_does_not_limit_the_next_one(apps: CeleryApps) -> None:
    with apps.worker(app, queues=["others"]):
        pass
    apps.close()
    with apps.worker(app):
        assert charge.delay("1").get(timeout=30) == "charged 1"


def end_too_early(apps: CeleryApps) -> None:
    with apps.worker(app, shutdown_timeout=0.1):
        wait.delay()
        EVENTS["began"].wait(30)


def test_a_task_that_outlasts_its_worker_harms_no_other(broker: EmbeddedBroker) -> None:
    EVENTS.update(began=threading.Event(), ends=threading.Event())
    with broker.vhost(warns=False) as vhost, pytest.MonkeyPatch.context() as environment:
        apps = CeleryApps(vhost.url, environment)
        with pytest.raises(RuntimeError, match="failed to exit"):
            end_too_early(apps)
        EVENTS["ends"].set()
        with apps.worker(app):
            assert charge.delay("1").get(timeout=30) == "charged 1"
        apps.close()


def test_a_worker_answers_a_ping_at_its_start(apps: CeleryApps) -> None:
    with apps.worker(app, perform_ping_check=True):
        pass


def test_processes_of_the_test_inherit_the_vhost(broker: EmbeddedBroker) -> None:
    before = {name: os.environ.get(name) for name in VARIABLES}
    with pytest.MonkeyPatch.context() as environment:
        CeleryApps(broker.url, environment)
        assert {os.environ[name] for name in VARIABLES} == {broker.url}
    assert {name: os.environ.get(name) for name in VARIABLES} == before


def test_the_fixture_is_there_without_an_import(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(pytester, monkeypatch)
    result = suite.run(
        """
from celery import Celery

app = Celery("shop", broker="amqp://rabbit.example.com")

@pytest.mark.parametrize("number", range(2))
def test_a_task_is_sent(amqp_celery, amqp_vhost, number):
    app.send_task("charge")
    assert amqp_vhost.depth("celery") == 1
""",
        "-W",
        "error::amqp_broker.testing.LeakWarning",
    )
    result.assert_outcomes(passed=2)
