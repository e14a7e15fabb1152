"""The size of LMDB's map: address space, not disk."""

from __future__ import annotations

import logging
import mmap
import sys
from typing import Final

logger = logging.getLogger("amqp_broker.store")

# The file grows as needed.
MAP_BYTES: Final = 1 << 40


def map_bytes() -> int:
    """Return the size of the map: a quarter of the address space, if that is limited (`ulimit -v`).

    The file is mapped twice while it is read, and the rest is for the process.
    """
    limit = _limit_bytes()
    return MAP_BYTES if limit is None else min(MAP_BYTES, limit // 4 // mmap.PAGESIZE * mmap.PAGESIZE)


def report() -> None:
    """Log that the store is small because of the limit."""
    limit = _limit_bytes()
    if limit is not None and map_bytes() < MAP_BYTES:
        logger.warning(
            "the address space is limited to %d bytes (ulimit -v), so the store holds %d bytes at most",
            limit,
            map_bytes(),
        )


def _limit_bytes() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit
