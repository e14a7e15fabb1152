"""A report as one self-contained HTML page, which can be mailed or opened from a disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.intervals import TracedTime, interval_text
from amqp_broker.pipeline.page_document import document
from amqp_broker.pipeline.plots import Chart, Without, shown
from amqp_broker.pipeline.report_tables import PERCENTILES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = dict[str, Any]

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


def page(tables: dict[str, DataFrame], title: str = "Report of a message trace", note: str = "") -> str:
    """Return the page for the tables of a report (report_tables.TABLES), with a note on top."""
    summaries = [row.asDict() for row in tables["summary"].collect()]
    small = {name: _by_vhost(_limited(tables[name])) for name in SHOWN}
    opened = _by_vhost(tables["open"].groupBy("vhost").agg({"open": "sum", "oldest_age_s": "max"}))
    of_plots = [
        (_by_vhost(_first(tables["queues"], "queue", "sum(arrived) + sum(delivered)")), "queue"),
        (_by_vhost(_first(tables["queues"].where("depth IS NOT NULL"), "queue", "max(depth)")), "queue"),
        (_by_vhost(_first(tables["exchanges"], "exchange", "sum(published)")), "exchange"),
    ]
    parts = [f"<h1>{escape(title)}</h1>"]
    if note or not summaries:
        parts.append(f'<p class="none">{escape(note or "There are no events.")}</p>')
    if summaries:
        parts.append(SEARCH)
    for number, summary in enumerate(summaries):
        vhost = summary["vhost"]
        parts += _head(summary, {name: small[name][vhost] for name in SHOWN}, opened[vhost])
        parts.append(_section("totals", small["totals"][vhost]))
        lines = [_lines(found[vhost], by) for found, by in of_plots]
        interval = interval_text(summary["interval_ms"])
        parts.append(
            f'<p class="note">Each point of a plot is an interval of {interval}. A plot shows {LINES_MAX} queues or '
            "exchanges at most: the busiest ones, or the deepest queues. A depth is the number of messages that were "
            "in the queue at the end of an interval, of those that arrived during the trace.</p>"
        )
        charts = _charts(summary, *lines)
        parts.append(f'<div class="charts" id="charts{number}">{"".join(chart.html() for chart in charts)}</div>')
        parts += [_section(name, small[name][vhost]) for name in SHOWN if name != "totals"]
    return document(title, "\n".join(parts), SCRIPTS, ["uplot.css", "report.css"])


def _by_vhost(table: DataFrame) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in table.collect():
        found[row["vhost"]].append(row.asDict())
    return found


def _limited(table: DataFrame) -> DataFrame:
    """Return the first rows of each vhost, each with the number of all rows of its vhost."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_vhost = Window.partitionBy("vhost")
    placed = table.withColumn("place", F.monotonically_increasing_id())
    ranked = placed.withColumn("rank", F.row_number().over(of_vhost.orderBy("place")))
    counted = ranked.withColumn("rows", F.count("*").over(of_vhost))
    return counted.where(F.col("rank") <= ROWS_MAX).orderBy("place")


def _first(table: DataFrame, by: str, weight: str) -> DataFrame:
    """Return the rows of the queues (or exchanges) of each vhost with the greatest weight, in this order."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy("vhost").orderBy(F.desc("weight"), by)
    weights = table.groupBy("vhost", by).agg(F.expr(weight).alias("weight"))
    ranked = weights.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= LINES_MAX)
    return table.join(F.broadcast(ranked), ["vhost", by]).orderBy("vhost", "rank", "interval_start")


def _section(name: str, rows: list[Row]) -> str:
    heading, heads, note = SHOWN[name]
    if not rows:
        return ""
    if rows[0]["rows"] > len(rows):
        note += (
            f" These are the first {len(rows):,} of {rows[0]['rows']:,} rows; the table {name} of the report has all."
        )
    return f'<h3>{heading}</h3><p class="note">{escape(note)}</p>{table(rows, heads)}'


def _head(summary: Row, tables: dict[str, list[Row]], opened: list[Row]) -> list[str]:
    """Return the headline of a vhost: its most important figures, and what they do not contain."""
    span = f"{_text(summary['first_at'])} to {_text(summary['last_at'])} UTC"
    if summary["traced_s"]:
        span += f" ({shown(summary['traced_s'])} s)"
    parts = [f"<h2>vhost {escape(summary['vhost'])}</h2><p>{escape(span)}: {summary['events']:,} events.</p>"]
    tiles = "".join(
        f"<div><dt>{label}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for label, value, note in figures(summary, tables, opened)
    )
    parts.append(f"<dl>{tiles}</dl>")
    if summary["unnumbered"]:
        parts.append(
            f'<p class="note">{summary["unnumbered"]:,} events have no message number (as in a firehose): they '
            "are counted, but have no latencies.</p>"
        )
    if summary["untimed"]:
        parts.append(f'<p class="note">{summary["untimed"]:,} events have the time at which they were archived.</p>')
    return parts


def figures(summary: Row, tables: dict[str, list[Row]], opened: list[Row]) -> Iterable[tuple[str, str, str]]:
    """Return label, value and note of the figures of a headline; rates are over the time of the trace.

    `opened` is a row with the open messages of all queues, or empty.
    """
    for name, label in (("published", "Publishes"), ("delivered", "Deliveries"), ("acked", "Acks")):
        seconds = summary["traced_s"]
        yield label, _text(summary[name]), f"{shown(summary[name] / seconds)} a second" if seconds else ""
    again = 100 * summary["redelivered"] / max(1, summary["delivered"])
    yield "Redeliveries", _text(summary["redelivered"]), f"{shown(again)} % of the deliveries"
    yield "Dead letters", _text(summary["dead_lettered"]), f"{summary['in_loops']:,} in loops"
    yield "Routed nowhere", _text(summary["unrouted"]), "of the publishes"
    if summary["unnumbered"] < summary["events"]:
        note = "".join(f"the oldest for {shown(row['max(oldest_age_s)'])} s" for row in opened)
        yield "Still open", _text(sum(row["sum(open)"] for row in opened)), note
    for row in tables["consumers"][:1]:
        if row["handling_ms_p95"] is not None:
            note = f"{row['connection']}, queue {row['queue']}"
            yield "Slowest consumer, p95", f"{shown(row['handling_ms_p95'])} ms", note
    for row in tables["publishers"][:1]:
        yield "Busiest publisher", f"{shown(row['share_percent'])} %", row["connection"]


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
    return time.replace(tzinfo=UTC).timestamp() * 1000


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
        return value.isoformat(" ", "seconds")
    if isinstance(value, list):
        return ", ".join(value) or NOTHING
    if isinstance(value, float):
        return shown(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
