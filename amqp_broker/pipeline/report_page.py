"""A report as one self-contained HTML page, which can be mailed or opened from a disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from amqp_broker.pipeline.findings import findings, name_of
from amqp_broker.pipeline.intervals import TracedTime, interval_text
from amqp_broker.pipeline.page_document import document
from amqp_broker.pipeline.plots import Chart, Without, shown
from amqp_broker.pipeline.report_tables import PERCENTILES, Report, Row
from amqp_broker.pipeline.way_picture import picture

NOTHING: Final = "-"
# Times of a message in a queue, by their columns.
WAYS: Final = {"wait": "to delivery", "handling": "to ack", "total": "in all"}
# Limits per vhost: lines of a chart (the busiest queues or exchanges), and rows of a table.
LINES_MAX: Final = 8
ROWS_MAX: Final = 20_000
# The search hides most rows before a plot asks for its width.
SCRIPTS: Final = ("search.js", "uplot.js", "plots.js")

# Shown by its script.
SEARCH: Final = (
    '<p class="search" hidden><label>Search all tables '
    '<input type="search" placeholder="queue, connection or user" autocomplete="off"></label></p>'
)

# The table above the charts and those below: title, columns with their heads, and a note.
SHOWN: Final[dict[str, tuple[str, dict[str, str], str]]] = {
    "totals": (
        "Queues",
        {
            "queue": "queue",
            "arrived": "arrivals",
            "arrived_per_s": "a second",
            "delivered": "deliveries",
            "redelivered": "redeliveries",
            "acked": "acks",
            **{f"{name}_ms_{label}": f"{head} {label}" for name, head in WAYS.items() for label in PERCENTILES},
        },
        "Times in ms: from publish to first delivery, from delivery to ack, and from publish to ack. A delivery is the "
        "moment at which the broker gives the message to the consumer's connection. The time in sockets and networks "
        "until the consumer has it counts as handling, with the way back of its ack.",
    ),
    "dead_letters": (
        "Dead letters",
        {
            "queue": "queue",
            "reason": "reason",
            "dead_lettered": "messages",
            "in_loops": "repeated",
            "death_count_max": "most deaths",
            "lost": "routed nowhere",
            "age_ms_p50": "age p50 ms",
            "routed_queues": "went to",
        },
        "“Repeated” messages had died in this queue for this reason before: they circulate in a loop.",
    ),
    "given_up": (
        "Dropped and expired",
        {"queue": "queue", "reason": "reason", "messages": "messages"},
        "Messages that ended without a consumer; those that were dead-lettered are counted above as well.",
    ),
    "unrouted": (
        "Routed nowhere",
        {
            "exchange": "exchange",
            "routing_key": "routing key",
            "messages": "messages",
            "connection_name": "name",
            "connection": "one of the connections",
            "last_at": "last at",
        },
        "",
    ),
    "redelivery": (
        "Redelivery",
        {
            "queue": "queue",
            "delivered": "deliveries",
            "redelivered": "redeliveries",
            "messages": "messages",
            "messages_redelivered": "delivered more than once",
            "deliveries_max": "most deliveries of a message",
        },
        "",
    ),
    "consumers": (
        "Slowest consumers",
        {
            "queue": "queue",
            "connection_name": "name",
            "connection": "connection",
            "channel": "channel",
            "user": "user",
            "delivered": "deliveries",
            "acked": "acks",
            "nacked": "nacks",
            "handling_ms_p50": "p50 ms",
            "handling_ms_p95": "p95 ms",
            "handling_ms_p99": "p99 ms",
            "handling_ms_max": "max ms",
        },
        "Time from a delivery to its ack.",
    ),
    "publishers": (
        "Busiest publishers",
        {
            "connection_name": "name",
            "connection": "connection",
            "user": "user",
            "published": "publishes",
            "share_percent": "% of all",
            "body_bytes": "bytes",
            "unrouted": "routed nowhere",
        },
        "",
    ),
    "open": (
        "Still open",
        {
            "queue": "queue",
            "open": "messages",
            "delivered": "with a consumer",
            "oldest_at": "oldest since",
            "oldest_age_s": "age of oldest s",
        },
        "Messages that were not settled, expired or dropped by the end of the log.",
    ),
}


def page(report: Report, title: str = "Report of a message trace", note: str = "", way: Sequence[Row] = ()) -> str:
    """Return the page of an open report, with a note on top, and a picture of the events of a way."""
    summaries = report.select("SELECT * FROM summary")
    tables = {name: by_vhost(report.select(f"SELECT * FROM {name}")) for name in SHOWN}
    nacked = "SELECT vhost, exchange, sum(nacked) AS nacked FROM exchanges GROUP BY vhost, exchange"
    tables["exchanges"] = by_vhost(report.select(nacked))
    of_plots = [
        (_busiest(report, "queues", "queue", "sum(arrived) + sum(delivered)"), "queue"),
        (_busiest(report, "queues", "queue", "max(depth)"), "queue"),
        (_busiest(report, "exchanges", "exchange", "sum(published)"), "exchange"),
    ]
    parts = [f"<h1>{escape(title)}</h1>"]
    if note or not summaries:
        parts.append(f'<p class="none">{escape(note or "There are no events.")}</p>')
    if way:
        parts.append(picture(list(way)))
    if summaries:
        parts.append(SEARCH)
    for number, summary in enumerate(summaries):
        vhost = summary["vhost"]
        of_vhost = {name: found[vhost] for name, found in tables.items()}
        parts += _head(summary, of_vhost)
        parts.append(_findings(of_vhost))
        parts.append(_section("totals", of_vhost["totals"]))
        lines = [_lines(found[vhost], by) for found, by in of_plots]
        interval = interval_text(summary["interval_ms"])
        parts.append(
            f'<p class="note">Each point of a plot is an interval of {interval}. A plot shows {LINES_MAX} queues or '
            "exchanges at most: the busiest ones, or the deepest queues. A depth is the number of messages that were "
            "in the queue at the end of an interval, of those that arrived during the trace.</p>"
        )
        charts = _charts(summary, *lines)
        parts.append(f'<div class="charts" id="charts{number}">{"".join(chart.html() for chart in charts)}</div>')
        parts += [_section(name, of_vhost[name]) for name in SHOWN if name != "totals"]
    return document(title, "\n".join(parts), SCRIPTS, ["uplot.css", "report.css"])


def by_vhost(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows by their vhost."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["vhost"]].append(row)
    return found


def _busiest(report: Report, table: str, by: str, weight: str) -> dict[str, list[Row]]:
    """Return by vhost the rows of the queues (or exchanges) with the greatest weight, in this order."""
    rows = report.select(f"""
        WITH weights AS (SELECT vhost, {by}, {weight} AS weight FROM {table} GROUP BY vhost, {by}),
        ranked AS (SELECT *, row_number() OVER (PARTITION BY vhost ORDER BY weight DESC, {by}) AS place FROM weights)
        SELECT {table}.*, place FROM {table} JOIN ranked USING (vhost, {by})
        WHERE place <= {LINES_MAX} AND weight IS NOT NULL ORDER BY vhost, place, interval_start
    """)
    return by_vhost(rows)


def _section(name: str, rows: list[Row]) -> str:
    heading, heads, note = SHOWN[name]
    if not rows:
        return ""
    if len(rows) > ROWS_MAX:
        note += f" These are the first {ROWS_MAX:,} of {len(rows):,} rows; the table {name} of the report has all."
    return f'<h3>{heading}</h3><p class="note">{escape(note)}</p>{table(rows[:ROWS_MAX], heads)}'


def _head(summary: Row, tables: dict[str, list[Row]]) -> list[str]:
    """Return the headline of a vhost: its most important figures, and what they do not contain."""
    span = f"{_text(summary['first_at'])} to {_text(summary['last_at'])} UTC"
    if summary["traced_s"]:
        span += f" ({shown(summary['traced_s'])} s)"
    parts = [f"<h2>vhost {escape(summary['vhost'])}</h2><p>{escape(span)}: {shown(summary['events'])} events.</p>"]
    tiles = "".join(
        f"<div><dt>{label}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for label, value, note in figures(summary, tables)
    )
    parts.append(f"<dl>{tiles}</dl>")
    if summary["unnumbered"]:
        parts.append(
            f'<p class="note">{shown(summary["unnumbered"])} events have no message number (as in a firehose): they '
            "are counted, but have no latencies.</p>"
        )
    if summary["untimed"]:
        parts.append(
            f'<p class="note">{shown(summary["untimed"])} events have the time at which they were archived.</p>'
        )
    return parts


def _findings(tables: dict[str, list[Row]]) -> str:
    """Return the findings of a vhost as a list."""
    found = findings(tables)
    if not found:
        return '<p class="findings">Nothing was lost, dropped or delivered twice, and no queue is behind.</p>'
    items = "".join(f"<li><b>{escape(one.subject)}</b>: {escape(one.text)}" for one in found)
    return f'<ol class="findings">{items}</ol>'


def figures(summary: Row, tables: dict[str, list[Row]]) -> Iterable[tuple[str, str, str]]:
    """Return label, value and note of the figures of a headline; rates are over the time of the trace."""
    for name, label in (("published", "Publishes"), ("delivered", "Deliveries"), ("acked", "Acks")):
        seconds = summary["traced_s"]
        yield label, _text(summary[name]), f"{shown(summary[name] / seconds)} a second" if seconds else ""
    again = 100 * summary["redelivered"] / max(1, summary["delivered"])
    yield "Redeliveries", _text(summary["redelivered"]), f"{shown(again)} % of the deliveries"
    yield "Dead letters", _text(summary["dead_lettered"]), f"{shown(summary['in_loops'])} in loops"
    yield "Routed nowhere", _text(summary["unrouted"]), "of the publishes"
    if summary["unnumbered"] < summary["events"]:
        ages_s = [row["oldest_age_s"] for row in tables["open"]]
        note = f"the oldest for {shown(max(ages_s))} s" if ages_s else ""
        yield "Still open", _text(sum(row["open"] for row in tables["open"])), note
    for row in tables["consumers"][:1]:
        if row["handling_ms_p95"] is not None:
            note = f"{name_of(row)}, queue {row['queue']}"
            yield "Slowest consumer, p95", f"{shown(row['handling_ms_p95'])} ms", note
    for row in tables["publishers"][:1]:
        yield "Busiest publisher", f"{shown(row['share_percent'])} %", name_of(row)


def _charts(
    summary: Row, queues: dict[str, list[Row]], deepest: dict[str, list[Row]], exchanges: dict[str, list[Row]]
) -> Iterable[Chart]:
    traced = traced_time(summary)

    def rates(title: str, lines: dict[str, list[Row]], column: str, note: str = "") -> Chart:
        found = rates_of(lines, column, traced)
        return Chart(title, f"messages a second{note}", traced.starts_of_rates, found, Without.ZERO)

    def slowest(title: str, lines: dict[str, list[Row]], column: str, note: str = "") -> Chart:
        return Chart(title, f"ms, 95 of 100 are faster{note}", traced.starts, _series(lines, column))

    yield rates("Arrivals", queues, "arrived")
    yield rates("Deliveries", queues, "delivered")
    yield rates("Acks", queues, "acked")
    yield rates("Publishes", exchanges, "published", ", by exchange")
    yield Chart("Depth", "messages, ready and unacked", traced.starts, _series(deepest, "depth"), Without.LAST)
    yield slowest("Publish to delivery", queues, "wait_ms_p95")
    yield slowest("Delivery to ack", queues, "handling_ms_p95")
    yield slowest("Publish to ack", queues, "total_ms_p95")
    yield slowest("Publish to confirm", exchanges, "confirm_ms_p95", ", by exchange")
    yield rates("Redeliveries", queues, "redelivered")


def _lines(rows: list[Row], by: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[by]].append(row)
    return found


def _series(lines: dict[str, list[Row]], column: str) -> dict[str, dict[int, float]]:
    """Return the values of a column by line and by the start of their interval in ms."""
    series: dict[str, dict[int, float]] = defaultdict(dict)
    for name, rows in lines.items():
        for row in rows:
            if row[column] is not None:
                series[name or "(default)"][round(_ms(row["interval_start"]))] = row[column]
    return dict(series)


def rates_of(lines: dict[str, list[Row]], column: str, traced: TracedTime) -> dict[str, dict[int, float]]:
    """Return counts as rates per second, over the part of each interval in which the vhost's trace was on."""
    rates: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for name, counts in _series(lines, column).items():
        for start_ms, count in counts.items():
            place = traced.counted_in(start_ms)
            # A trace of a single moment has no rates.
            if seconds := traced.counted_s(place):
                rates[name][place] += count / seconds
    return rates


def traced_time(summary: Row) -> TracedTime:
    """Return the time of a vhost's trace."""
    return TracedTime(summary["interval_ms"], _ms(summary["first_at"]), _ms(summary["last_at"]))


def _ms(time: datetime) -> float:
    return time.timestamp() * 1000


def table(rows: list[Row], heads: dict[str, str]) -> str:
    """Return a table. Its rows and cells have no end tags: a table of all queues is half as large."""
    texts = {name for name in heads for row in rows if isinstance(row[name], (str, list, datetime))}
    kinds = {name: " class=text" if name in texts else "" for name in heads}
    head = "".join(f"<th{kinds[name]}>{escape(label)}" for name, label in heads.items())
    body = "\n".join(f"<tr>{''.join(f'<td{kinds[name]}>{escape(_text(row[name]))}' for name in heads)}" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}<tbody>{body}</table></div>'


def _text(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "seconds")
    if isinstance(value, list):
        return ", ".join(value) or NOTHING
    return shown(value) if isinstance(value, (int, float)) else str(value)
