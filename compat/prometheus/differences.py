"""Allowed differences from RabbitMQ 3.10: patterns for the results of `compare`, each with its reason.

An unlisted difference fails the tests, and so does a pattern that nothing needs.
"""

from __future__ import annotations

from typing import Final

NEWER: Final = "RabbitMQ 4.2 has it so"

DIFFERENCES: Final = {
    r"raft_\w+: only there": "there is no Raft log: one node agrees with itself",
    r"(queue_(get|get_ack|get_empty|messages_(acked|delivered|delivered_ack|redelivered))): only here": NEWER,
    r"alarms_\w+: only here": "RabbitMQ tells of alarms in one of two forms, we in both",
    r"queue_messages_published: labels .*": "we count by queue and exchange, not by channel",
    r"identity_info: labels .*": NEWER,
}
