"""Allowed differences from RabbitMQ 3.10: patterns for the results of `compare`, each with its reason.

An unlisted difference fails the tests, and so does a pattern that nothing needs.
"""

from __future__ import annotations

from typing import Final

ERLANG: Final = "only Erlang's machine and RabbitMQ's own store have it"
NO_SUM: Final = "RabbitMQ has no value for all queues together"
NEWER: Final = "RabbitMQ 4.2 has it so"

DIFFERENCES: Final = {
    r"(channel|connection|queue)_process_(reductions|memory_bytes): only there": ERLANG,
    r"(erlang_(gc|net|processes|scheduler)|io|msg_store|queue_(disk|index)|raft|schema_db)_\w+: only there": ERLANG,
    r"queue_messages_persistent_bytes(: labels \[\], here \[\[\]\]| : None, here 0.0)": NO_SUM,
    r"auth_attempts_detailed\w*: only there": "logins are not counted by where they come from; nor are they there",
    r"(queue_(get|get_ack|get_empty|messages_(acked|delivered|delivered_ack|redelivered))): only here": NEWER,
    r"alarms_\w+: only here": "RabbitMQ tells of alarms in one of three forms, we in all",
    r"global_messages_dead_lettered_confirmed: only there": "nothing is dead-lettered at least once here",
    r"global_messages_dead_lettered_\w+ .*at_least_once.*: 0.0, here None": "as above",
    r"queue_messages_published: labels .*": "we count by queue and exchange, not by channel",
    r"queue_consumer_capacity: labels \[\], here \[\[\]\]": "RabbitMQ has no value for all queues together",
    r"(build|identity)_info: labels .*": NEWER,
}
