"""The report of a broker's vhost, as `amqp-broker run --report` asks for it."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.vhost_report import vhost_report
from tests.peer import Lab


def logging_lab(compat: str = "4.2") -> Lab:
    """Return a broker with an event log."""
    lab = Lab(compat=compat)
    lab.broker.event_logs.start(lab.vhost)
    return lab


def report_of(lab: Lab, *, moved_ms: int = 0, is_frozen: bool = False) -> dict[str, Any]:
    steps = vhost_report(lab.vhost, now_ms=lab.now, moved_ms=moved_ms, is_frozen=is_frozen)
    return finished(steps)
