"""Allowed differences from RabbitMQ 3.10: patterns for the results of `compare`, each with its reason.

An unlisted difference fails the tests, and so does a pattern without a match.
"""

from __future__ import annotations

import re
from typing import Final

ERLANG: Final = "specific to Erlang's VM; amqp-broker answers -1 or 0, as RabbitMQ does for unknown values"
NEWER: Final = "as in RabbitMQ 4.2"
MORE: Final = "RabbitMQ omits it to save work; for amqp-broker it is free"

DIFFERENCES: Final = {
    # Erlang
    r".*\.garbage_collection: only here": ERLANG,
    r"nodes\S*\.ra_open_file_metrics\.ra_log_wal: 1, here 0": ERLANG,
    r".*\.backing_queue_status: not here": ERLANG,
    r".*\.listeners\[\]\.socket_opts.*": ERLANG,
    r'.*\.listeners\[\["clustering"\]\]: not here': "amqp-broker has no cluster",
    r'.*\.listeners\[\]\.ip_address: "::", here "127.0.0.1"': "RabbitMQ reports :: for every plugin",
    # Newer versions of RabbitMQ
    r".*\.recoverable_slaves: not here": NEWER,
    r".*\.(storage_version|delivery_limit): only here": NEWER,
    r"overview\S*\.(cluster_tags|node_tags|default_queue_type|is_op_policy_updating_enabled): only here": NEWER,
    r"whoami\.is_internal_user: only here": NEWER,
    r"nodes\S*\.being_drained: only here": NEWER,
    r".*\.leader: only here": NEWER,
    r".*\.exchange_types\[\[\"x-(delayed-message|local-random|modulus-hash)\"\]\]: only here": "plugins that we have",
    r"nodes\S*\.enabled_plugins.*": "plugins that we have",
    # Inputs that RabbitMQ does not validate
    r"queues\?disable_stats=true.*: only here": MORE,
    r"queues\?disable_stats=true.*\.(totals|type_specific): not here": MORE,
    r"queues\?disable_stats=true.*\.exclusive: null, here false": MORE,
    r'queues\?disable_stats=true\[\]\.state: "live", here "running"': "amqp-broker has one state in every list",
    r"overview\?disable_stats=true\.(contexts|listeners|object_totals\.(channels|consumers)): only here": MORE,
    # amqp-broker
    r".*\.message_stats\.disk_(reads|writes)(_details)?: not here": "amqp-broker's store has no such counters",
    r'.*\.properties_key: ".*~\S+", here ".*~\S+"': "an opaque hash of the arguments",
}
_COMPILED: Final = {re.compile(pattern): pattern for pattern in DIFFERENCES}


def listed_as(difference: str) -> str | None:
    """Return the pattern of an allowed difference, or None."""
    for expression, pattern in _COMPILED.items():
        if expression.fullmatch(difference):
            return pattern
    return None
