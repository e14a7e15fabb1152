"""Leftovers of a test that the pytest plugin reports: connections, and fault rules that hit nothing."""

from __future__ import annotations

import pytest

from tests.testing.user_suites import Suite

pytest_plugins = ["pytester"]

# The list keeps the connection from the garbage collector, which would close it.
LEAKING = """
connections = []

def test_leaks(amqp_url):
    url = amqp_url + "?client_properties={'connection_name': 'my app'}"
    connections.append(pika.BlockingConnection(pika.URLParameters(url)))
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)


def test_leaks_are_ignored_warned_of_or_failures(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    result = suite.run(LEAKING)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*LeakWarning: connection 'my app' (127.0.0.1:*) of * is open"])
    suite.run("", "--amqp-broker-leaks=ignore").assert_outcomes(passed=1)
    result = suite.run("", "--amqp-broker-leaks=fail")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["the test left open:", "connection 'my app' *"])
    monkeypatch.setenv("AMQP_BROKER_LEAKS", "fail")
    suite.run().assert_outcomes(passed=1, errors=1)
    assert suite.run("", "--amqp-broker-leaks=nothing").ret == pytest.ExitCode.USAGE_ERROR


def test_unused_faults_are_ignored_warned_of_or_failures(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = """
@pytest.mark.amqp_fault("confirm_nack", routing_key="payed")
def test_one(amqp_url):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "paid", b"m")
"""
    sentence = "fault * (confirm_nack on publish, routing_key='payed') hit nothing: 1 publish had routing_key 'paid'"
    result = suite.run(tests)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines([f"*UnusedFaultWarning: {sentence}"])
    suite.run("", "--amqp-broker-unused-faults=ignore").assert_outcomes(passed=1)
    result = suite.run("", "--amqp-broker-unused-faults=fail")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([sentence])
    monkeypatch.setenv("AMQP_BROKER_UNUSED_FAULTS", "fail")
    suite.run().assert_outcomes(passed=1, errors=1)
    assert suite.run("", "--amqp-broker-unused-faults=nothing").ret == pytest.ExitCode.USAGE_ERROR


def test_the_ini_file_configures_leaks(suite: Suite) -> None:
    suite.pytester.makefile(".ini", pytest="[pytest]\namqp_broker_leaks = fail\n")
    suite.run(LEAKING).assert_outcomes(passed=1, errors=1)
