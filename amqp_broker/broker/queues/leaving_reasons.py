"""Reasons for which messages leave a queue or return to it, as the event log has them."""

from __future__ import annotations

from typing import Final

# Of messages that are dropped.
PURGED: Final = "purged"
QUEUE_DELETED: Final = "queue_deleted"
RETENTION: Final = "retention"
EXCHANGE_DELETED: Final = "exchange_deleted"
DUPLICATE: Final = "duplicate"

# Of messages that are ready again.
CHANNEL_CLOSED: Final = "channel_closed"
CONNECTION_CLOSED: Final = "connection_closed"
TIMED_OUT: Final = "timed_out"
CANCELLED: Final = "cancelled"
DUE: Final = "due"

# Of messages that an exchange has kept: due, too.
HISTORY: Final = "history"

# Of messages of a transaction: a closed channel or connection, too.
ROLLBACK: Final = "rollback"
COMMIT_FAILED: Final = "commit_failed"
