from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.testing import EmbeddedBroker
from tests.testing.user_suites import ROOT, Suite

pytest_plugins = ["pytester"]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)


def test_each_test_has_a_vhost_of_its_own(suite: Suite) -> None:
    tests = """
@pytest.mark.parametrize("number", range(3))
def test_one(amqp_url, amqp_vhost, amqp_broker, number):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        assert channel.queue_declare("orders").method.message_count == 0
        channel.basic_publish("", "orders", b"m")
    assert amqp_vhost.depth("orders") == 1
    assert amqp_broker.ask(lambda server: len(server.broker.vhosts)) == 2

def test_afterwards(amqp_broker):
    assert amqp_broker.ask(lambda server: list(server.broker.vhosts)) == ["/"]
"""
    suite.run(tests, "-W", "error").assert_outcomes(passed=4)


def test_asyncio_tests_use_the_same_fixtures(suite: Suite) -> None:
    tests = """
import aio_pika

async def test_one(amqp_url, amqp_vhost):
    async with await aio_pika.connect_robust(amqp_url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("q")
        await channel.default_exchange.publish(aio_pika.Message(b"m"), "q")
        assert amqp_vhost.messages("q")[0].body == b"m"
"""
    suite.run(tests).assert_outcomes(passed=1)


def test_celery_runs_its_tasks_on_the_broker(suite: Suite) -> None:
    tests = """
from celery import Celery
from celery.contrib.testing.worker import start_worker

def test_task(amqp_url):
    app = Celery("shop", broker=amqp_url, backend="rpc://", set_as_current=False)

    @app.task(name="add")
    def add(x, y):
        return x + y

    with start_worker(app, pool="solo", perform_ping_check=False, without_heartbeat=False, shutdown_timeout=60):
        assert add.delay(1, 2).get(timeout=20) == 3
"""
    suite.run(tests).assert_outcomes(passed=1)


def test_an_overridden_fixture_changes_the_settings(suite: Suite) -> None:
    suite.pytester.makeconftest("""
import pytest

@pytest.fixture(scope="session")
def amqp_broker_config():
    return {"default_user": "anna", "default_pass": "p/w"}
""")
    tests = """
def test_one(amqp_url, amqp_broker_factory):
    assert amqp_url.startswith("amqp://anna:p%2Fw@")
    pika.BlockingConnection(pika.URLParameters(amqp_url)).close()
    other = amqp_broker_factory(compat="3.13")
    assert (other.version[:5], other.settings.default_user) == ("3.13.", "anna")
"""
    suite.run(tests).assert_outcomes(passed=1)


def test_the_url_of_the_http_api_is_a_fixture(suite: Suite) -> None:
    tests = """
def test_one(amqp_management_url, amqp_broker):
    assert amqp_management_url == f"http://guest:guest@127.0.0.1:{amqp_broker.server.ports['management']}"
"""
    suite.run(tests).assert_outcomes(passed=1)


def test_the_report_of_a_failure_shows_the_last_events(suite: Suite) -> None:
    tests = """
def test_one(amqp_url):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        channel.basic_publish("", "orders", b"first")
        channel.basic_get("orders", auto_ack=True)
    assert False
"""
    for options in ((), ("-n", "1")):
        result = suite.run(tests, *options)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "*- amqp -*",
                "*#1 publish *routing key 'orders' -> 'orders': b'first'",
                "*#1 deliver *queue 'orders' to *: b'first'",
            ]
        )


FAILING = """
from amqp_broker.testing import Criteria

def test_first(amqp_url):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        for number in range(30):
            channel.basic_publish("", "nowhere", str(number).encode())
    print("printed")
    assert False

def test_typo(amqp_url, amqp_vhost):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        connection.channel().queue_declare("orders")
        connection.channel().basic_publish("", "ordres", b"")
        amqp_vhost.event_log().wait(Criteria(queue="orders"), timeout_s=0)

def test_missing(amqp_url, amqp_vhost):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        connection.channel().queue_declare("orders")
        amqp_vhost.depth("ordres")

def test_of_a_file(amqp_vhost):
    amqp_vhost.replay("missing.jsonl")

def test_of_a_field(amqp_vhost):
    amqp_vhost.faults.add("confirm_nack", routingkey="orders")

def test_of_a_setting(amqp_vhost, amqp_broker_factory):
    amqp_broker_factory(prot=5)

def test_of_a_question(amqp_broker, amqp_vhost):
    def question(server):
        assert server is None
    amqp_broker.ask(question)
"""


def test_the_report_of_a_failure_is_short_and_first(suite: Suite) -> None:
    result = suite.run(FAILING, "-k", "first")
    text = result.stdout.str()
    assert text.index("- amqp -") < text.index("- Captured stdout call -")
    assert text.count(" publish  ") == 20
    result.stdout.fnmatch_lines(["(10 earlier events; pytest -v shows more)", "  #11 publish *: b'10'"])
    assert suite.run("", "-k", "first", "-v").stdout.str().count(" publish  ") == 30


