from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.user_suites import Suite

pytest_plugins = ["pytester"]

# One test fails with a message that no queue gets; another passes.
TESTS = """
def publish(url, key):
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        channel.basic_publish("", key, b"order 1")

def test_lost(amqp_url, amqp_vhost):
    publish(amqp_url, "order")
    assert amqp_vhost.depth("orders") == 1, "an order is missing"

def test_kept(amqp_url, amqp_vhost):
    publish(amqp_url, "orders")
    assert amqp_vhost.depth("orders") == 1
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)


def page_of(suite: Suite) -> str:
    return (suite.pytester.path / "report.html").read_text("utf-8")


def test_the_page_has_each_failed_test_with_its_assertion_and_messages(suite: Suite) -> None:
    result = suite.run(TESTS, "--amqp-report=report.html")
    result.assert_outcomes(failed=1, passed=1)
    path = suite.pytester.path / "report.html"
    result.stdout.fnmatch_lines([f"amqp-broker: a page about 1 failed test with a broker is in {path}"])
    page = page_of(suite)
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["test_it.py::test_lost"]
    assert "AssertionError: an order is missing" in page
    assert "No queue was bound with the key &#x27;order&#x27;: did you mean &#x27;orders&#x27;?" in page
    # As in the text of the terminal.
    assert "<b>Message 1</b>" in page


def test_workers_send_their_parts_of_the_page(suite: Suite) -> None:
    tests = TESTS.replace("test_kept", "test_other").replace('publish(amqp_url, "orders")', "pass")
    suite.run(tests, "--amqp-report=report.html", "-n", "2").assert_outcomes(failed=2)
    assert sorted(re.findall(r"<h2>(.*?)</h2>", page_of(suite))) == ["test_it.py::test_lost", "test_it.py::test_other"]


def test_the_page_has_the_numbers_of_the_log_and_the_moves_of_the_clock(suite: Suite) -> None:
    tests = f"""{TESTS}
from amqp_broker.testing import Criteria

def test_later(amqp_broker, amqp_url, amqp_vhost):
    publish(amqp_url, "orders")
    amqp_broker.clock.advance("30m")
    assert amqp_vhost.event_log().matching(Criteria())[0].number != 2
"""
    suite.run(tests, "--amqp-report=report.html", "-k", "not lost").assert_outcomes(failed=1, passed=1)
    assert "<b>Message 2</b>" in page_of(suite)
    assert "The clock was moved by 30 min;" in page_of(suite)


def test_a_failed_setup_and_captured_output_are_shown(suite: Suite) -> None:
    tests = """
@pytest.fixture
def client(amqp_url):
    print("printed by the fixture")
    raise ValueError("no client")

def test_it(client):
    pass
"""
    suite.run(tests, "--amqp-report=report.html").assert_outcomes(errors=1)
    assert "ValueError: no client" in page_of(suite)
    assert "printed by the fixture" in page_of(suite)


def test_a_run_without_failures_removes_the_page_of_an_earlier_one(suite: Suite) -> None:
    suite.run(TESTS, "--amqp-report=report.html").assert_outcomes(failed=1, passed=1)
    suite.run("", "--amqp-report=report.html", "-k", "kept").assert_outcomes(passed=1)
    assert not (suite.pytester.path / "report.html").exists()


def test_the_file_may_be_named_by_the_environment_or_the_ini_file(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMQP_REPORT", "reports/of-run.html")
    suite.run(TESTS).assert_outcomes(failed=1, passed=1)
    assert (suite.pytester.path / "reports/of-run.html").exists()
    monkeypatch.delenv("AMQP_REPORT")
    suite.run("", "-o", "amqp_report=report.html").assert_outcomes(failed=1, passed=1)
    assert "test_lost" in page_of(suite)


def test_a_run_that_tested_nothing_keeps_the_page(suite: Suite) -> None:
    suite.run(TESTS, "--amqp-report=report.html")
    for options in (["--collect-only"], ["-k", "none"], ["missing.py"]):
        suite.run("", "--amqp-report=report.html", *options)
        assert "test_lost" in page_of(suite)


def test_a_vhost_that_is_gone_is_said_to_be_and_the_other_tests_run(suite: Suite) -> None:
    tests = f"""{TESTS}
def test_deleted(amqp_broker, amqp_vhost):
    amqp_broker.ask(lambda server: server.broker.delete_vhost(amqp_vhost.name))
    assert False

@pytest.mark.amqp_definitions("missing.json")
def test_marked(amqp_vhost):
    pass

def test_after(amqp_url):
    pass
"""
    suite.run(tests, "--amqp-report=report.html").assert_outcomes(failed=2, passed=2, errors=1)
    assert page_of(suite).count("The messages cannot be shown: Virtual host &#x27;test-") == 2


def test_a_failed_teardown_is_on_the_page(suite: Suite) -> None:
    tests = """
def test_it(amqp_url, request):
    request.config.connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
"""
    suite.run(tests, "--amqp-report=report.html", "--amqp-broker-leaks=fail").assert_outcomes(passed=1, errors=1)
    assert "the test left open:" in page_of(suite)


def test_a_file_that_cannot_be_written_is_an_error_before_any_test(suite: Suite) -> None:
    (suite.pytester.path / "report.html").mkdir()
    result = suite.run(TESTS, "--amqp-report=report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: amqp-report: cannot write report.html: it is a folder"])


def test_another_file_is_not_overwritten(suite: Suite) -> None:
    result = suite.run(TESTS, "--amqp-report", "test_it.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: amqp-report: cannot write test_it.py: it exists, and is no report*"])
    assert (suite.pytester.path / "test_it.py").read_text("utf-8").startswith("import pika")


def test_failures_without_a_broker_and_without_the_option_leave_no_page(suite: Suite) -> None:
    suite.run("def test_it():\n    assert False\n", "--amqp-report=report.html").assert_outcomes(failed=1)
    assert [path for path in suite.pytester.path.iterdir() if path.suffix == ".html"] == []
    suite.run(TESTS).assert_outcomes(failed=1, passed=1)
    assert [path for path in Path(suite.pytester.path).iterdir() if path.suffix == ".html"] == []
