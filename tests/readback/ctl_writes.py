"""The commands of RabbitMQ's tools that change something."""

from __future__ import annotations

from typing import Any, Final

from tests.readback.case import Case, Step, ctl, put, seen
from tests.readback.http_writes import POLICY, SHOVEL, connection, queue, user, vhost
from tests.readback.node import Node
from tests.readback.own_writes import accepts, is_blocked, logs_connections

PLUGINS, QUEUES, DIAGNOSTICS, UPGRADE = "plugins", "queues", "diagnostics", "upgrade"

# Commands that change nothing here, with the reason.
WITHOUT_EFFECT: Final = {
    **dict.fromkeys(
        (
            *("forget_cluster_node", "join_cluster", "rename_cluster_node", "update_cluster_nodes", "force_boot"),
            *("force_standalone_khepri_boot", "grow", "grow_to_count", "shrink", "add_member", "delete_member"),
            *(
                "add_replica",
                "delete_replica",
                "transfer_leadership",
                "rebalance",
                "restart_stream",
                "reconcile_vhosts",
            ),
            "post_upgrade",
        ),
        "there is one node",
    ),
    **dict.fromkeys(
        ("force_gc", "force_checkpoint", "reclaim_quorum_memory", "reset_stats_db"), "it concerns memory alone"
    ),
    **dict.fromkeys(
        ("enable_auth_attempt_source_tracking", "disable_auth_attempt_source_tracking"), "not counted by address"
    ),
    "restart_vhost": "vhosts are running",
    "remove_classic_queue_mirroring_from_policies": "queues have no mirrors",
    "sync_queue": "queues have no mirrors",
    "cancel_sync_queue": "queues have no mirrors",
    "set_channel_interceptor_priorities": "there are no interceptors of plugins",
    "rotate_logs": "tests/server/test_log_output.py",
    "restart_shovel": "tests/server/test_shovel_runner.py",
    "exec": "there is no Elixir",
    "eval": "FORMS",
    "eval_file": "FORMS",
    **dict.fromkeys(("enable", "disable", "set"), "plugins are parts of the broker: test_plugin_commands.py"),
}
# Words with which the name of a command begins that only reads.
READING: Final = (
    *("list", "check", "is_", "status", "ping", "version", "environment", "report", "node_health", "server_version"),
    *(
        "memory_",
        "alarms",
        "listeners",
        "cluster_status",
        "resolve",
        "log_",
        "os_env",
        "await",
        "wait",
        "export",
        "hash",
    ),
    *(
        "authenticate",
        "quorum_status",
        "stream_status",
        "shovel_status",
        "coordinator",
        "metadata",
        "peek",
        "command_line",
        "erlang_",
    ),
    *("maybe_stuck", "observer", "remote_shell", "runtime_", "encode", "decode", "encrypt", "decrypt", "certificates"),
    *("cipher", "tls_", "discover", "consume_", "message_size", "autocomplete", "directories", "help", "has_reached"),
)


def closed(name: str) -> Step:
    """Close a connection that is found by the name of its client."""

    def write(node: Node) -> None:
        found = next(each for each in node.get("connections") if each["client_properties"].get("name") == name)
        pid = node.row("list_connections pid name", name=found["name"])["pid"]
        node.ctl("close_connection", pid, "enough")

    return write


def reset_by(command: str) -> Step:
    """Reset the node, which has to be stopped for that."""
    return lambda node: [node.ctl(each) for each in ("stop_app", command, "start_app")]


def imported(node: Node) -> None:
    path = node.folder / "definitions.json"
    path.write_text('{"vhosts": [{"name": "c.imported"}]}', "utf-8")
    node.ctl("import_definitions", str(path))


def listed(path: str, *columns: str, **there: Any) -> Any:
    """Read columns of the row that the HTTP API lists, or whether there is one."""

    def read(node: Node) -> Any:
        found = node.found(path, **there)
        return found is not None if not columns else found and [found[column] for column in columns]

    return read


DEFINITION: Final = '{"max-length":7}'
UPSTREAM: Final = '{"uri":"amqp://"}'

