"""RabbitMQ with its tools and our broker with ours: after the same commands they say the same."""

from __future__ import annotations

import pytest

from compat.ctl.running import Ours, Theirs

# One after the other, on both brokers.
CHANGES = [
    "rabbitmqctl add_user alice pw",
    "rabbitmqctl add_user alice pw",
    "rabbitmqctl -q add_user bob pw",
    "rabbitmqctl list_users",
    "rabbitmqctl change_password alice pw2",
    "rabbitmqctl authenticate_user alice pw2",
    "rabbitmqctl authenticate_user alice pw",
    "rabbitmqctl clear_password alice",
    "rabbitmqctl authenticate_user alice pw2",
    "rabbitmqctl set_user_tags alice management",
    "rabbitmqctl list_users --formatter json",
    "rabbitmqctl add_vhost side",
    "rabbitmqctl set_permissions -p side alice ^a b .*",
    "rabbitmqctl list_permissions -p side",
    "rabbitmqctl list_user_permissions alice",
    "rabbitmqctl clear_permissions -p side alice",
    "rabbitmqctl set_topic_permissions -p side alice amq.topic ^a b",
    "rabbitmqctl list_topic_permissions -p side",
    "rabbitmqctl clear_topic_permissions -p side alice",
    'rabbitmqctl set_policy -p side --priority 3 --apply-to queues p ^q \'{"max-length":5,"expires":1000}\'',
    "rabbitmqctl list_policies -p side",
    "rabbitmqctl clear_policy -p side p",
    "rabbitmqctl clear_policy -p side p",
    "rabbitmqctl set_vhost_limits -p side '{\"max-connections\": 10}'",
    "rabbitmqctl list_vhost_limits -p side",
    "rabbitmqctl clear_vhost_limits -p side",
    "rabbitmqctl set_user_limits alice '{\"max-connections\": 10}'",
    "rabbitmqctl list_user_limits --user alice",
    "rabbitmqctl trace_on -p side",
    "rabbitmqctl list_vhosts name tracing",
    "rabbitmqctl trace_off -p side",
    "rabbitmqctl delete_vhost side",
    "rabbitmqctl delete_user alice",
    "rabbitmqctl delete_user bob",
]
HEALTH = [
    "rabbitmqctl ping",
    "rabbitmqctl -q ping",
    "rabbitmq-diagnostics ping",
    "rabbitmq-diagnostics -q check_running",
    "rabbitmq-diagnostics check_running",
    "rabbitmq-diagnostics -q check_local_alarms",
    "rabbitmq-diagnostics -q alarms",
    "rabbitmq-diagnostics check_alarms",
    "rabbitmq-diagnostics check_virtual_hosts",
    "rabbitmq-diagnostics is_booting",
    "rabbitmq-diagnostics check_protocol_listener amqp",
    "rabbitmq-diagnostics check_if_node_is_quorum_critical",
    "rabbitmqctl node_health_check",
    "rabbitmqctl await_startup",
    "rabbitmqctl eval node().",
]
# What begins with stop_app and ends with a node that runs again.
STOPPED = [
    "rabbitmqctl set_vm_memory_high_watermark 0",
    "rabbitmq-diagnostics check_local_alarms",
    "rabbitmq-diagnostics check_alarms",
    "rabbitmq-diagnostics alarms",
    "rabbitmqctl set_vm_memory_high_watermark 0.4",
    "rabbitmqctl reset",
    "rabbitmqctl stop_app",
    "rabbitmqctl list_users",
    "rabbitmq-diagnostics check_running",
    "rabbitmqctl ping",
    "rabbitmqctl reset",
    "rabbitmqctl start_app",
    "rabbitmq-diagnostics -q check_running",
    "rabbitmqctl list_users",
]


@pytest.mark.parametrize("line", [*HEALTH, *CHANGES, *STOPPED])
def test_our_node_says_what_rabbitmq_says(ours: Ours, theirs: Theirs, line: str) -> None:
    assert ours.run(line).without(ours.node) == theirs.run(line).without(theirs.node)


@pytest.mark.parametrize("line", ["rabbitmqctl list_users", "rabbitmqctl ping"])
def test_a_node_that_is_not_there_is_69(ours: Ours, theirs: Theirs, line: str) -> None:
    real, here = (side.run(f"{line} -n nowhere@localhost") for side in (theirs, ours))
    assert (here.exit_code, here.output) == (real.exit_code, real.output)
    assert here.complaint.splitlines()[0] == real.complaint.splitlines()[0]
