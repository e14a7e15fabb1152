"""The findings of a report: sentences about what went wrong in a vhost, the worst first.

A finding has a kind, whose place in `Kind` is its rank, and a number of messages, which ranks it within its kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from enum import IntEnum, auto
from typing import Final, NamedTuple

from amqp_broker.pipeline.plots import shown
from amqp_broker.pipeline.report_tables import Row

# A consumer is slow if its p95 is this many times that of the fastest one of its queue, over as many deliveries.
SLOW_TIMES: Final = 5
SLOW_DELIVERIES_MIN: Final = 20
# A queue is behind if this share of its messages is still open, and at least as many.
BEHIND_SHARE: Final = 0.05
BEHIND_MIN: Final = 10
# Findings of a vhost, and of one kind.
FINDINGS_MAX: Final = 12
PER_KIND_MAX: Final = 3
# Reasons of the events `drop`, as sentences end.
DROPPED: Final = {
    "expired": "expired",
    "maxlen": "dropped by max-length",
    "delivery_limit": "dropped after too many deliveries (x-delivery-limit)",
    "purged": "purged",
    "queue_deleted": "lost with the deleted queue",
}
# A user wanted these.
WANTED: Final = ("purged", "queue_deleted")

Tables = Mapping[str, list[Row]]


class Kind(IntEnum):
    """The kinds of findings, the worst first."""

    LOST_DEAD_LETTERS = auto()
    UNROUTED = auto()
    GIVEN_UP = auto()
    NACKED = auto()
    LOOP = auto()
    NO_CONSUMER = auto()
    BEHIND = auto()
    DEAD_LETTERS = auto()
    REDELIVERED = auto()
    SLOW_CONSUMER = auto()
    REMOVED = auto()


class Finding(NamedTuple):
    """A sentence that begins with the name of a queue or an exchange, which is `subject`."""

    kind: Kind
    messages: float
    subject: str
    text: str


def findings(tables: Tables) -> list[Finding]:
    """Return the findings in the tables of a vhost (report_tables.TABLES), the worst first."""
    sources = (_dead_letters, _unrouted, _given_up, _nacked, _behind, _redelivered, _slow_consumers)
    found = sorted(
        (finding for source in sources for finding in source(tables)),
        key=lambda one: (one.kind, -one.messages, one.subject),
    )
    kept: list[Finding] = []
    kinds: Counter[Kind] = Counter()
    for finding in found:
        kinds[finding.kind] += 1
        if kinds[finding.kind] <= PER_KIND_MAX:
            kept.append(finding)
    return kept[:FINDINGS_MAX]


def count_of(number: float, noun: str = "message") -> str:
    """Return a number with its noun, in its plural if needed."""
    return f"{shown(number)} {noun}{'' if number == 1 else 's'}"


def were(number: float) -> str:
    return "was" if number == 1 else "were"


def _dead_letters(tables: Tables) -> Iterator[Finding]:
    for row in tables["dead_letters"]:
        queue, count, lost = row["queue"], row["dead_lettered"], row["lost"]
        if lost:
            text = f"{count_of(lost, 'dead letter')} ({row['reason']}) reached no queue and {were(lost)} lost."
            yield Finding(Kind.LOST_DEAD_LETTERS, lost, queue, text)
        if row["in_loops"]:
            looped = row["in_loops"]
            text = (
                f"{count_of(looped)} died here again for the same reason ({row['reason']}), one of them "
                f"{count_of(row['death_count_max'], 'time')}: dead letters circulate."
            )
            yield Finding(Kind.LOOP, looped, queue, text)
        elif count > lost:
            text = f"{count_of(count - lost)} {were(count - lost)} dead-lettered ({row['reason']})"
            text += f" to {', '.join(row['routed_queues'])}." if row["routed_queues"] else "."
            yield Finding(Kind.DEAD_LETTERS, count - lost, queue, text)


def _unrouted(tables: Tables) -> Iterator[Finding]:
    by_exchange: dict[str, list[Row]] = defaultdict(list)
    for row in tables["unrouted"]:
        by_exchange[row["exchange"] or ""].append(row)
    for exchange, rows in by_exchange.items():
        count = sum(row["messages"] for row in rows)
        first = rows[0]
        if len(rows) == 1:
            keys = f"all with the key '{first['routing_key']}'"
        else:
            keys = f"{count_of(first['messages'])} of them with the key '{first['routing_key']}'"
        text = f"{count_of(count)} {were(count)} routed to no queue, {keys}."
        yield Finding(Kind.UNROUTED, count, exchange or "(default exchange)", text)


def _given_up(tables: Tables) -> Iterator[Finding]:
    dead = {(row["queue"], row["reason"]): row["dead_lettered"] for row in tables["dead_letters"]}
    for row in tables["given_up"]:
        reason = row["reason"]
        count = row["messages"] - dead.get((row["queue"], reason), 0)
        if count > 0:
            kind = Kind.REMOVED if reason in WANTED else Kind.GIVEN_UP
            text = f"{count_of(count)} {were(count)} {DROPPED.get(reason, f'dropped ({reason})')}."
            if reason == "expired":
                text = f"{count_of(count)} expired, and no exchange took {'it' if count == 1 else 'them'}."
            yield Finding(kind, count, row["queue"], text)


def _nacked(tables: Tables) -> Iterator[Finding]:
    nacked: Counter[str] = Counter()
    for row in tables["exchanges"]:
        nacked[row["exchange"] or "(default exchange)"] += row["nacked"]
    for exchange, count in nacked.items():
        if count:
            yield Finding(Kind.NACKED, count, exchange, f"The broker nacked {count_of(count)}.")


def _behind(tables: Tables) -> Iterator[Finding]:
    consumers: Counter[str] = Counter(row["queue"] for row in tables["consumers"])
    arrived: dict[str, int] = {row["queue"]: row["arrived"] for row in tables["totals"]}
    delivered: dict[str, int] = {row["queue"]: row["delivered"] for row in tables["totals"]}
    for row in tables["open"]:
        queue, count = row["queue"], row["open"]
        age = f"the oldest for {shown(row['oldest_age_s'])} s"
        if not consumers[queue] and not delivered[queue]:
            text = f"It has no consumer: {count_of(count)} {'waits' if count == 1 else 'wait'}, {age}."
            yield Finding(Kind.NO_CONSUMER, count, queue, text)
        elif count >= max(BEHIND_MIN, BEHIND_SHARE * arrived[queue]):
            number = consumers[queue]
            whose = "Its one consumer settles" if number == 1 else f"Its {shown(number)} consumers settle"
            if not number:
                whose = "Its consumers settle"
            total = arrived[queue]
            text = (
                f"{whose} fewer messages than arrive: {shown(count)} of {shown(total)} are open, "
                f"{age}; {shown(row['delivered'])} of these are with a consumer."
            )
            yield Finding(Kind.BEHIND, count, queue, text)


def _redelivered(tables: Tables) -> Iterator[Finding]:
    for row in tables["redelivery"]:
        count = row["messages_redelivered"]
        if count:
            text = (
                f"{shown(count)} of {count_of(row['messages'])} {were(count)} delivered more than once, one of them "
                f"{count_of(row['deliveries_max'], 'time')}."
            )
            yield Finding(Kind.REDELIVERED, count, row["queue"], text)


def _slow_consumers(tables: Tables) -> Iterator[Finding]:
    by_queue: dict[str, list[Row]] = defaultdict(list)
    for row in tables["consumers"]:
        if row["handling_ms_p95"] is not None and row["acked"] >= SLOW_DELIVERIES_MIN:
            by_queue[row["queue"]].append(row)
    for queue, rows in by_queue.items():
        slowest, fastest = rows[0], rows[-1]
        if slowest["handling_ms_p95"] >= SLOW_TIMES * fastest["handling_ms_p95"] > 0:
            text = (
                f"Its consumer {name_of(slowest)} takes {shown(slowest['handling_ms_p95'])} ms for a message (p95), "
                f"{name_of(fastest)} {shown(fastest['handling_ms_p95'])} ms."
            )
            yield Finding(Kind.SLOW_CONSUMER, slowest["acked"], queue, text)


def name_of(row: Row) -> str:
    """Return the name of a connection: that of its client, or that of its addresses."""
    return str(row["connection_name"] or row["connection"])