def test_the_traceback_of_a_failure_ends_in_the_test(suite: Suite) -> None:
    result = suite.run(FAILING, "-k", "not first")
    assert "amqp_broker/testing" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "amqp_vhost = <EmbeddedVHost 'test-*', 'orders': 0 ready, 0 unacked>",
            "E  *1 wanted, 0 found: event publish, queue 'orders'",
            "*#1 publish * -> no queue (did you mean 'orders'?): b''",
            "E  *no queue 'ordres' in vhost *: did you mean 'orders'?",
            "E  *No such file or directory: 'missing.jsonl'",
            "E  *a fault has no field 'routingkey', but *",
            "E  *there is no setting 'prot'; did you mean 'port'?",
            ">  *assert server is None",
        ]
    )
    assert "amqp_broker/testing" in suite.run("", "-k", "missing", "--full-trace").stdout.str()


def test_a_passed_test_reports_nothing(suite: Suite) -> None:
    tests = "def test_one(amqp_url):\n    pass\n"
    assert "amqp -" not in suite.run(tests, "-rA").stdout.str()


def test_each_worker_of_xdist_has_a_broker_of_its_own(suite: Suite) -> None:
    tests = """
import os, pathlib

@pytest.mark.parametrize("number", range(20))
def test_one(amqp_url, amqp_broker, number):
    pathlib.Path(f"{os.environ['PYTEST_XDIST_WORKER']}-{amqp_broker.port}.port").touch()
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        assert connection.channel().queue_declare("q").method.message_count == 0
"""
    suite.run(tests, "-n", "2").assert_outcomes(passed=20)
    assert len(list(suite.pytester.path.glob("*.port"))) == 2


def test_a_hundred_tests_have_a_hundred_vhosts(suite: Suite) -> None:
    tests = """
@pytest.mark.parametrize("number", range(100))
def test_one(amqp_url, amqp_vhost, number, seen=set()):
    assert amqp_url not in seen
    seen.add(amqp_url)
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        connection.channel().queue_declare("q")
    assert list(amqp_vhost.queues()) == ["q"]
"""
    suite.run(tests, "-W", "error").assert_outcomes(passed=100)


def test_the_command_line_selects_an_external_broker(suite: Suite) -> None:
    tests = """
@pytest.mark.amqp_definitions({"queues": [{"name": "given", "durable": True, "arguments": {}}]})
def test_one(amqp_url, amqp_broker):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        assert connection.channel().queue_declare("given", durable=True).method.message_count == 0
    assert amqp_broker.port == PORT

@pytest.mark.amqp_compat("4.3")
def test_of_another_version(amqp_url):
    pass
"""
    with EmbeddedBroker() as broker:
        urls = (f"--amqp-broker-url={broker.url}", f"--amqp-broker-management-url={broker.management_url}")
        suite.run(tests.replace("PORT", str(broker.port)), *urls).assert_outcomes(passed=1, skipped=1)
        assert broker.ask(lambda server: list(server.broker.vhosts)) == ["/"]


def test_the_plugin_imports_the_broker_with_the_first_fixture() -> None:
    program = """
import sys, amqp_broker.testing.plugin
print(*sorted(name for name in sys.modules if name.startswith(("amqp_broker", "asyncio", "lmdb", "uvloop"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", cwd=ROOT, check=True)
    ours = [name for name in done.stdout.split() if name.startswith("amqp_broker")]
    assert ours == ["amqp_broker", "amqp_broker.testing", "amqp_broker.testing.plugin"]
    assert not {"lmdb", "uvloop"} & set(done.stdout.split())


def test_the_plugin_is_an_entry_point_of_pytest() -> None:
    text = (Path(ROOT) / "pyproject.toml").read_text("utf-8")
    assert '[project.entry-points.pytest11]\namqp_broker = "amqp_broker.testing.plugin"\n' in text


ADVISED = """
def publish_nowhere(url):
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        connection.channel().basic_publish("", "nowhere", b"m")
        connection.channel().basic_get(connection.channel().queue_declare("q", durable=True).method.queue)

def test_lost(amqp_url):
    publish_nowhere(amqp_url)

@pytest.mark.amqp_allow_advice("unroutable")
def test_allowed(amqp_url):
    publish_nowhere(amqp_url)

@pytest.mark.amqp_allow_advice
def test_all_allowed(amqp_url):
    publish_nowhere(amqp_url)

@pytest.mark.amqp_allow_advice("polling")
def test_other_allowed(amqp_url):
    publish_nowhere(amqp_url)
"""


def test_advice_fails_a_test_with_the_option(suite: Suite) -> None:
    result = suite.run(ADVISED, "--amqp-fail-on-advice=all")
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(["the broker advises:", "unroutable: *exchange '(default)'*"])


@pytest.mark.parametrize(("habits", "errors"), [("", 0), ("polling", 0), ("polling, unroutable", 2)])
def test_only_chosen_habits_fail_a_test(suite: Suite, habits: str, errors: int) -> None:
    suite.run(ADVISED, "-o", f"amqp_fail_on_advice={habits}").assert_outcomes(passed=4, errors=errors)


def test_an_unknown_habit_is_refused_before_the_first_test(suite: Suite) -> None:
    result = suite.run(ADVISED, "--amqp-fail-on-advice=poling")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*amqp-fail-on-advice: *unknown habit 'poling'*"])


def test_advice_is_a_fixture(suite: Suite) -> None:
    tests = """
def test_it(amqp_url, amqp_advice):
    assert amqp_advice.habits == []
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        channel.basic_consume("orders", print)
        [advice] = amqp_advice
        assert (advice.habit.name, advice.place.queue) == ("unlimited-prefetch", "orders")

def test_another(amqp_advice):
    assert list(amqp_advice) == []
"""
    suite.run(tests).assert_outcomes(passed=2)
