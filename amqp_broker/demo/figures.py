"""What is shown of a run, in the terminal and on the page: plain values, as JSON has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amqp_broker.demo.ledger import ACKED, NACKED, RETURNED
from amqp_broker.demo.publisher import Publisher
from amqp_broker.demo.storm import Gust

TO_COME, NOW, OVER = "to come", "now", "over"


def figures(
    publisher: Publisher,
    struck: Sequence[tuple[Gust, int]],
    to_come: Sequence[Gust],
    connection: str,
    connects: int,
    elapsed_ms: float,
) -> dict[str, Any]:
    """A run as it is now. `struck` are the gusts that have come, with how often each has struck."""
    ledger, strategy = publisher.ledger, publisher.strategy
    storm = [
        {**_told(gust), "hits": hits, "state": OVER if hits >= gust.times else NOW, "times": gust.times}
        for gust, hits in struck
    ]
    if publisher.is_blocked and storm:
        storm[-1]["state"] = NOW
    storm += [{**_told(gust), "hits": 0, "state": TO_COME, "times": gust.times} for gust in to_come]
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
        "storm": storm,
        "results": [],
    }


def result(told: dict[str, Any], proof: dict[str, Any]) -> dict[str, Any]:
    """What a run that is over came to."""
    return {
        **proof,
        "retries": sum(told["retries"].values()),
        "median_ms": told["median_ms"],
        "p99_ms": told["p99_ms"],
        "elapsed_ms": told["elapsed_ms"],
    }


def _told(gust: Gust) -> dict[str, Any]:
    return {"at": gust.at, "sentence": gust.sentence}
