"""Parts of a lake that a job reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyarrow.dataset import Expression


@dataclass(frozen=True)
class Slice:
    """Events from `since` to before `until`, of one vhost or of all."""

    since: datetime | None = None
    until: datetime | None = None
    vhost: str | None = None

    @property
    def filter(self) -> Expression | None:
        """The condition for pyarrow."""
        import pyarrow.dataset as arrow

        conditions = []
        if self.since is not None:
            conditions.append(arrow.field("time") >= self.since)
        if self.until is not None:
            conditions.append(arrow.field("time") < self.until)
        if self.vhost is not None:
            conditions.append(arrow.field("vhost") == self.vhost)
        found = None
        for condition in conditions:
            found = condition if found is None else found & condition
        return found


EVERYTHING: Final = Slice()


@dataclass(frozen=True)
class Replayed:
    """The publishes that a replay takes: those of a slice, or of an exchange or a routing key in it."""

    part: Slice
    exchange: str | None = None
    routing_key: str | None = None
