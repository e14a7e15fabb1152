"""Values of expressions, as a live RabbitMQ 4.3.6 printed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.canned import NODE, canned, run_without_node
from tests.cli.status_of_node import STATUS


@pytest.mark.parametrize(
    ("expression", "request_", "body"),
    [
        ("rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).", "PUT /_broker/alarms/memory", None),
        ("rabbit_alarm:set_alarm({{resource_limit,disk,'a@b'},[]}).", "PUT /_broker/alarms/disk", None),
        ("rabbit_alarm:clear_alarm({resource_limit, disk, node()}).", "DELETE /_broker/alarms/disk", None),
        (
            "application:set_env(rabbit, channel_max, 100).",
            "PUT /_broker/environment",
            {"value": "[{rabbit,[{channel_max,100}]}]."},
        ),
        (
            "vm_memory_monitor:set_vm_memory_high_watermark(0.4).",
            "PUT /_broker/memory-limit",
            {"value": "00.40"},
        ),
        ("rabbit_disk_monitor:set_disk_free_limit(1).", "PUT /_broker/disk-free-limit", {"value": "1B"}),
    ],
)
def test_expressions_of_test_suites_are_requests(expression: str, request_: str, body: object) -> None:
    with canned({request_: 204}) as api:
        assert api.run(f'rabbitmqctl eval "{expression}"') == ("ok\n", "", 0)
        assert api.changes() == [(request_, body)]


def test_alarms_and_variables_are_printed_as_terms() -> None:
    with canned({"GET /_broker/status": {**STATUS, "alarms": ["memory"], "settings": {"channel_max": 100}}}) as api:
        alarms = api.run("rabbitmqctl eval 'rabbit_alarm:get_alarms().'").output
        assert alarms == f"[{{{{resource_limit,memory,{NODE}}},[]}}]\n"
        assert api.run("rabbitmqctl eval 'application:get_env(rabbit, channel_max).'").output == "{ok,100}\n"
        assert api.run("rabbitmqctl eval 'application:get_env(rabbit, nope).'").output == "undefined\n"


def test_an_expression_ends_with_a_full_stop() -> None:
    done = run_without_node("rabbitmqctl eval 'foo('")
    assert done.exit_code == 64
    assert done.complaint.startswith('Error (argument validation): "syntax error before: "\n')


def test_a_file_holds_an_expression(tmp_path: Path) -> None:
    path = tmp_path / "a.erl"
    path.write_text("node().\n", "utf-8")
    with canned() as api:
        assert api.run(f"rabbitmqctl eval_file {path}").output == f"{NODE}\n"
    done = run_without_node("rabbitmqctl eval_file /nowhere.erl")
    assert (done.exit_code, '"File /nowhere.erl does not exist"' in done.complaint) == (64, True)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("application:get_env(rabbit, loopback_users).", '{ok,[<<"guest">>]}'),
        ("application:get_env(rabbit, default_user_tags).", "{ok,[administrator]}"),
        ("application:get_env(rabbit, auth_mechanisms).", "{ok,['PLAIN','AMQPLAIN']}"),
        ("{ok, V} = application:get_env(rabbit, loopback_users), V.", '[<<"guest">>]'),
        ("{ok,Value}=application:get_env(rabbit,channel_max),Value.", "100"),
        ("application:get_env(rabbit, channel_max, 5).", "100"),
        ("application:get_env(rabbit, consumer_timeout).", "{ok,undefined}"),
        ("application:get_env(rabbit, nope, 5).", "5"),
    ],
)
def test_variables_are_terms_of_their_kind(expression: str, text: str) -> None:
    settings = {
        "loopback_users": "guest",
        "default_user_tags": "administrator",
        "channel_max": 100,
        "consumer_timeout_ms": 0,
        "auth_mechanisms": "PLAIN AMQPLAIN",
    }
    with canned({"GET /_broker/status": {**STATUS, "settings": settings}}) as api:
        assert api.run(f"rabbitmqctl eval '{expression}'").output == f"{text}\n"


def test_a_list_without_members_is_empty() -> None:
    with canned({"GET /_broker/status": {**STATUS, "settings": {"loopback_users": ""}}}) as api:
        assert api.run("rabbitmqctl eval 'application:get_env(rabbit, loopback_users).'").output == "{ok,[]}\n"


def test_a_match_with_a_missing_variable_fails() -> None:
    with canned({"GET /_broker/status": {**STATUS, "settings": {}}}) as api:
        done = api.run("rabbitmqctl eval '{ok, V} = application:get_env(rabbit, nope), V.'")
        assert (done.exit_code == 0, "{:badmatch, :undefined}" in done.complaint) == (False, True)
