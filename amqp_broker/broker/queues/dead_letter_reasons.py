"""Reasons for which a queue gives up a message, as the header `x-death` has them."""

from __future__ import annotations

from typing import Final

EXPIRED: Final = "expired"
REJECTED: Final = "rejected"
MAXLEN: Final = "maxlen"
DELIVERY_LIMIT: Final = "delivery_limit"
