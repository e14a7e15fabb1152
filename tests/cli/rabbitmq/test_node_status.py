from __future__ import annotations

import json
from pathlib import Path

import pika
import pytest

from amqp_broker.cli.rabbitmq import tool
from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.shared import node_finder
from tests.cli.canned import NODE, canned
from tests.cli.program import run, serving
from tests.cli.status_of_node import diagnose
from tests.running import RunningServer


def test_status_is_a_report_or_json() -> None:
    report = diagnose("status")[0]
    for line in ("OS PID: 1", "RabbitMQ version: 4.2.1", "Queue count: 2", "Total memory used: 0.03 gb"):
        assert f"\n{line}\n" in report
    for title, line in (("Config files", "/etc/rabbitmq/rabbitmq.conf"), ("Log file(s)", "<stdout>")):
        assert f"\n * {line}\n" in report.partition(title)[2]
    plugins = "Enabled plugin file: /etc/plugins\nEnabled plugins:\n\n * rabbitmq_management\n"
    assert plugins in report
    value = json.loads(diagnose("status --formatter json")[0])
    # Those that this broker has, with the ones that they require.
    names = ["rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_web_dispatch"]
    assert value["active_plugins"] == names
    assert value["config_files"] == ["/etc/rabbitmq/rabbitmq.conf"]
    assert value["log_files"] == ["/var/log/rabbitmq/rabbit.log", "<stdout>"]
    assert value["totals"] == {"virtual_host_count": 3, "connection_count": 1, "queue_count": 2}
    assert value["listeners"][0]["interface"] == "[::]"


def test_the_location_of_the_log_is_the_first_one_or_all() -> None:
    file = "/var/log/rabbitmq/rabbit.log"
    assert diagnose("-q log_location")[0] == f"{file}\n"
    assert diagnose("-q log_location --all")[0] == diagnose("-q log_location -a")[0] == f"{file}\n<stdout>\n"
    value = json.loads(diagnose("-q log_location --formatter json")[0])
    assert value == {"node_name": NODE, "paths": [file], "result": "ok"}


@pytest.mark.parametrize(
    ("setting", "shown", "value"),
    [
        ("0.6", "0.6 of available memory", {"relative": 0.6}),
        ("40%", "0.4 of available memory", {"relative": 0.4}),
        ("1", "1.0 of available memory", {"relative": 1.0}),
        ("1B", "2.5 gb", {"absolute": 2_500_000_000}),
    ],
)
def test_the_status_has_the_memory_limit_as_it_was_set(setting: str, shown: str, value: object) -> None:
    changed = {"memory_setting": setting, "memory_limit": 2_500_000_000}
    report = diagnose("status", **changed)[0]
    assert f"\nMemory high watermark setting: {shown}, computed to: 2.5 gb\n" in report
    value_of = json.loads(diagnose("status --formatter json", **changed)[0])
    assert value_of["vm_memory_high_watermark_setting"] == value


def test_memory_is_listed_by_category_in_a_unit_or_as_json() -> None:
    categories = {"code": 30_000_000, "binary": 0, "queue_procs": 60_000_000}
    memory = {**categories, "strategy": "rss", "total": {"rss": 90_000_000}}
    with canned({f"GET /api/nodes/{NODE.replace('@', '%40')}/memory": {"memory": memory}}) as api:
        shown = api.run("rabbitmq-diagnostics -q memory_breakdown")[0]
        assert shown.splitlines()[:2] == ["queue_procs: 0.06 gb (66.67%)", "code: 0.03 gb (33.33%)"]
        for unit, first in (("MB", "60.0 mb"), ("bytes", "60000000 bytes")):
            lines = api.run(f"rabbitmq-diagnostics -q memory_breakdown --unit {unit}")[0]
            assert lines.startswith(f"queue_procs: {first} (66.67%)\n")
        _, error, code = api.run("rabbitmq-diagnostics -q memory_breakdown --unit furlong")
        assert (error.splitlines()[0], code) == (
            "Error (argument validation): \"unit 'furlong' is not supported. Please use one of: bytes, mb, gb\"",
            64,
        )
        value = json.loads(api.run("rabbitmq-diagnostics -q memory_breakdown --formatter json")[0])
    assert value["code"] == {"bytes": 30_000_000, "percentage": 33.33}


def test_messages_of_a_queue_are_most_of_the_memory_by_which_the_broker_grows(tmp_path: Path) -> None:
    variables = {"AMQP_BROKER_RUNTIME_DIR": str(tmp_path)}

    def breakdown() -> dict[str, int]:
        done = run("diagnostics", "-q", "memory_breakdown", "--formatter", "json", **variables)
        return {name: share["bytes"] for name, share in json.loads(done.stdout).items()}

    with serving(tmp_path, **variables) as broker:
        parameters = pika.ConnectionParameters("127.0.0.1", broker.port)
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.queue_declare("q")
            before = breakdown()
            for _ in range(20_000):
                channel.basic_publish("", "q", bytes(2000))
            channel.queue_declare("q", passive=True)
            after = breakdown()
    grown, messages = (sum(after.values()) - sum(before.values())), after["queue_procs"] - before["queue_procs"]
    assert 40_000_000 < messages < 48_000_000
    assert messages == pytest.approx(grown, rel=0.3)


def test_the_environment_is_printed_as_erlang_terms() -> None:
    assert diagnose("-q environment")[0] == (
        '[{amqp_broker,[{enabled_plugins_file,<<"/etc/plugins">>}]},\n'
        ' {rabbit,[{ssl_options,[]},{tcp_listeners,[{"localhost",5672}]}]}]\n'
    )


def test_all_parts_of_a_report_are_about_the_given_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []

    def find(name: str) -> node_finder.Running:
        found.append(name)
        return node_finder.find(name, {"AMQP_BROKER_RUNTIME_DIR": str(tmp_path)})

    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path))
    with RunningServer(control=True) as running:
        node = str(running.port)
        assert tool.run("rabbitmqctl", ["--node", node, "report"], commands_of("rabbitmqctl"), find) == 0
    assert set(found) == {node}
    assert "End of server status report" in capsys.readouterr().out
