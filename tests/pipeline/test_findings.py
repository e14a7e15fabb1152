"""A report begins with sentences on what went wrong, the worst first."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.pipeline.findings import FINDINGS_MAX, Kind, findings
from amqp_broker.pipeline.report_page import by_vhost
from amqp_broker.pipeline.report_tables import TABLES, Report

EMPTY: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
TOTAL = {"queue": "q", "arrived": 200, "delivered": 150}
CONSUMER = {"queue": "q", "connection_name": "worker", "connection": "127.0.0.1:1", "acked": 50, "handling_ms_p95": 2.0}
OPEN = {"queue": "q", "open": 50, "delivered": 5, "oldest_age_s": 12.34}
DEAD = {"queue": "q", "reason": "rejected", "dead_lettered": 4, "lost": 0, "in_loops": 0, "death_count_max": 1}
DEAD |= {"routed_queues": ["dead"]}


@pytest.mark.parametrize(
    ("tables", "texts"),
    [
        ({}, []),
        (
            {"dead_letters": [DEAD | {"lost": 3, "routed_queues": ["dead"]}]},
            [
                "q: 3 dead letters (rejected) reached no queue and were lost.",
                "q: 1 message was dead-lettered (rejected) to dead.",
            ],
        ),
        (
            {"dead_letters": [DEAD | {"in_loops": 2, "death_count_max": 7}]},
            [
                "q: 2 messages died here again for the same reason (rejected), one of them 7 times: dead letters "
                "circulate."
            ],
        ),
        (
            {"unrouted": [{"exchange": "x", "routing_key": "k", "messages": 1}]},
            ["x: 1 message was routed to no queue, all with the key 'k'."],
        ),
        (
            {
                "unrouted": [
                    {"exchange": "", "routing_key": key, "messages": count} for key, count in (("k", 5), ("l", 2))
                ]
            },
            ["(default exchange): 7 messages were routed to no queue, 5 messages of them with the key 'k'."],
        ),
        (
            {"given_up": [{"queue": "q", "reason": "maxlen", "messages": 1310}]},
            ["q: 1,310 messages were dropped by max-length."],
        ),
        (
            {
                "given_up": [{"queue": "q", "reason": "expired", "messages": 6}],
                "dead_letters": [DEAD | {"reason": "expired"}],
            },
            [
                "q: 2 messages expired, and no exchange took them.",
                "q: 4 messages were dead-lettered (expired) to dead.",
            ],
        ),
        (
            {"exchanges": [{"exchange": "x", "nacked": 3}, {"exchange": "y", "nacked": 0}]},
            ["x: The broker nacked 3 messages."],
        ),
        (
            {"open": [OPEN], "totals": [TOTAL | {"delivered": 0}]},
            ["q: It has no consumer: 50 messages wait, the oldest for 12.34 s."],
        ),
        (
            {"open": [OPEN], "totals": [TOTAL], "consumers": [CONSUMER]},
            [
                "q: Its one consumer settles fewer messages than arrive: 50 of 200 are open, the oldest for 12.34 s; "
                "5 of these are with a consumer."
            ],
        ),
        ({"open": [OPEN | {"open": 9}], "totals": [TOTAL], "consumers": [CONSUMER]}, []),
        (
            {"redelivery": [{"queue": "q", "messages": 90, "messages_redelivered": 1, "deliveries_max": 4}]},
            ["q: 1 of 90 messages was delivered more than once, one of them 4 times."],
        ),
        (
            {"consumers": [CONSUMER | {"connection_name": None, "handling_ms_p95": 11.0}, CONSUMER]},
            ["q: Its consumer 127.0.0.1:1 takes 11 ms for a message (p95), worker 2 ms."],
        ),
        ({"consumers": [CONSUMER | {"handling_ms_p95": 9.0}, CONSUMER]}, []),
    ],
)
def test_a_finding_is_a_sentence(tables: dict[str, list[dict[str, Any]]], texts: list[str]) -> None:
    assert [f"{one.subject}: {one.text}" for one in findings(EMPTY | tables)] == texts


def test_losses_come_first_and_no_kind_fills_the_list(report: Report) -> None:
    tables = {name: by_vhost(report.select(f"SELECT * FROM {name}"))["/"] for name in TABLES}
    found = findings(tables)
    kinds = [one.kind for one in found]
    assert kinds == sorted(kinds)
    assert kinds[0] is Kind.LOST_DEAD_LETTERS
    assert len(found) == FINDINGS_MAX
    assert max(kinds.count(kind) for kind in kinds) == 3
