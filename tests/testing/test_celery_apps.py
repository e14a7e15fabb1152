from __future__ import annotations

import os
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


def test_an_application_of_a_module_sends_to_the_vhost_of_each_test(broker: EmbeddedBroker) -> None:
    for _ in range(3):
        with broker.vhost() as vhost, pytest.MonkeyPatch.context() as environment:
            apps = CeleryApps(vhost.url, environment)
            assert apps(app) is apps(app) is app
            charge.delay("1")
            assert vhost.depth("celery") == 1
            apps.close()


@pytest.mark.parametrize("order", ["1", "2"])
def test_a_worker_does_a_task_and_returns_its_result(apps: CeleryApps, order: str) -> None:
    with apps.worker(app):
        assert charge.delay(order).get(timeout=30) == f"charged {order}"


def test_a_worker_takes_the_options_of_celery(apps: CeleryApps) -> None:
    with apps.worker(app, pool="threads", concurrency=2) as worker:
        assert worker.concurrency == 2
        assert charge.delay("1").get(timeout=30) == "charged 1"


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
    amqp_celery(app).send_task("charge")
    assert amqp_vhost.depth("celery") == 1
""",
        "-W",
        "error::amqp_broker.testing.LeakWarning",
    )
    result.assert_outcomes(passed=2)
