from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.lab.fault_rules import ACTIONS, KNOWN, Rule, fits, name_of
from tests.broker_parts import new_broker, new_connection


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "a fault needs an 'action'"),
        ({"action": 5}, "a fault needs an 'action'"),
        ({"action": "explode"}, "unknown action 'explode'; there are: confirm_nack"),
        ({"action": "confirm_nak"}, "drop_dead_letter; did you mean 'confirm_nack'"),
        ({"action": "cut", "when": 1}, "a fault has no field 'when'"),
        ({"action": "cut", "routing_keys": "q"}, "vhost; did you mean 'routing_key'?"),
        ({"action": "cut", "on": "later"}, "'cut' is not possible on 'later', but on now, login"),
        ({"action": "cut", "routing_key": "a"}, "'routing_key' is not known on 'now'; 'cut' is also possible on"),
        ({"action": "refuse", "vhost": "/"}, "'vhost' is not known on 'connect'"),
        ({"action": "refuse_login", "client_property": {"a": "b"}, "vhost": "/"}, "'vhost' is not known on 'login'"),
        ({"action": "confirm_delay"}, "'confirm_delay' needs delay_ms"),
        ({"action": "confirm_nack", "delay_ms": 5}, "'confirm_nack' has no delay_ms"),
        ({"action": "cut", "times": 2}, "times, after and probability mean nothing on 'now'"),
        ({"action": "confirm_nack", "times": 0}, "times must be a whole number from 1 to"),
        ({"action": "confirm_nack", "times": True}, "times must be a whole number"),
        ({"action": "confirm_nack", "after": -1}, "after must be a whole number from 0 to"),
        ({"action": "confirm_nack", "seed": 1.5}, "seed must be a whole number"),
        ({"action": "confirm_delay", "delay_ms": 10**12}, "delay_ms must be a whole number from 0 to 604800000"),
        ({"action": "confirm_nack", "probability": 0}, "probability must be more than 0 and at most 1, not 0"),
        ({"action": "confirm_nack", "probability": 1.1}, "probability must be more than 0 and at most 1"),
        ({"action": "confirm_nack", "probability": float("nan")}, "probability must be more than 0 and at most 1"),
        ({"action": "confirm_nack", "exchange": ["a"]}, "exchange must be a text, not"),
        ({"action": "confirm_nack", "routing_key": "x" * 1025}, "routing_key is longer than 1024 octets"),
        ({"action": "confirm_nack", "routing_key": "regex:("}, "regular expression '(' is invalid"),
        ({"action": "confirm_nack", "client_property": {"product": "regex:["}}, "regular expression '[' is invalid"),
        ({"action": "confirm_nack", "client_property": {"product": 1}}, "client_property must be an object"),
        ({"action": "confirm_nack", "client_property": "x"}, "client_property must be an object"),
        ({"action": "bandwidth"}, "'bandwidth' needs bytes_per_s"),
        ({"action": "bandwidth", "bytes_per_s": -1}, "bytes_per_s must be a whole number from 0 to"),
        ({"action": "latency", "delay_ms": 1, "direction": "up"}, "direction must be output or input, not 'up'"),
        ({"action": "latency", "delay_ms": 1, "direction": 1}, "direction must be a text, not 1"),
        ({"action": "slow_close", "delay_ms": 1, "direction": "input"}, "'slow_close' has no direction"),
        ({"action": "return", "code": 99}, "code must be a reply code from 200 to 599, not 99"),
        ({"action": "close_channel", "text": "x" * 256}, "text is longer than 255 octets"),
        ({"action": "return", "is_routed": 1}, "is_routed must be true or false, not 1"),
    ],
)
def test_an_impossible_rule_is_refused_with_the_reason(given: dict[str, Any], reason: str) -> None:
    broker = new_broker()
    with pytest.raises(InvalidParameter) as caught:
        broker.faults.add(Rule.from_mapping(given))
    assert reason in str(caught.value)
    assert list(broker.faults) == []


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("event", "did you mean 'on'?"),
        ("routing-key", "did you mean 'routing_key'?"),
        ("routingKey", "did you mean 'routing_key'?"),
        ("x", ""),
    ],
)
def test_a_field_that_is_looked_for_by_another_name_is_named(name: str, question: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Rule.from_mapping({"action": "cut", name: "k"})
    assert str(caught.value).partition("; ")[2] == question


def test_each_action_has_a_usual_moment_that_is_known() -> None:
    for name, action in ACTIONS.items():
        needs: dict[str, Any] = dict.fromkeys(action.needs, 1)
        rule = Rule(name, **needs)
        rule.check()
        assert rule.on == action.on[0]
        assert set(action.on) <= set(KNOWN)


@pytest.mark.parametrize(
    ("pattern", "text", "does"),
    [
        ("orders.*", "orders.eu.new", True),
        ("orders.*", "order", False),
        ("orders.?", "orders.1", True),
        ("", "", True),
        ("", "q", False),
        ("items[0]", "items[0]", True),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        ("regex:^orders\\.", "orders.eu", True),
        ("regex:eu$", "orders.us", False),
        ("regex:(a+)+$", "a" * 200 + "b", False),
    ],
)
def test_texts_are_globs_or_bounded_regular_expressions(pattern: str, text: str, does: bool) -> None:
    assert fits(pattern, text) is does


def test_amq_default_is_the_default_exchange() -> None:
    rule = Rule("confirm_nack", exchange="amq.default")
    assert (rule.matches_message("", "q"), rule.matches_message("amq.default", "q")) == (True, False)


def struck(rule: Rule, count: int) -> list[int]:
    return [number for number in range(count) if rule.count_match()]


def test_after_passes_and_times_ends() -> None:
    rule = Rule("confirm_nack", after=2, times=3)
    assert struck(rule, 10) == [2, 3, 4]
    assert (rule.hits, rule.is_spent) == (3, True)


def test_the_seed_determines_the_hits() -> None:
    def hits(seed: int) -> list[int]:
        rule = Rule("confirm_nack", probability=0.3, seed=seed)
        rule.start(seed)
        return struck(rule, 1000)

    assert hits(1) == hits(1) != hits(2)
    assert 250 < len(hits(1)) < 350


def test_a_missing_seed_is_drawn_and_shown() -> None:
    rule = new_broker().faults.add(Rule("confirm_nack", probability=0.5))
    assert isinstance(rule.as_dict()["seed"], int)


def test_fields_of_a_connection_match() -> None:
    connection = new_connection()
    connection.client_properties = {"connection_name": "billing-7", "product": "pika", "capabilities": {}}
    assert Rule("cut").matches_connection(connection)
    assert Rule("cut", connection="billing-*").matches_connection(connection)
    assert Rule("cut", connection="127.0.0.1:*").matches_connection(connection)
    assert not Rule("cut", connection="other").matches_connection(connection)
    assert Rule("cut", client_property={"product": "p*"}).matches_connection(connection)
    assert not Rule("cut", client_property={"product": "p*", "version": "*"}).matches_connection(connection)
    assert not Rule("cut", user="guest").matches_connection(connection)
    assert Rule("cut", user="gu*").matches_connection(connection, "guest")
    assert not Rule("cut", vhost="/").matches_connection(connection)


def test_a_rule_as_json_has_its_fields_and_counts() -> None:
    rule = new_broker().faults.add(Rule("return", routing_key="a.*", times=2))
    assert rule.as_dict() == {
        "id": 1,
        "action": "return",
        "on": "publish",
        "routing_key": "a.*",
        "times": 2,
        "seed": rule.seed,
        "code": 312,
        "text": "NO_ROUTE",
        "matched": 0,
        "hits": 0,
        "is_spent": False,
    }


def test_codes_have_rabbitmqs_names() -> None:
    assert [name_of(code) for code in (320, 404, 406, 530, 999)] == [
        *("CONNECTION_FORCED", "NOT_FOUND", "PRECONDITION_FAILED", "NOT_ALLOWED", "INTERNAL_ERROR"),
    ]
    rule = Rule("close_channel", code=404)
    rule.check()
    assert rule.text == "NOT_FOUND - closed by a fault"


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())
GIVEN = st.dictionaries(st.sampled_from([one.name for one in fields(Rule)]), VALUES)


@given(GIVEN, st.sampled_from([*ACTIONS, "explode"]), st.sampled_from([*KNOWN, ""]))
def test_whatever_is_said_is_a_rule_or_refused(given: dict[str, Any], action: str, on: str) -> None:
    faults = new_broker().faults
    try:
        rule = faults.add(Rule.from_mapping({"delay_ms": 1, **given, "action": action, "on": on}))
    except InvalidParameter:
        assert len(faults) == 0
    else:
        assert (
            Rule.from_mapping({key: rule.as_dict()[key] for key in rule.as_dict() if key not in COUNTS}).on == rule.on
        )


COUNTS = ("id", "matched", "hits", "is_spent")
