from __future__ import annotations

import logging
import signal
from pathlib import Path

import pytest

from amqp_broker.broker.admin.access import SHA256, Permission, TopicPermission
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.server import administration_log
from amqp_broker.server.administration_log import config_files, data_folder, startup
from tests.cli.program import run, serving
from tests.peer import Lab


@pytest.fixture
def lab(caplog: pytest.LogCaptureFixture) -> Lab:
    lab = Lab()
    lab.broker.events.listen(administration_log.log)
    caplog.set_level(logging.INFO, "amqp_broker")
    return lab


def test_administrative_changes_are_logged_in_rabbitmqs_words(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    broker = lab.broker
    broker.add_vhost("v")
    user = broker.users.add("u", "secret")
    broker.users.set_tags(user, ["management", "policymaker"])
    broker.users.set_permission(user, "v", Permission(".*", "a", "b"))
    broker.users.set_topic_permission(user, "v", "amq.topic", TopicPermission(".*", "b"))
    broker.vhosts["v"].policies.set(Policy("pol", "^q", {"max-length": 5}, apply_to="queues"))
    broker.users.change_password(user, "another secret")
    broker.users.clear_topic_permission(user, "v")
    broker.users.clear_permission(user, "v")
    broker.users.set_password_hash(user, b"", SHA256)
    broker.users.delete("u")
    broker.delete_vhost("v")
    assert caplog.messages == [
        "Adding vhost 'v'",
        "Created user 'u'",
        "Successfully set user tags for user 'u' to [management,policymaker]",
        "Successfully set permissions for 'u' in virtual host 'v' to '.*', 'a', 'b'",
        "Successfully set topic permissions on exchange 'amq.topic' for 'u' in virtual host 'v' to '.*', 'b'",
        "Successfully set policy 'pol' matching queues names in virtual host 'v' using pattern '^q'",
        "Successfully changed password for user 'u'",
        "Successfully cleared topic permissions for 'u' in virtual host 'v'",
        "Successfully cleared permissions for 'u' in virtual host 'v'",
        "Clearing password for user 'u'",
        "Deleted user 'u'",
        "Deleting vhost 'v'",
    ]


def test_names_cannot_forge_lines_or_formats(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.broker.users.add("a\n{name} %s\x1b[2J", "x")
    assert caplog.messages == ["Created user 'a?{name} %s?[2J'"]


def test_clients_and_their_queues_are_not_logged_here(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.connect().disconnect()
    assert [record for record in caplog.records if record.name == "amqp_broker.server"] == []


def test_the_startup_line_counts_the_plugins_below_it() -> None:
    assert startup(["rabbitmq_event_exchange", "rabbitmq_shovel"]).split("\n") == [
        "Server startup complete; 2 plugins started.",
        " * rabbitmq_event_exchange",
        " * rabbitmq_shovel",
    ]


def test_each_file_of_the_configuration_has_a_line() -> None:
    lines = [" config file(s) : /etc/rabbitmq/rabbitmq.conf", "                : /etc/rabbitmq/conf.d/10-defaults.conf"]
    assert config_files(["/etc/rabbitmq/rabbitmq.conf", "/etc/rabbitmq/conf.d/10-defaults.conf"]).split("\n") == lines


def test_a_plugin_that_is_not_built_in_is_marked() -> None:
    assert " * rabbitmq_stomp (not available)" in startup(["rabbitmq_shovel", "rabbitmq_stomp"]).split("\n")


def test_the_folder_of_the_data_has_rabbitmqs_line() -> None:
    assert data_folder(Path("/var/lib/x")) == " data dir       : /var/lib/x"
    assert data_folder(None) == " data dir       : (in memory only)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_the_log_says_which_folder_has_the_data_and_which_signal_ends_the_broker(
    tmp_path: Path, number: signal.Signals
) -> None:
    store = str(tmp_path / "store")
    with serving(tmp_path, "--data-dir", store, AMQP_BROKER_EPHEMERAL="false") as broker:
        assert broker.end(number) == 0
        first, *_, why, ended = broker.output.splitlines()
    assert first.endswith(f"[info] <0.1.0>  data dir       : {store}")
    assert why.endswith(f"[info] <0.1.0> {number.name} received - shutting down")
    assert ended.endswith("[info] <0.1.0> Successfully stopped RabbitMQ and its dependencies")


def test_the_log_says_that_a_command_ends_the_broker(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with serving(tmp_path, AMQP_BROKER_RUNTIME_DIR=folder) as broker:
        assert run("ctl", "stop", AMQP_BROKER_RUNTIME_DIR=folder).returncode == 0
        assert broker.process.wait(20) == 0
        assert "RabbitMQ is asked to stop...\n" in broker.output
