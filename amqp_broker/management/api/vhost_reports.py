"""The report of a vhost, which `amqp-broker run --report` writes into a page after a failed command."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents.vhost_report import vhost_report
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


@endpoints.on("GET /_broker/report/{vhost}", tag=ADMINISTRATOR)
def report(request: Request) -> Steps[dict[str, Any]]:
    """Return what a [report](test-report.md) shows of a vhost: lives of messages, topology, clients, faults, clock."""
    node = request.node
    moved_ms, is_frozen = node.clock_offset(), node.is_frozen()
    return vhost_report(request.vhost, now_ms=node.now(), moved_ms=moved_ms, is_frozen=is_frozen)
