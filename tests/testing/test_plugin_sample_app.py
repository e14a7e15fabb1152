"""The test suite of an application passes with the embedded broker and with RabbitMQ."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat.oracles.rabbitmq import RabbitMQ
from tests.testing.user_suites import ROOT, Suite

pytest_plugins = ["pytester"]

APPLICATION = ROOT / "tests" / "sample_app"
TESTS = 13


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    for path in APPLICATION.glob("*.py"):
        shutil.copy(path, pytester.path)
    return Suite(pytester, monkeypatch)


def test_the_sample_application_passes_with_the_embedded_broker(suite: Suite) -> None:
    suite.run("", "-W", "error::amqp_broker.testing.LeakWarning").assert_outcomes(passed=TESTS)


def test_the_sample_application_gets_advice_only_for_its_habits(suite: Suite) -> None:
    result = suite.run("", "--amqp-fail-on-advice=all", "--show-capture=no")
    result.assert_outcomes(passed=TESTS, errors=2)
    result.stdout.re_match_lines(
        [
            r"_+ ERROR at teardown of test_an_order_that_fails_too_often_is_put_aside _+",
            r"the broker advises:",
            r"auto-ack: .* queue 'orders\.failed'",
            # Celery does not use confirms by default.
            r"_+ ERROR at teardown of test_invoices_are_written_by_a_worker _+",
            r"the broker advises:",
            r"no-confirms: .* client 'py-amqp'",
            r"=+ short test summary info =+",
        ],
        consecutive=True,
    )


@pytest.mark.verify
@pytest.mark.skipif(not RabbitMQ.is_installed(), reason="RabbitMQ is not installed")
def test_the_sample_application_passes_with_rabbitmq(suite: Suite, tmp_path: Path) -> None:
    rabbitmq = RabbitMQ(tmp_path, plugins=("rabbitmq_management",))
    rabbitmq.start()
    try:
        urls = (
            f"--amqp-broker-url={rabbitmq.url}",
            f"--amqp-broker-management-url=http://127.0.0.1:{rabbitmq.management_port}",
        )
        suite.run("", *urls).assert_outcomes(passed=TESTS)
    finally:
        rabbitmq.stop()
