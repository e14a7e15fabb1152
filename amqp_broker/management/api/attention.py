"""Findings of what is wrong now, for the start page and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.attention.client_findings import findings_about_clients, findings_of_exchange
from amqp_broker.management.attention.node_findings import alarms_of, findings_of_node
from amqp_broker.management.attention.queue_findings import findings_of
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import no_such
from amqp_broker.management.http.auth import MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import VHostQuery

if TYPE_CHECKING:
    from amqp_broker.management.attention.finding import Finding

# Findings in an answer, the most urgent first.
ROWS_MAX: Final = 200

endpoints = Endpoints()


@endpoints.on("GET /_broker/attention", tag=MONITORING, query=VHostQuery)
def attention(request: Request) -> Steps[list[dict[str, Any]]]:
    """List what [needs attention](attention.md), the most urgent first: in one vhost and at the node, or in all."""
    broker, node = request.broker, request.node
    wanted = request.read_query(VHostQuery).vhost
    if wanted is not None and wanted not in broker.vhosts:
        raise no_such(f"no vhost '{wanted}'")
    yield from broker.incidents.look()
    now = broker.real_now()
    urgent = Urgent(wanted)
    for finding in chain(
        alarms_of(broker, node), findings_of_node(broker, node), findings_about_clients(broker.incidents)
    ):
        urgent.add(finding)
        yield
    for vhost in list(broker.vhosts.values()):
        if wanted not in (None, vhost.name):
            continue
        for exchange in list(vhost.exchanges.values()):
            urgent.add(*findings_of_exchange(vhost, exchange, now))
            yield
        for queue in list(vhost.queues.values()):
            if not queue.is_deleted:
                urgent.add(*findings_of(queue, node.rates, now))
            yield
    return finding_rows(urgent.found())


class Urgent:
    """The most urgent of all findings that are added, about one vhost and the node, or about all (None)."""

    def __init__(self, vhost: str | None) -> None:
        self._vhost = vhost
        self._kept: list[Finding] = []

    def add(self, *findings: Finding) -> None:
        for finding in findings:
            if self._vhost is None or finding.place.get("vhost", self._vhost) == self._vhost:
                self._kept.append(finding)
        if len(self._kept) >= 2 * ROWS_MAX:
            self._kept = self.found()

    def found(self) -> list[Finding]:
        """Return at most ROWS_MAX findings, the most urgent first."""
        return sorted(self._kept, key=lambda finding: finding.rank())[:ROWS_MAX]


def finding_rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the rows of findings."""
    return [_row(finding) for finding in findings]


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "level": finding.level,
        "sentence": text_of(finding.sentence),
        "remedy": finding.remedy,
        "since_ms": finding.since_ms,
        **{name: text_of(value) if isinstance(value, str) else value for name, value in finding.place.items()},
    }