ACCESS: Final = (
    Case("add_user", ctl("add_user c.made c.made"), listed("users", "tags", name="c.made"), [[]], is_kept=True),
    Case("delete_user", ctl("delete_user c.gone"), seen("users/c.gone"), False, [user("c.gone")], is_kept=True),
    Case(
        "change_password",
        ctl("change_password c.changed other"),
        lambda node: node.can_log_in("c.changed"),
        False,
        [user("c.changed")],
        is_kept=True,
    ),
    Case(
        "clear_password",
        ctl("clear_password c.cleared"),
        lambda node: node.can_log_in("c.cleared"),
        False,
        [user("c.cleared")],
        is_kept=True,
    ),
    Case(
        "set_user_tags",
        ctl("set_user_tags c.tagged monitoring"),
        seen("users/c.tagged", "tags"),
        ["monitoring"],
        [user("c.tagged")],
        is_kept=True,
    ),
    Case(
        "set_permissions",
        ctl("set_permissions c.may ^a ^b ^c"),
        seen("permissions/%2F/c.may", "read"),
        "^c",
        [user("c.may")],
        is_kept=True,
    ),
    Case(
        "set_permissions_globally",
        ctl("set_permissions_globally c.all ^a ^b ^c"),
        seen("permissions/%2F/c.all", "write"),
        "^b",
        [user("c.all")],
        is_kept=True,
    ),
    Case(
        "clear_permissions",
        ctl("clear_permissions c.not"),
        seen("permissions/%2F/c.not"),
        False,
        [user("c.not")],
        is_kept=True,
    ),
    Case(
        "set_topic_permissions",
        ctl("set_topic_permissions c.topic amq.topic ^a ^b"),
        listed("topic-permissions", "write", user="c.topic"),
        ["^a"],
        [user("c.topic")],
        is_kept=True,
    ),
    Case(
        "clear_topic_permissions",
        ctl("clear_topic_permissions c.untopic"),
        listed("topic-permissions", user="c.untopic"),
        False,
        [user("c.untopic"), ctl("set_topic_permissions c.untopic amq.topic a b")],
        is_kept=True,
    ),
    Case(
        "set_user_limits",
        ctl("set_user_limits c.limited", '{"max-channels":9}'),
        listed("user-limits", "value", user="c.limited"),
        [{"max-channels": 9}],
        [user("c.limited")],
        is_kept=True,
    ),
    Case(
        "clear_user_limits",
        ctl("clear_user_limits c.unlimited all"),
        lambda node: node.can_log_in("c.unlimited"),
        True,
        [user("c.unlimited"), ctl("set_user_limits c.unlimited", '{"max-connections":0}')],
        is_kept=True,
    ),
    Case(
        "reset_node_auth_attempt_metrics",
        ctl("reset_node_auth_attempt_metrics", tool=DIAGNOSTICS),
        lambda node: (
            [each["auth_attempts"] for each in node.get(f"auth/attempts/{node.name}") if each["protocol"] == "amqp091"]
            or [0]
        ),
        [0],
        [connection("c.counted")],
    ),
)
OBJECTS: Final = (
    Case(
        "add_vhost",
        ctl("add_vhost c.made --description text"),
        seen("vhosts/c.made", "description"),
        "text",
        is_kept=True,
    ),
    Case("delete_vhost", ctl("delete_vhost c.gone"), seen("vhosts/c.gone"), False, [vhost("c.gone")], is_kept=True),
    Case(
        "set_vhost_tags",
        ctl("set_vhost_tags c.tagged one"),
        seen("vhosts/c.tagged", "tags"),
        ["one"],
        [vhost("c.tagged")],
        is_kept=True,
    ),
    Case(
        "update_vhost_metadata",
        ctl("update_vhost_metadata c.updated --description other"),
        seen("vhosts/c.updated", "description"),
        "other",
        [vhost("c.updated")],
        is_kept=True,
    ),
    Case(
        "enable_vhost_deletion_protection",
        ctl("enable_vhost_deletion_protection c.safe"),
        seen("vhosts/c.safe", "protected_from_deletion"),
        True,
        [vhost("c.safe")],
        is_kept=True,
    ),
    Case(
        "disable_vhost_deletion_protection",
        ctl("disable_vhost_deletion_protection c.unsafe"),
        seen("vhosts/c.unsafe", "protected_from_deletion"),
        False,
        [vhost("c.unsafe", protected_from_deletion=True)],
        is_kept=True,
    ),
    Case(
        "set_vhost_limits",
        ctl("set_vhost_limits -p c.limited", '{"max-queues":3}'),
        listed("vhost-limits", "value", vhost="c.limited"),
        [{"max-queues": 3}],
        [vhost("c.limited")],
        is_kept=True,
    ),
    Case(
        "clear_vhost_limits",
        ctl("clear_vhost_limits -p c.unlimited"),
        listed("vhost-limits", vhost="c.unlimited"),
        False,
        [vhost("c.unlimited"), ctl("set_vhost_limits -p c.unlimited", '{"max-queues":3}')],
        is_kept=True,
    ),
    Case("trace_on", ctl("trace_on -p c.traced"), seen("vhosts/c.traced", "tracing"), True, [vhost("c.traced")]),
    Case(
        "trace_off",
        ctl("trace_off -p c.untraced"),
        seen("vhosts/c.untraced", "tracing"),
        False,
        [vhost("c.untraced"), ctl("trace_on -p c.untraced")],
        is_kept=True,
    ),
    Case(
        "set_policy",
        ctl("set_policy --priority 3 --apply-to queues c.made ^none", DEFINITION),
        seen("policies/%2F/c.made", "definition"),
        {"max-length": 7},
        is_kept=True,
    ),
    Case(
        "clear_policy",
        ctl("clear_policy c.gone"),
        seen("policies/%2F/c.gone"),
        False,
        [put("policies/%2F/c.gone", POLICY)],
        is_kept=True,
    ),
    Case(
        "set_operator_policy",
        ctl("set_operator_policy c.made ^none", DEFINITION),
        seen("operator-policies/%2F/c.made", "pattern"),
        "^none",
        is_kept=True,
    ),
    Case(
        "clear_operator_policy",
        ctl("clear_operator_policy c.gone"),
        seen("operator-policies/%2F/c.gone"),
        False,
        [put("operator-policies/%2F/c.gone", POLICY)],
        is_kept=True,
    ),
    Case(
        "set_parameter",
        ctl("set_parameter federation-upstream c.made", UPSTREAM),
        seen("parameters/federation-upstream/%2F/c.made", "value"),
        {"uri": "amqp://"},
        is_kept=True,
    ),
    Case(
        "delete_shovel",
        ctl("delete_shovel c.gone"),
        seen("parameters/shovel/%2F/c.gone"),
        False,
        [put("parameters/shovel/%2F/c.gone", {"value": SHOVEL})],
        is_kept=True,
    ),
    Case(
        "clear_parameter",
        ctl("clear_parameter shovel c.gone"),
        seen("parameters/shovel/%2F/c.gone"),
        False,
        [put("parameters/shovel/%2F/c.gone", {"value": SHOVEL})],
        is_kept=True,
    ),
    Case(
        "set_global_parameter",
        ctl("set_global_parameter c.made [1]"),
        seen("global-parameters/c.made", "value"),
        [1],
        is_kept=True,
    ),
    Case(
        "clear_global_parameter",
        ctl("clear_global_parameter c.gone"),
        seen("global-parameters/c.gone"),
        False,
        [put("global-parameters/c.gone", {"value": 1})],
        is_kept=True,
    ),
    Case("set_cluster_name", ctl("set_cluster_name c.named"), seen("cluster-name", "name"), "c.named", is_kept=True),
    Case(
        "delete_queue", ctl("delete_queue c.gone"), seen("queues/%2F/c.gone"), False, [queue("c.gone", 1)], is_kept=True
    ),
    Case(
        "purge_queue",
        ctl("purge_queue c.purged"),
        lambda node: node.bodies("c.purged"),
        [],
        [queue("c.purged", 2)],
        is_kept=True,
    ),
    Case("import_definitions", imported, seen("vhosts/c.imported"), True, is_kept=True),
    Case(
        "enable_feature_flag",
        ctl("enable_feature_flag --opt-in khepri_db"),
        listed("feature-flags", "state", name="khepri_db"),
        ["enabled"],
        is_kept=True,
    ),
    Case(
        "close_connection", closed("c.closed"), lambda node: node.is_open("c.closed"), False, [connection("c.closed")]
    ),
    Case(
        "close_all_user_connections",
        ctl("close_all_user_connections c.closing enough"),
        lambda node: node.is_open("c.closing"),
        False,
        [user("c.closing"), connection("c.closing", "c.closing")],
    ),
    Case(
        "close_all_connections",
        ctl("close_all_connections --global enough"),
        lambda node: node.is_open("c.any"),
        False,
        [connection("c.any")],
    ),
)
HUGE: Final = ctl("set_disk_free_limit 100TB")
NODE: Final = (
    Case(
        "set_vm_memory_high_watermark", ctl("set_vm_memory_high_watermark 0.0000001"), is_blocked, True, is_alone=True
    ),
    Case("set_disk_free_limit", HUGE, is_blocked, True, is_alone=True),
    Case(
        "activate_free_disk_space_monitoring",
        ctl("activate_free_disk_space_monitoring"),
        is_blocked,
        True,
        [ctl("deactivate_free_disk_space_monitoring"), HUGE],
        is_alone=True,
    ),
    Case(
        "deactivate_free_disk_space_monitoring",
        ctl("deactivate_free_disk_space_monitoring"),
        is_blocked,
        False,
        [HUGE],
        is_alone=True,
    ),
    Case("set_log_level", ctl("set_log_level error"), logs_connections, False, is_alone=True),
    Case("stop_app", ctl("stop_app"), accepts, False, is_alone=True),
    Case("start_app", ctl("start_app"), accepts, True, [ctl("stop_app")], is_alone=True),
    Case("suspend_listeners", ctl("suspend_listeners"), accepts, False, is_alone=True),
    Case("resume_listeners", ctl("resume_listeners"), accepts, True, [ctl("suspend_listeners")], is_alone=True),
    Case("drain", ctl("drain", tool=UPGRADE), accepts, False, is_alone=True),
    Case("revive", ctl("revive", tool=UPGRADE), accepts, True, [ctl("drain", tool=UPGRADE)], is_alone=True),
    Case("stop", ctl("stop"), lambda node: node.ends(), True, is_alone=True),
    Case("shutdown", ctl("shutdown"), lambda node: node.ends(), True, is_alone=True),
    *(
        Case(command, reset_by(command), seen("queues/%2F/c.lost"), False, [queue("c.lost", 1)], is_alone=True)
        for command in ("reset", "force_reset")
    ),
)
