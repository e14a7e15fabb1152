"""The modules of the tools' commands, and the names of the commands in each.

By it, a command is run without importing the modules of all others, which would take a quarter of its time.
"""

from __future__ import annotations

from typing import Final

MODULES: Final = {
    "diagnostic_commands": (
        "alarms check_alarms check_certificate_expiration check_if_node_is_mirror_sync_critical "
        "check_if_node_is_quorum_critical check_local_alarms check_port_connectivity check_port_listener "
        "check_protocol_listener check_running check_virtual_hosts cluster_status environment is_booting "
        "is_running listeners log_location memory_breakdown node_health_check os_env ping report resolve_hostname "
        "server_version status version"
    ),
    "list_commands": (
        "list_bindings list_channels list_connections list_consumers list_deprecated_features list_exchanges "
        "list_feature_flags list_global_parameters list_operator_policies list_parameters list_permissions "
        "list_policies list_queues list_topic_permissions list_unresponsive_queues list_user_permissions "
        "list_user_topic_permissions list_users list_vhosts"
    ),
    "user_commands": (
        "add_user authenticate_user change_password clear_password delete_user hash_password set_user_tags"
    ),
    "vhost_commands": (
        "add_vhost delete_vhost disable_vhost_deletion_protection enable_vhost_deletion_protection "
        "reconcile_vhosts restart_vhost set_vhost_tags trace_off trace_on update_vhost_metadata"
    ),
    "permission_commands": (
        "clear_permissions clear_topic_permissions set_permissions set_permissions_globally set_topic_permissions"
    ),
    "limit_commands": (
        "clear_user_limits clear_vhost_limits list_user_limits list_vhost_limits set_user_limits set_vhost_limits"
    ),
    "policy_commands": (
        "clear_global_parameter clear_operator_policy clear_parameter clear_policy set_global_parameter "
        "set_operator_policy set_parameter set_policy"
    ),
    "node_commands": (
        "await_online_nodes await_startup force_boot force_gc force_reset reset resume_listeners rotate_logs "
        "set_cluster_name set_disk_free_limit set_log_level set_vm_memory_high_watermark shutdown start_app stop "
        "stop_app suspend_listeners wait"
    ),
    "operation_commands": (
        "close_all_connections close_all_user_connections close_connection delete_queue enable_feature_flag eval "
        "eval_file export_definitions import_definitions purge_queue"
    ),
    "queue_commands": (
        "add_member add_replica coordinator_status delete_member delete_replica force_checkpoint grow "
        "grow_to_count metadata_store_status peek quorum_status rebalance reclaim_quorum_memory restart_stream "
        "shrink stream_status transfer_leadership"
    ),
    "plugin_commands": "directories disable enable is_enabled list set",
    "cluster_commands": (
        "autocomplete await_online_quorum_plus_one drain force_standalone_khepri_boot forget_cluster_node "
        "has_reached_target_cluster_size join_cluster post_upgrade rename_cluster_node revive "
        "update_cluster_nodes"
    ),
    "runtime_commands": (
        "activate_free_disk_space_monitoring certificates check_for_quorum_queues_without_an_elected_leader "
        "check_if_any_deprecated_features_are_used check_if_cluster_has_classic_queue_mirroring_policy "
        "check_if_metadata_store_is_initialized check_if_metadata_store_is_initialized_with_data "
        "check_if_new_quorum_queue_replicas_have_finished_initial_sync cipher_suites command_line_arguments "
        "consume_event_stream deactivate_free_disk_space_monitoring decode decrypt_conf_value "
        "disable_auth_attempt_source_tracking discover_peers enable_auth_attempt_source_tracking encode "
        "encrypt_conf_value erlang_cookie_hash erlang_cookie_sources erlang_version exec "
        "list_channel_interceptors list_ciphers list_hashes list_network_interfaces list_node_auth_attempt_stats "
        "list_operator_policies_with_classic_queue_mirroring list_policies_that_match "
        "list_policies_with_classic_queue_mirroring log_tail log_tail_stream maybe_stuck message_size_stats "
        "observer remote_shell remove_classic_queue_mirroring_from_policies reset_node_auth_attempt_metrics "
        "reset_stats_db resolver_info runtime_thread_stats set_channel_interceptor_priorities tls_versions"
    ),
    "shovel_commands": "delete_shovel restart_shovel shovel_status",
    "mirroring_commands": "cancel_sync_queue sync_queue",
}
