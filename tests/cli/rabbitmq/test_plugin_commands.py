from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.cli.rabbitmq.plugin_commands import read
from tests.cli.canned import NODE, canned, run_without_node


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "enabled_plugins"
    monkeypatch.setenv("RABBITMQ_ENABLED_PLUGINS_FILE", str(path))
    monkeypatch.setenv("RABBITMQ_NODENAME", NODE)
    return path


def test_enabling_offline_writes_the_file(file: Path) -> None:
    done = run_without_node("rabbitmq-plugins enable --offline rabbitmq_shovel rabbitmq_delayed_message_exchange")
    assert (done.exit_code, done.complaint) == (0, "")
    assert file.read_text("utf-8") == "[rabbitmq_delayed_message_exchange,rabbitmq_shovel].\n"
    assert done.output.endswith("set 2 plugins.\nOffline change; changes will take effect at broker restart.\n")


def test_enabling_reports_required_plugins(file: Path) -> None:
    file.write_text("[rabbitmq_management].\n", "utf-8")
    with canned() as api:
        done = api.run("rabbitmq-plugins enable rabbitmq_shovel")
        assert done.output == (
            f"Enabling plugins on node {NODE}:\n"
            "rabbitmq_shovel\n"
            "The following plugins have been configured:\n"
            "  rabbitmq_management\n"
            "  rabbitmq_management_agent\n"
            "  rabbitmq_shovel\n"
            "  rabbitmq_web_dispatch\n"
            f"Applying plugin configuration to {NODE}...\n"
            "The following plugins have been enabled:\n"
            "  rabbitmq_shovel\n"
            "\n"
            "started 1 plugins.\n"
        )
        again = api.run("rabbitmq-plugins -q enable rabbitmq_shovel").output
        assert again.endswith("Plugin configuration unchanged.\n")


def test_an_unknown_plugin_has_exit_code_70_and_nothing_is_written(file: Path) -> None:
    done = run_without_node("rabbitmq-plugins enable --offline bogus rabbitmq_shovel")
    assert (done.exit_code, done.complaint) == (70, "Error:\n{:plugins_not_found, [:bogus]}\n")
    assert not file.exists()


def test_plugins_that_require_a_disabled_one_are_disabled(file: Path) -> None:
    file.write_text("[rabbitmq_shovel_management,rabbitmq_top].\n", "utf-8")
    assert run_without_node("rabbitmq-plugins disable rabbitmq_shovel").exit_code == 0
    assert read() == ["rabbitmq_top"]


def test_set_replaces_all(file: Path) -> None:
    file.write_text("[rabbitmq_shovel].\n", "utf-8")
    assert run_without_node("rabbitmq-plugins set rabbitmq_top").exit_code == 0
    assert read() == ["rabbitmq_top"]


def test_a_list_marks_enabled_plugins(file: Path) -> None:
    file.write_text("[rabbitmq_management].\n", "utf-8")
    with canned() as api:
        lines = api.run("rabbitmq-plugins list -e").output.splitlines()
        assert lines == [
            'Listing plugins with pattern ".*" ...',
            " Configured: E = explicitly enabled; e = implicitly enabled",
            f" | Status: * = running on {NODE}",
            " |/",
            "[E*] rabbitmq_management       4.2.1",
            "[e*] rabbitmq_management_agent 4.2.1",
            "[e*] rabbitmq_web_dispatch     4.2.1",
        ]
        assert api.run("rabbitmq-plugins -q list -E -m").output == "rabbitmq_management\n"
        refused = "Error:\n'*' is not a regular expression: nothing to repeat at position 0\n"
        assert api.run("rabbitmq-plugins -q list *") == ("", refused, 65)


def test_is_enabled_is_a_health_check(file: Path) -> None:
    file.write_text("[rabbitmq_management].\n", "utf-8")
    with canned() as api:
        assert api.run("rabbitmq-plugins -q is_enabled rabbitmq_management").output == (
            f"Plugin rabbitmq_management is enabled on node {NODE}\n"
        )
        done = api.run("rabbitmq-plugins is_enabled rabbitmq_mqtt")
    assert done.exit_code == 69
    assert done.complaint.startswith(f"Error:\nPlugin rabbitmq_mqtt is not enabled on node {NODE}.")


def test_without_the_file_the_plugins_of_a_node_are_those_of_its_listeners() -> None:
    listeners = [{"protocol": "amqp"}, {"protocol": "https"}, {"protocol": "http/prometheus"}]
    with canned({"GET /_broker/status": {"listeners": listeners}}) as api:
        assert api.run("rabbitmq-plugins -q is_enabled rabbitmq_management rabbitmq_prometheus").exit_code == 0
        assert api.run("rabbitmq-plugins -q is_enabled rabbitmq_shovel").exit_code == 69
        assert api.run("rabbitmq-plugins -q list -E -m").output == "rabbitmq_management\nrabbitmq_prometheus\n"
        assert api.run("rabbitmq-plugins -q list -E -m --offline").output == "\n"
