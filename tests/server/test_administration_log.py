from __future__ import annotations

import logging

import pytest

from amqp_broker.broker.admin.access import SHA256, Permission, TopicPermission
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.server import administration_log
from amqp_broker.server.administration_log import config_files, startup
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
