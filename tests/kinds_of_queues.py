"""The kinds of queues from which messages leave, and to which they return, in portions."""

from __future__ import annotations

from typing import Any, Final

# A profile, and the arguments of a queue.
QUEUES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "classic": ("4.2", {}),
    "priorities": ("4.2", {"x-max-priority": 5}),
    "quorum 3.13": ("3.13", {"x-queue-type": "quorum"}),
    "quorum 4.2": ("4.2", {"x-queue-type": "quorum"}),
    "quorum 4.3": ("4.3", {"x-queue-type": "quorum"}),
}
# Arguments of a queue whose dead letters go to the queue "dead".
DEAD: Final = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
