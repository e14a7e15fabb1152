"""What may differ between RabbitMQ 3.10 and us: patterns of what `compare` finds, each with its reason.

A difference that is not here fails the tests, and so does a pattern that nothing matches any more.
"""

from __future__ import annotations

import re
from typing import Final

ERLANG: Final = "only Erlang's machine has it; we say RabbitMQ's own -1 or 0 for what is not known"
MACHINE: Final = "it is of this process, or of this moment"
NEWER: Final = "RabbitMQ 4.2 has it so"
MORE: Final = "we know it where RabbitMQ does not look, and say it"

DIFFERENCES: Final = {
    # Erlang
    r".*garbage_collection(\.\w+)?: .*": ERLANG,
    r"nodes\S*\.(context_switches|gc_\w+|io_\w+|mnesia_\w+|msg_store_\w+|queue_index_\w+|proc_\w+): .*": ERLANG,
    r"nodes\S*\.(metrics_gc_queue_length|ra_open_file_metrics)\.\w+: not here": ERLANG,
    r".*\.backing_queue_status: not here": ERLANG,
    r"nodes\S*\.applications\[.*": ERLANG,
    r".*\.cowboy_opts: .*": ERLANG,
    r".*\.listeners\[\]\.socket_opts.*": ERLANG,
    r'.*\.listeners\[\["clustering"\]\]: not here': "there is no cluster",
    r'.*\.listeners\[\]\.ip_address: "::", here "127.0.0.1"': "RabbitMQ tells :: whatever the plugin listens at",
    # This machine, this moment
    r"nodes\S*\.(db_dir|config_files\S*|log_files\S*|disk_free|sockets_total): .*": MACHINE,
    r"nodes\S*\.(fd_used|mem_used|mem_limit): .*": MACHINE,
    # Newer versions
    r".*\.recoverable_slaves: not here": NEWER,
    r".*\.(storage_version|delivery_limit): only here": NEWER,
    r"overview\S*\.(cluster_tags|node_tags|default_queue_type|is_op_policy_updating_enabled): only here": NEWER,
    r"whoami\.is_internal_user: only here": NEWER,
    r"nodes\S*\.being_drained: only here": NEWER,
    r"nodes\S*\.auth_mechanisms\[.*": NEWER,
    r".*\.leader: only here": NEWER,
    r".*\.exchange_types\[\[\"x-(delayed-message|local-random|modulus-hash)\"\]\]: only here": "plugins that we have",
    r"nodes\S*\.enabled_plugins.*": "plugins that we have",
    # What RabbitMQ does not look for
    r".*\.idle_since: only here": MORE,
    r"queues\?disable_stats=true.*: only here": MORE,
    r"queues\?disable_stats=true.*\.(totals|type_specific): not here": MORE,
    r"queues\?disable_stats=true.*\.exclusive: null, here false": MORE,
    r'queues\?disable_stats=true\[\]\.state: "live", here "running"': "a queue has one state, whoever asks",
    r"overview\?disable_stats=true\.(contexts|listeners|object_totals\.(channels|consumers)): only here": MORE,
    # Ours
    r".*\.user_who_performed_action: not here": "who declared an exchange is not remembered",
    r".*\.message_stats\.disk_(reads|writes)(_details)?: not here": "our store counts otherwise",
    r'connections/\S*\.(peer_cert|ssl)_\w+: "", here null': "what is not there is null, as in RabbitMQ's own list",
    r".*prefetch_count: 7, here 0": "a consumer that needs not settle has no limit, whatever its channel says",
    r'.*\.properties_key: ".*~\S+", here ".*~\S+"': "an opaque text that stands for arguments",
}
_COMPILED: Final = {re.compile(pattern): pattern for pattern in DIFFERENCES}


def listed_as(difference: str) -> str | None:
    """The pattern of a difference that may be; None: it may not."""
    for expression, pattern in _COMPILED.items():
        if expression.fullmatch(difference):
            return pattern
    return None
