from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amqp_broker.broker.observe.history_check import HistoryCheck
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.faults import faults
from tests.cli.canned import canned
from tests.cli.program import run
from tests.running import RunningServer


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    for name in ("RABBITMQ_NODENAME", "RABBITMQ_NODE_PORT", "AMQP_BROKER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path))
    with RunningServer(control=True) as running:
        yield running


def call(*arguments: str) -> Result:
    return CliRunner().invoke(faults, arguments)


def test_a_fault_is_added_listed_and_removed(broker: RunningServer) -> None:
    added = call("add", "--vhost", "/", "--routing-key", "orders.*", "--confirm", "nack", "--times", "3", "--seed", "7")
    assert (added.exit_code, added.output) == (0, "1\n")
    said = "1: confirm_nack on publish vhost=/ routing_key=orders.* times=3 seed=7 matched=0 hits=0\n"
    assert call("list").output == said
    assert json.loads(call("list", "--json").output)[0]["routing_key"] == "orders.*"
    assert call("remove", "1").exit_code == 0
    assert call("list").output == ""
    assert isinstance(call("remove", "1").exception, CommandError)


def test_held_deliveries_are_released(broker: RunningServer) -> None:
    call("add", "hold_delivery", "--queue", "orders", "--seed", "7")
    assert call("list").output == "1: hold_delivery on deliver queue=orders seed=7 held=0 allowed=0 matched=0 hits=0\n"
    assert (call("release", "1").output, call("release", "1", "--count", "3").output) == ("0\n", "0\n")
    assert isinstance(call("release", "2").exception, CommandError)
    assert call("release", "1", "--count", "0").exit_code == 2


def test_every_option_reaches_the_broker(broker: RunningServer) -> None:
    call("add", "cut", "--on", "deliver", "--queue", "q", "--user", "guest", "--connection", "x*", "--mid-frame")
    call("add", "latency", "--delay-ms", "5", "--jitter-ms", "2", "--client-property", "product=pika")
    call("add", "return", "--code", "313", "--text", "NO_CONSUMERS", "--routed", "--after", "1", "--probability", "0.5")
    call("add", "block", "--duration-ms", "9", "--text", "low on disk")
    call("add", "bandwidth", "--bytes-per-s", "5000", "--direction", "input")
    rules = [rule.as_dict() for rule in broker.server.broker.faults]
    for rule in rules:
        for name in ("id", "seed", "matched", "hits", "is_spent"):
            del rule[name]
    cut, latency, returned, block, bandwidth = rules
    where = {"queue": "q", "user": "guest", "connection": "x*"}
    assert cut == {"action": "cut", "on": "deliver", **where, "is_mid_frame": True}
    of_pika = {"client_property": {"product": "pika"}}
    assert latency == {"action": "latency", "on": "now", **of_pika, "delay_ms": 5, "jitter_ms": 2}
    reply = {"code": 313, "text": "NO_CONSUMERS", "is_routed": True}
    assert returned == {"action": "return", "on": "publish", "after": 1, "probability": 0.5, **reply}
    assert block == {"action": "block", "on": "now", "text": "low on disk", "duration_ms": 9}
    assert bandwidth == {"action": "bandwidth", "on": "now", "bytes_per_s": 5000, "direction": "input"}
    assert call("clear", "--vhost", "/").exit_code == 0
    assert len(rules) == len(broker.server.broker.faults)
    call("clear")
    assert len(broker.server.broker.faults) == 0


def test_rules_on_methods_and_sequences_are_added(broker: RunningServer) -> None:
    steps = ["confirm_delay delay-ms=2000 times=1", "return text='NO ROUTE' is_routed=true probability=0.5 seed=3"]
    assert call("add", "confirm_drop", "--seed", "1", "--then", steps[0], "--then", steps[1]).output == "1\n"
    assert call("add", "cut", "--on", "method", "--method", "queue.*", "--seed", "2").output == "4\n"
    rules = [rule.as_dict() for rule in broker.server.broker.faults]
    late = {"delay_ms": 2000, "times": 1, "follows": 1}
    assert {name: rules[1][name] for name in late} == late
    returned = {"text": "NO ROUTE", "is_routed": True, "probability": 0.5, "seed": 3, "follows": 2}
    assert {name: rules[2][name] for name in returned} == returned
    assert call("list").output.splitlines()[-1] == "4: cut on method method=queue.* seed=2 matched=0 hits=0"
    assert call("remove", "1").exit_code == 0
    assert [rule.id for rule in broker.server.broker.faults] == [4]


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ("'", "--then ''' is not ACTION FIELD=VALUE …"),
        ("", "--then '' is not ACTION FIELD=VALUE …"),
        ("confirm_delay 2000", "'2000' in --then is not FIELD=VALUE"),
        ("confirm_delay delay_ms=soon", "'delay_ms=soon' in --then is no number"),
        ("confirm_nack probability=half", "'probability=half' in --then is no number"),
    ],
)
def test_a_rule_of_then_that_cannot_be_read_is_named(broker: RunningServer, then: str, reason: str) -> None:
    done = call("add", "confirm_nack", "--then", then)
    assert (done.exit_code, reason in done.output) == (2, True)
    assert len(broker.server.broker.faults) == 0


