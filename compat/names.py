"""Names of queues, exchanges and the like that no other test uses."""

from __future__ import annotations

import uuid


def unique_name(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:12]}"
