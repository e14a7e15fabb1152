"""The figures of a run as JSON values, for the terminal and the web page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from amqp_broker.demo.fault_plan import FaultEvent
from amqp_broker.demo.ledger import ACKED, NACKED, RETURNED
from amqp_broker.demo.publisher import Publisher

TO_COME, NOW, OVER = "to come", "now", "over"
# Time of each number in `pulse`.
BUCKET_MS: Final = 100
# Marks in `grid`.
CELLS_MAX: Final = 1000
# Numbers in the `pulse` of the page.
PAGE_PULSE_MAX: Final = 240


class Begun(NamedTuple):
    """An event that has begun, before message `at`: its hits, and the time since the start of the run."""

    event: FaultEvent
    at: int
    hits: int
    began_ms: float


def figures(
    publisher: Publisher,
    begun: Sequence[Begun],
    to_come: Sequence[FaultEvent],
    connection: str,
    connects: int,
    elapsed_ms: float,
    pulse: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the figures of a run. `pulse` has the confirms of each BUCKET_MS since its start."""
    ledger, strategy = publisher.ledger, publisher.strategy
    plan = [
        {
            **_event(one.event, one.began_ms),
            "at": one.at,
            "hits": one.hits,
            "state": OVER if one.hits >= one.event.times else NOW,
        }
        for one in begun
    ]
    if publisher.is_blocked and plan:
        plan[-1]["state"] = NOW
    plan += [{**_event(event, None), "hits": 0, "state": TO_COME} for event in to_come]
    return {
        "strategy": strategy.name,
        "sentence": strategy.sentence,
        "promise": strategy.promise,
        "messages": publisher.messages,
        "window": publisher.window if strategy.resends else None,
        "started": publisher.started_count,
        "sent": ledger.sent_count,
        "confirmed": len(ledger.confirmed),
        "in_flight": publisher.waited_for_count,
        "median_ms": ledger.latency_ms(0.5),
        "p99_ms": ledger.latency_ms(0.99),
        "outcomes": {outcome: ledger.outcomes[outcome] for outcome in (ACKED, NACKED, RETURNED)},
        "retries": dict(publisher.retried),
        "connection": connection,
        "connects": connects,
        "elapsed_ms": elapsed_ms,
        "pulse": list(pulse),
        "grid": ledger.states(publisher.messages, CELLS_MAX),
        "plan": plan,
        "results": [],
    }


def for_page(run: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with a short pulse, whose numbers have a time of `bucket_ms` each."""
    pulse: list[int] = run["pulse"]
    share = max(1, -(-len(pulse) // PAGE_PULSE_MAX))
    merged = [sum(pulse[at : at + share]) for at in range(0, len(pulse), share)]
    return {**run, "pulse": merged, "bucket_ms": share * BUCKET_MS}


def result(run: dict[str, Any], proof: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a finished run."""
    return {
        **proof,
        "retries": sum(run["retries"].values()),
        "median_ms": run["median_ms"],
        "p99_ms": run["p99_ms"],
        "elapsed_ms": run["elapsed_ms"],
    }


def _event(event: FaultEvent, began_ms: float | None) -> dict[str, Any]:
    return {"at": event.at, "sentence": event.sentence, "times": event.times, "began_ms": began_ms}