def test_a_number_may_be_zero(broker: RunningServer) -> None:
    assert call("add", "cut", "--seed", "0").exit_code == 0
    assert [rule.seed for rule in broker.server.broker.faults] == [0]
    for option in ("--times", "--probability"):
        assert isinstance(call("add", "cut", option, "0").exception, CommandError)
    assert len(broker.server.broker.faults) == 1


def test_a_refusal_of_the_broker_is_a_sentence(broker: RunningServer, tmp_path: Path) -> None:
    done = run("faults", "add", "confirm_delay", AMQP_BROKER_RUNTIME_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (65, "amqp-broker: 'confirm_delay' needs delay_ms.\n")
    assert len(broker.server.broker.faults) == 0


def test_without_a_broker_faults_are_an_error(tmp_path: Path) -> None:
    done = run("faults", "list", AMQP_BROKER_RUNTIME_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("amqp-broker: no broker ")


def test_a_broker_elsewhere_is_reached_over_its_http_api() -> None:
    with canned({"POST /_broker/faults": {"id": 7}}) as api:
        done = run("faults", "add", "cut", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
    assert (done.returncode, done.stdout) == (0, "7\n")


@pytest.mark.parametrize("pair", ["product", "=pika"])
def test_a_property_of_a_client_has_a_name_and_a_pattern(pair: str) -> None:
    done = call("add", "cut", "--client-property", pair)
    assert (done.exit_code, f"'{pair}' is not NAME=GLOB" in done.output) == (2, True)


@pytest.mark.parametrize("words", [["add"], ["add", "cut", "--confirm", "nack"], ["add", "explode"]])
def test_exactly_one_action_is_required(words: list[str]) -> None:
    assert call(*words).exit_code == 2


def test_a_nemesis_prints_its_strokes_and_the_history(broker: RunningServer) -> None:
    told = call("nemesis", "--seed", "7", "--for", "1500ms", "--pace", "50ms", "--action", "drop_ack")
    assert told.exit_code == 0
    lines = told.output.splitlines()
    assert lines[0] == "Nemesis of vhost '/' with seed 7:"
    strokes = [line for line in lines if " s  drop_ack on ack times=" in line and line.endswith(": hit nothing")]
    assert len(strokes) >= 2
    assert lines[-1].startswith("Each message is where its history says")
    assert len(lines) == len(strokes) + 5


def test_a_nemesis_is_ended_by_ctrl_c(broker: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(duration_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    told = call("nemesis", "--for", "1h")
    assert (told.exit_code, len(told.output.splitlines())) == (0, 5)
    assert broker.server.broker.faults.nemeses["/"].is_over


def test_a_breach_of_the_history_is_exit_code_1(broker: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HistoryCheck, "_compare", lambda check: check._breach("queue 'q' is wrong"))
    told = call("nemesis", "--for", "1ms")
    assert (told.exit_code, told.output.splitlines()[-1]) == (1, "Wrong: queue 'q' is wrong.")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--for", "soon"], "'soon' is not a duration like 500ms"),
        (["--action", "refuse"], "'refuse' is not one of 'confirm_nack'"),
        (["--seed", "-1"], "-1 is not in the range x>=0"),
    ],
    ids=str,
)
def test_an_impossible_nemesis_is_a_usage_error(arguments: list[str], reason: str) -> None:
    told = call("nemesis", *arguments)
    assert told.exit_code == 2
    assert reason in told.output


def test_a_nemesis_of_a_missing_vhost_is_refused(broker: RunningServer) -> None:
    error = call("nemesis", "--vhost", "none").exception
    assert (str(error), type(error)) == ("there is no such vhost", CommandError)


def test_a_nemesis_that_another_client_removes_ends_with_the_history(
    broker: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clear(duration_s: float) -> None:
        broker.ask(lambda server: server.broker.faults.clear())

    monkeypatch.setattr(time, "sleep", clear)
    told = call("nemesis", "--for", "1h")
    assert told.exit_code == 0
    assert told.output.splitlines()[1] == "The nemesis was removed by another client."
    assert told.output.splitlines()[-1].startswith("Each message is where its history says")
