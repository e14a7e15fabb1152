from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.cli.rabbitmq.plugin_commands import read
from amqp_broker.settings.plugins import BUILT_IN
from tests.cli.canned import NODE, canned, run_without_node

STATUS = "GET /_broker/status"


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
    with canned({STATUS: {"plugins": ["rabbitmq_management", "rabbitmq_shovel"]}}) as api:
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


def test_a_plugin_that_this_broker_does_not_have_is_stored_with_a_warning_and_not_started(file: Path) -> None:
    with canned({STATUS: {"plugins": ["rabbitmq_shovel"]}}) as api:
        done = api.run("rabbitmq-plugins enable rabbitmq_web_mqtt rabbitmq_shovel")
        assert done.exit_code == 0
        assert done.complaint == (
            "Warning: this broker does not have rabbitmq_mqtt, rabbitmq_web_mqtt: enabling them has no effect\n"
        )
        assert file.read_text("utf-8") == "[rabbitmq_shovel,rabbitmq_web_mqtt].\n"
        configured, _, enabled = done.output.partition("The following plugins have been enabled:")
        assert "  rabbitmq_web_mqtt (not available)\n" in configured
        assert "mqtt" not in enabled
        listed = api.run("rabbitmq-plugins -q list")
        assert "mqtt" not in listed.output
        assert listed.complaint == done.complaint


def test_all_plugins_are_those_that_this_broker_has(file: Path) -> None:
    done = run_without_node("rabbitmq-plugins enable --offline --all")
    assert (done.exit_code, done.complaint) == (0, "")
    assert set(read()) == BUILT_IN
    assert run_without_node("rabbitmq-plugins disable --offline --all").exit_code == 0
    assert read() == []


@pytest.mark.parametrize(("verb", "names"), [("enable", "[]"), ("disable", "[rabbitmq_sharding]")])
def test_a_change_that_a_running_node_has_not_made_takes_effect_at_its_restart(
    file: Path, verb: str, names: str
) -> None:
    file.write_text(f"{names}.\n", "utf-8")
    running = ["rabbitmq_sharding"] if verb == "disable" else []
    with canned({STATUS: {"plugins": running}}) as api:
        done = api.run(f"rabbitmq-plugins {verb} rabbitmq_sharding")
    assert done.output.endswith("Changes will take effect at broker restart.\n")


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
    with canned({STATUS: {"plugins": ["rabbitmq_management"]}}) as api:
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


def test_is_enabled_is_a_health_check() -> None:
    with canned({STATUS: {"plugins": ["rabbitmq_management", "rabbitmq_mqtt"]}}) as api:
        assert api.run("rabbitmq-plugins -q is_enabled rabbitmq_management").output == (
            f"Plugin rabbitmq_management is enabled on node {NODE}\n"
        )
        done = api.run("rabbitmq-plugins is_enabled rabbitmq_mqtt")
    assert done.exit_code == 69
    assert done.complaint.startswith(f"Error:\nPlugin rabbitmq_mqtt is not enabled on node {NODE}.")


def test_without_the_file_the_enabled_plugins_are_those_of_the_node() -> None:
    names = ["rabbitmq_management", "rabbitmq_prometheus"]
    with canned({STATUS: {"plugins": names}}) as api:
        assert api.run("rabbitmq-plugins -q is_enabled rabbitmq_management rabbitmq_prometheus").exit_code == 0
        assert api.run("rabbitmq-plugins -q is_enabled rabbitmq_shovel").exit_code == 69
        assert api.run("rabbitmq-plugins -q list -E -m").output == "rabbitmq_management\nrabbitmq_prometheus\n"
        assert api.run("rabbitmq-plugins -q list -E -m --offline").output == "\n"


def test_a_running_plugin_that_the_file_does_not_name_is_marked(file: Path) -> None:
    file.write_text("[].\n", "utf-8")
    with canned({STATUS: {"plugins": ["rabbitmq_shovel"]}}) as api:
        assert "[ *] rabbitmq_shovel  " in api.run("rabbitmq-plugins -q list").output
