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


def test_each_test_leaves_the_rules_as_it_found_them_and_a_running_clock(suite: Suite) -> None:
    tests = """
@pytest.fixture(scope="module")
def stopped_time(amqp_broker):
    amqp_broker.clock.freeze()
    rule = amqp_broker.faults.add("confirm_drop", routing_key="of the module")
    yield
    amqp_broker.faults.remove(rule)

@pytest.fixture(scope="session")
def dynamic(request):
    request.getfixturevalue("amqp_broker").faults.add("confirm_drop", routing_key="of the session")

@pytest.fixture
def of_a_test(amqp_broker):
    amqp_broker.faults.add("confirm_drop", routing_key="of a fixture")

def state(broker):
    keys = broker.ask(lambda server: [rule.routing_key for rule in server.broker.faults])
    return keys, broker.ask(lambda server: server.clock.is_frozen)

@pytest.mark.parametrize("number", range(2))
def test_without_a_vhost(amqp_broker, of_a_test, number):
    assert state(amqp_broker) == (["of a fixture"], False)
    amqp_broker.faults.add("confirm_nack")
    amqp_broker.clock.freeze()

@pytest.mark.parametrize("number", range(2))
def test_of_a_version(amqp_vhost, number):
    assert state(amqp_vhost.broker) == ([], False)
    amqp_vhost.broker.faults.add("confirm_nack")
    amqp_vhost.broker.clock.freeze()

test_of_a_version = pytest.mark.amqp_compat("4.3")(test_of_a_version)

@pytest.mark.parametrize("number", range(2))
def test_of_a_module(amqp_url, amqp_broker, stopped_time, number):
    assert state(amqp_broker) == (["of the module"], True)
    amqp_broker.faults.add("confirm_nack")

def test_of_a_session(amqp_vhost, stopped_time, request, amqp_broker):
    amqp_broker.faults.add("confirm_nack")
    request.getfixturevalue("dynamic")
"""
    later = """
def test_later(amqp_broker):
    keys = amqp_broker.ask(lambda server: [rule.routing_key for rule in server.broker.faults])
    assert keys == ["of the session"]
    assert amqp_broker.ask(lambda server: server.clock.is_frozen)
"""
    suite.pytester.makepyfile(test_later=later)
    suite.run(tests).assert_outcomes(passed=8)
