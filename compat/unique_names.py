"""Unique names of queues, exchanges and other objects."""

from __future__ import annotations

import uuid


def unique_name(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:12]}"
