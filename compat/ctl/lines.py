"""The compared command lines, by area."""

from __future__ import annotations

from collections import Counter

# Commands at a newly started node, which leave it unchanged.
HEALTH = (
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
)
# Repeated commands are refused, which shows that the first one succeeded.
CHANGES = (
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
    "rabbitmqctl set_user_tags alice management custom management",
    "rabbitmqctl list_users --formatter json",
    # Commands may change a protected user, whom the HTTP API of 4.2 and later keeps as it is.
    "rabbitmqctl set_user_tags bob protected",
    "rabbitmqctl change_password bob pw3",
    "rabbitmqctl authenticate_user bob pw3",
    "rabbitmqctl set_user_tags bob protected management",
    "rabbitmqctl clear_password bob",
    "rabbitmqctl add_vhost side",
    "rabbitmqctl set_permissions -p side alice ^a b .*",
    "rabbitmqctl list_permissions -p side",
    "rabbitmqctl list_user_permissions alice",
    "rabbitmqctl clear_permissions -p side alice",
    "rabbitmqctl set_topic_permissions -p side alice amq.topic ^a b",
    "rabbitmqctl list_topic_permissions -p side",
    "rabbitmqctl clear_topic_permissions -p side alice",
    "rabbitmqctl set_topic_permissions -p side alice amq.topic ^a b",
    "rabbitmqctl clear_topic_permissions -p side alice amq.topic",
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
    "rabbitmqctl set_global_parameter gp '{\"a\":1}'",
    "rabbitmqctl clear_global_parameter gp",
    "rabbitmqctl clear_global_parameter gp",
    "rabbitmqctl set_cluster_name some@cluster",
    "rabbitmqctl delete_vhost side",
    "rabbitmqctl delete_vhost side",
    "rabbitmqctl delete_user alice",
    "rabbitmqctl delete_user bob",
)
REFUSED = (
    "rabbitmqctl add_user guest pw",
    "rabbitmqctl change_password nobody pw",
    "rabbitmqctl set_user_tags nobody x",
    "rabbitmqctl delete_user nobody",
    "rabbitmqctl list_user_permissions nobody",
    "rabbitmqctl set_permissions -p nowhere guest .* .* .*",
    "rabbitmqctl set_permissions nobody .* .* .*",
    "rabbitmqctl delete_vhost nowhere",
    "rabbitmqctl set_policy p ^q '{\"bogus\":5}'",
    "rabbitmqctl set_policy p ^q 'not json'",
    "rabbitmqctl set_policy -p nowhere p ^q '{\"max-length\":5}'",
    "rabbitmqctl clear_policy nothing",
    "rabbitmqctl set_parameter bogus name 1",
    "rabbitmqctl clear_global_parameter nothing",
    "rabbitmqctl delete_queue nothing",
    "rabbitmqctl purge_queue nothing",
    "rabbitmqctl add_user",
    "rabbitmqctl add_user a b c",
    "rabbitmqctl add_user '' x",
    "rabbitmqctl list_queues --bogus",
    "rabbitmqctl list_users --timeout abc",
    "rabbitmqctl list_users -t 0",
    "rabbitmqctl list_queue",
    "rabbitmqctl add_usr x y",
    "rabbitmqctl help nothing",
    "rabbitmqctl set_vm_memory_high_watermark 5",
    "rabbitmqctl set_vm_memory_high_watermark bogus",
    "rabbitmqctl set_disk_free_limit bogus",
    "rabbitmqctl set_log_level bogus",
    "rabbitmqctl import_definitions /nowhere.json",
)
# In the words of version 1, whose script RabbitMQ serves.
ADMIN = (
    "rabbitmqadmin list users name tags",
    "rabbitmqadmin -f tsv list exchanges",
    "rabbitmqadmin -f kvp list exchanges name type",
    "rabbitmqadmin -f long list vhosts name tracing",
    "rabbitmqadmin -f bash list vhosts",
    "rabbitmqadmin -f raw_json list vhosts name",
    "rabbitmqadmin -d 2 list bindings",
    "rabbitmqadmin -S name -R list exchanges",
    "rabbitmqadmin list permissions",
    "rabbitmqadmin list policies",
    "rabbitmqadmin show overview rabbitmq_version",
    "rabbitmqadmin list bogus",
    "rabbitmqadmin declare queue",
    "rabbitmqadmin declare queue x",
    "rabbitmqadmin declare bogus name=x",
    "rabbitmqadmin delete queue name=nothing",
    "rabbitmqadmin -p wrong list users",
    "rabbitmqadmin declare policy name=p pattern=^x definition='{\"bogus\":3}'",
    "rabbitmqadmin bogus",
)
# An alarm, and a reset, stop and start of the node, which remove everything.
STOPPED = (
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
)
NOWHERE = (
    "rabbitmqctl list_users -n nowhere@localhost",
    "rabbitmqctl ping -n nowhere@localhost",
)
# Commands at a broker with objects of every kind (playing.py).
LISTS = (
    "rabbitmqctl list_users",
    "rabbitmqctl -q list_users",
    "rabbitmqctl -s list_users",
    "rabbitmqctl list_users --formatter json",
    "rabbitmqctl list_users --formatter csv",
    "rabbitmqctl list_vhosts name tracing description",
    "rabbitmqctl list_permissions",
    "rabbitmqctl list_permissions -p nowhere",
    "rabbitmqctl list_user_permissions guest",
    "rabbitmqctl list_policies",
    "rabbitmqctl list_parameters",
    "rabbitmqctl list_queues",
    "rabbitmqctl list_queues name durable auto_delete arguments type policy messages consumers",
    "rabbitmqctl --silent list_queues name,durable,name",
    "rabbitmqctl list_queues --formatter json name durable arguments messages",
    "rabbitmqctl list_queues --formatter csv name arguments",
    "rabbitmqctl list_queues --formatter pretty_table name arguments",
    "rabbitmqctl list_queues --formatter erlang name messages arguments",
    "rabbitmqctl -t 30 list_queues -p nowhere",
    "rabbitmqctl list_queues -p empty --formatter json",
    "rabbitmqctl list_queues bogus -q",
    "rabbitmqctl list_exchanges name type durable auto_delete internal arguments policy",
    "rabbitmqctl list_bindings",
    "rabbitmqctl list_bindings --formatter json",
    "rabbitmqctl list_connections user peer_host state channels protocol auth_mechanism vhost timeout",
    "rabbitmqctl list_channels number user vhost consumer_count messages_unacknowledged prefetch_count confirm name",
    "rabbitmqctl list_consumers queue_name consumer_tag ack_required prefetch_count active arguments",
    "rabbitmqctl list_consumers --formatter json queue_name consumer_tag arguments",
)
# In the order of execution.
AREAS: dict[str, tuple[str, ...]] = {
    "health": HEALTH,
    "changes": CHANGES,
    "refused": REFUSED,
    "admin": ADMIN,
    "stopped": STOPPED,
    "nowhere": NOWHERE,
    "lists": LISTS,
}


def questions(area: str) -> dict[str, str]:
    """Return the command lines of an area by their names in the records; repeated lines are numbered."""
    found: dict[str, str] = {}
    counts = Counter[str]()
    for line in AREAS[area]:
        counts[line] += 1
        again = f" ({counts[line]})" if counts[line] > 1 else ""
        found[f"{area}/{line}{again}"] = line
    return found
