from __future__ import annotations

import json

import pytest

from amqp_broker.settings.profiles import PROFILES
from amqp_broker.testing.plugin import COMPAT_MARK
from tests.testing.user_suites import Suite

pytest_plugins = ["pytester"]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)


def test_the_marker_for_definitions_imports_them(suite: Suite) -> None:
    queue = {"name": "from-file", "durable": True, "auto_delete": False, "arguments": {}}
    # An editor of Windows writes a mark before the text.
    (suite.pytester.path / "orders.json").write_text(json.dumps({"queues": [queue]}), "utf-8-sig")
    suite.pytester.makefile(".json", wrong="{")
    tests = """
@pytest.mark.amqp_definitions("orders.json")
class TestAll:
    @pytest.mark.amqp_definitions({"queues": [{"name": "from-dict", "durable": True, "arguments": {}}]})
    def test_one(self, amqp_vhost):
        assert set(amqp_vhost.queues()) == {"from-file", "from-dict"}

@pytest.mark.amqp_definitions("missing.json")
def test_missing(amqp_vhost):
    pass

@pytest.mark.amqp_definitions("wrong.json")
def test_wrong(amqp_vhost):
    pass
"""
    result = suite.run(tests, "--strict-markers")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["@pytest.mark.amqp_definitions: *wrong.json: not JSON: *"])
    result.stdout.fnmatch_lines(["@pytest.mark.amqp_definitions: there is no file *missing.json"])


def test_the_marker_for_faults_applies_to_its_test_only(suite: Suite) -> None:
    tests = """
from pika.exceptions import NackError

def publish(url):
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"m")

@pytest.mark.amqp_fault("confirm_nack", routing_key="q", times=1)
def test_nacked(amqp_url):
    with pytest.raises(NackError):
        publish(amqp_url)
    publish(amqp_url)

def test_taken(amqp_url):
    publish(amqp_url)

"""
    suite.run(tests, "--strict-markers").assert_outcomes(passed=2)


def test_a_mistake_in_a_marker_is_a_sentence_without_a_traceback(suite: Suite) -> None:
    tests = """
@pytest.mark.amqp_fault("explode")
def test_fault(amqp_url):
    pass

@pytest.mark.amqp_definitions
def test_definitions(amqp_url):
    pass

@pytest.mark.amqp_compat()
def test_compat(amqp_url):
    pass

@pytest.mark.amqp_allow_advice("poling")
def test_advice(amqp_url):
    pass
"""
    result = suite.run(tests)
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.amqp_fault: unknown action 'explode'*",
            "@pytest.mark.amqp_definitions: it takes one argument",
            "@pytest.mark.amqp_compat: it takes one argument",
            "@pytest.mark.amqp_allow_advice: *unknown habit 'poling'*; did you mean 'polling'?",
        ]
    )
    assert "plugin.py" not in result.stdout.str()
    assert "During handling" not in result.stdout.str()


def test_a_typo_in_a_marker_leads_to_the_right_one(suite: Suite) -> None:
    suite.pytester.makefile(".json", orders="{}")
    suite.pytester.makeconftest("""
def pytest_configure(config):
    config.addinivalue_line("markers", "amqp_fault_free: of this project")
""")
    tests = """
@pytest.mark.amqp_faults("confirm_nack")
def test_name(amqp_url):
    pass

@pytest.mark.amqp_fault("confirm_nak")
def test_action(amqp_url):
    pass

@pytest.mark.amqp_fault("confirm_nack", routing_keys="orders")
def test_field(amqp_url):
    pass

@pytest.mark.amqp_definitions("order.json")
def test_file(amqp_url):
    pass

@pytest.mark.amqp_fault_free
@pytest.mark.slow
def test_of_other_markers(amqp_url):
    pass
"""
    result = suite.run(tests)
    result.assert_outcomes(passed=1, errors=4, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.amqp_faults is unknown; did you mean 'amqp_fault'?",
            "@pytest.mark.amqp_fault: unknown action 'confirm_nak'; *; did you mean 'confirm_nack'*?",
            "@pytest.mark.amqp_fault: a fault has no field 'routing_keys', *; did you mean 'routing_key'?",
            "@pytest.mark.amqp_definitions: there is no file *order.json; did you mean 'orders.json'?",
        ]
    )


def test_the_marker_for_compat_names_all_versions() -> None:
    assert all(f"'{name}'" in COMPAT_MARK for name in PROFILES)


def test_the_marker_for_compat_selects_the_version(suite: Suite) -> None:
    tests = """
@pytest.mark.amqp_compat("4.3")
@pytest.mark.parametrize("number", range(2))
def test_new(amqp_url, number):
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        assert connection._impl.server_properties["version"].startswith("4.3.")

def test_default(amqp_vhost, amqp_broker):
    assert amqp_vhost.broker is amqp_broker
"""
    suite.run(tests, "--strict-markers").assert_outcomes(passed=3)


def test_a_marker_on_a_test_without_a_vhost_is_an_error(suite: Suite) -> None:
    result = suite.run(
        """
@pytest.mark.amqp_fault("confirm_nack")
def test_of_no_vhost():
    pass

@pytest.mark.amqp_compat("4.3")
def test_of_the_broker(amqp_broker):
    pass

@pytest.mark.amqp_compat("4.3")
class TestOthers:
    def test_without(self):
        pass

    def test_with(self, amqp_url):
        pass
"""
    )
    result.assert_outcomes(errors=2, passed=2)
    result.stdout.fnmatch_lines(["*@pytest.mark.amqp_fault needs the fixture amqp_vhost or amqp_url"])
    result.stdout.no_fnmatch_line("*During handling of the above exception*")
