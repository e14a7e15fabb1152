"""Reports on messages, computed with SQL from the events of a lake: see `TABLES`.

The queries are Spark's, which `spark_report.py` runs; `local_report.py` runs the same with DuckDB in this process.

A message is identified by (node, numbered_since_us, message_number). It *arrives* in a queue with the publish or the
dead-lettering that routed it there. RabbitMQ's firehose has no message numbers, so its reports have only counts of
publishes, deliveries and redeliveries, with the times of publishers or of the archive.

Latencies are milliseconds. A percentile is exact, with linear interpolation between two values (numpy's default). A
latency belongs to the interval in which it ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from amqp_broker.pipeline.intervals import interval_ms_of

MESSAGE: Final = "node, numbered_since_us, message_number"
# `:interval_ms` stands for a number in all queries.
INTERVAL_START: Final = (
    "timestamp_micros(unix_micros(time) - pmod(unix_micros(time), 1000 * CAST(:interval_ms AS bigint)))"
)
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def _latencies(name: str) -> str:
    """Return SQL for percentiles and maximum (ms) of a column of microseconds, NULL if it is empty."""
    wanted = ", ".join(f"{quantile}" for quantile in PERCENTILES.values())
    # Equal aggregates are computed once.
    columns = [
        f"element_at(percentile({name}_us, array({wanted})), {place}) / 1000 AS {name}_ms_{label}"
        for place, label in enumerate(PERCENTILES, 1)
    ]
    return f"{', '.join(columns)}, max({name}_us) / 1000 AS {name}_ms_max"


# All events of a message in a queue, including its arrival.
STEPS: Final = f"""
SELECT time, trace_offset, trace_index, vhost, queue, {MESSAGE}, event, redelivered, no_ack, requeue, reason,
       connection, connection_name, channel, user, CAST(NULL AS bigint) AS body_bytes
FROM slice WHERE queue IS NOT NULL AND event <> 'dead_letter'
UNION ALL
SELECT time, trace_offset, trace_index, vhost, explode(routed_queues), {MESSAGE}, 'arrive', NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, body_bytes
FROM slice WHERE event IN ('publish', 'dead_letter')
"""

# The events that end a message in its queue: in a stream, the first ack.
ENDS: Final = (
    """event IN ('ack', 'expire', 'drop') OR (event = 'nack' AND NOT requeue) OR (event = 'deliver' AND no_ack)"""
)

# The same with the duration that a step ends: the wait for the first delivery, the handling of a delivery, and the
# total time in the queue; and with the change of the number of messages in the queue. A stream delivers a message to
# many consumers; an ack belongs to the delivery on the same channel.
TIMED: Final = f"""
WITH numbered AS (
  SELECT *,
         max(CASE WHEN event = 'arrive' THEN unix_micros(time) END) OVER in_queue AS arrived_us,
         count(CASE WHEN event = 'deliver' THEN 1 END) OVER in_queue AS deliveries,
         count(CASE WHEN event = 'ack' THEN 1 END) OVER in_queue AS acks,
         count(CASE WHEN event = 'arrive' THEN 1 END) OVER in_queue AS arrivals,
         count(CASE WHEN {ENDS} THEN 1 END) OVER in_queue AS ends,
         max(CASE WHEN event = 'deliver' THEN unix_micros(time) END) OVER on_channel AS delivered_us
  FROM steps WHERE message_number IS NOT NULL
  WINDOW in_queue AS (PARTITION BY vhost, queue, {MESSAGE}
                      ORDER BY time, trace_offset, trace_index ROWS UNBOUNDED PRECEDING),
         on_channel AS (PARTITION BY vhost, queue, {MESSAGE}, connection, channel
                        ORDER BY time, trace_offset, trace_index ROWS UNBOUNDED PRECEDING)
)
SELECT *,
       CASE WHEN event = 'deliver' AND deliveries = 1 THEN unix_micros(time) - arrived_us END AS wait_us,
       CASE WHEN event = 'ack' THEN unix_micros(time) - delivered_us END AS handling_us,
       CASE WHEN event = 'ack' AND acks = 1 THEN unix_micros(time) - arrived_us END AS total_us,
       CASE WHEN event = 'arrive' AND arrivals = 1 AND ends = 0 THEN 1
            WHEN ({ENDS}) AND ends = 1 AND arrivals > 0 THEN -1 ELSE 0 END AS change
FROM numbered
UNION ALL
SELECT *, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM steps WHERE message_number IS NULL
"""

QUEUES: Final = f"""
SELECT vhost, queue, {INTERVAL_START} AS interval_start,
       count_if(event = 'arrive') AS arrived, sum(body_bytes) AS body_bytes,
       count_if(event = 'deliver') AS delivered, count_if(event = 'deliver' AND redelivered) AS redelivered,
       count_if(event = 'ack') AS acked, count_if(event = 'nack' AND requeue) AS requeued,
       count_if(event = 'nack' AND NOT requeue) AS rejected, count_if(event = 'expire') AS expired,
       count_if(event = 'drop') AS dropped,
       sum(sum(change)) OVER (PARTITION BY vhost, queue ORDER BY {INTERVAL_START}) AS depth,
       {_latencies("wait")}, {_latencies("handling")}, {_latencies("total")}
FROM timed GROUP BY vhost, queue, {INTERVAL_START} ORDER BY vhost, queue, interval_start
"""

# The same queues over the whole time, the busiest first, with their arrivals over the time that the trace was on.
TOTALS: Final = f"""
WITH spans AS (
  SELECT vhost, nullif(unix_micros(max(time)) - unix_micros(min(time)), 0) / 1e6 AS traced_s FROM slice GROUP BY vhost
)
SELECT vhost, queue,
       count_if(event = 'arrive') AS arrived, count_if(event = 'arrive') / first(traced_s) AS arrived_per_s,
       count_if(event = 'deliver') AS delivered, count_if(event = 'deliver' AND redelivered) AS redelivered,
       count_if(event = 'ack') AS acked, {_latencies("wait")}, {_latencies("handling")}, {_latencies("total")}
FROM timed JOIN spans USING (vhost) GROUP BY vhost, queue ORDER BY arrived + delivered DESC, vhost, queue
"""

# Connections that publish, the busiest first.
PUBLISHERS: Final = """
SELECT vhost, max(connection_name) AS connection_name, connection, first(user) AS user, count(*) AS published,
       sum(body_bytes) AS body_bytes,
       count_if(size(routed_queues) = 0) AS unrouted,
       100 * count(*) / sum(count(*)) OVER (PARTITION BY vhost) AS share_percent
FROM slice WHERE event = 'publish' AND connection IS NOT NULL
GROUP BY vhost, connection ORDER BY published DESC, vhost, connection
"""

EXCHANGES: Final = f"""
WITH published AS (
  SELECT {MESSAGE}, min(unix_micros(time)) AS published_us FROM slice
  WHERE event = 'publish' AND message_number IS NOT NULL GROUP BY {MESSAGE}
), steps_of_exchanges AS (
  SELECT vhost, exchange, time, event, routed_queues, body_bytes, is_ack,
         CASE WHEN event = 'confirm' THEN unix_micros(time) - published_us END AS confirm_us
  FROM slice LEFT JOIN published USING ({MESSAGE}) WHERE event IN ('publish', 'confirm', 'return')
)
SELECT vhost, exchange, {INTERVAL_START} AS interval_start,
       count_if(event = 'publish') AS published, sum(CASE WHEN event = 'publish' THEN body_bytes END) AS body_bytes,
       count_if(event = 'publish' AND size(routed_queues) = 0) AS unrouted, count_if(event = 'return') AS returned,
       count_if(event = 'confirm' AND is_ack) AS confirmed, count_if(event = 'confirm' AND NOT is_ack) AS nacked,
       {_latencies("confirm")}
FROM steps_of_exchanges GROUP BY vhost, exchange, interval_start ORDER BY vhost, exchange, interval_start
"""

# In a plain firehose, messages cannot be identified; then only deliveries are counted.
REDELIVERY: Final = f"""
WITH messages AS (
  SELECT vhost, queue, message_number IS NOT NULL AS is_known, count(*) AS deliveries, count_if(redelivered) AS again
  FROM timed WHERE event = 'deliver' GROUP BY vhost, queue, {MESSAGE}
)
SELECT vhost, queue, sum(deliveries) AS delivered, sum(again) AS redelivered,
       CASE WHEN bool_and(is_known) THEN count(*) END AS messages,
       CASE WHEN bool_and(is_known) THEN count_if(again > 0) END AS messages_redelivered,
       CASE WHEN bool_and(is_known) THEN max(deliveries) END AS deliveries_max
FROM messages GROUP BY vhost, queue ORDER BY redelivered DESC, vhost, queue
"""

DEAD_LETTERS: Final = f"""
WITH arrived AS (
  SELECT vhost, queue, {MESSAGE}, min(unix_micros(time)) AS arrived_us FROM steps
  WHERE event = 'arrive' AND message_number IS NOT NULL GROUP BY vhost, queue, {MESSAGE}
), dead AS (
  SELECT vhost, queue, node, numbered_since_us, from_message_number AS message_number, unix_micros(time) AS died_us,
         reason, death_count, routed_queues
  FROM slice WHERE event = 'dead_letter'
)
SELECT vhost, queue, reason, count(*) AS dead_lettered, count_if(size(routed_queues) = 0) AS lost,
       count_if(death_count > 1) AS in_loops, max(death_count) AS death_count_max,
       sort_array(array_distinct(flatten(collect_set(routed_queues)))) AS routed_queues,
       percentile(died_us - arrived_us, 0.5) / 1000 AS age_ms_p50, max(died_us - arrived_us) / 1000 AS age_ms_max
FROM dead LEFT JOIN arrived USING (vhost, queue, {MESSAGE})
GROUP BY vhost, queue, reason ORDER BY dead_lettered DESC, vhost, queue, reason
"""

# Messages that ended without a consumer. Those that were dead-lettered are in DEAD_LETTERS as well.
GIVEN_UP: Final = """
SELECT vhost, queue, CASE WHEN event = 'expire' THEN 'expired' ELSE reason END AS reason, count(*) AS messages
FROM slice WHERE event IN ('expire', 'drop')
GROUP BY vhost, queue, CASE WHEN event = 'expire' THEN 'expired' ELSE reason END
ORDER BY messages DESC, vhost, queue, reason
"""

# Publishes that reached no queue, by exchange and routing key.
UNROUTED: Final = """
SELECT vhost, exchange, routing_key, count(*) AS messages, max(connection_name) AS connection_name,
       max(connection) AS connection, max(time) AS last_at
FROM slice WHERE event = 'publish' AND size(routed_queues) = 0
GROUP BY vhost, exchange, routing_key ORDER BY messages DESC, vhost, exchange, routing_key
"""

# Consumers with acks, the slowest first.
CONSUMERS: Final = f"""
SELECT vhost, queue, max(connection_name) AS connection_name, connection, channel, first(user) AS user,
       count_if(event = 'deliver') AS delivered, count_if(event = 'ack') AS acked,
       count_if(event = 'nack') AS nacked, {_latencies("handling")}, max(time) AS last_at
FROM timed WHERE event IN ('deliver', 'ack', 'nack') AND connection IS NOT NULL
GROUP BY vhost, queue, connection, channel
ORDER BY handling_ms_p95 DESC NULLS LAST, vhost, queue, connection, channel
"""

# Messages that have arrived and not ended.
OPEN: Final = f"""
WITH messages AS (
  SELECT vhost, queue, {MESSAGE}, min(CASE WHEN event = 'arrive' THEN time END) AS arrived_at,
         count_if({ENDS}) AS ends,
         count_if(event = 'deliver') - count_if(event = 'nack' AND requeue) AS held
  FROM timed WHERE message_number IS NOT NULL GROUP BY vhost, queue, {MESSAGE}
)
SELECT vhost, queue, count(*) AS open, count_if(held > 0) AS delivered, min(arrived_at) AS oldest_at,
       (SELECT unix_micros(max(time)) FROM slice) / 1e6 - unix_micros(min(arrived_at)) / 1e6 AS oldest_age_s
FROM messages WHERE arrived_at IS NOT NULL AND ends = 0
GROUP BY vhost, queue ORDER BY open DESC, vhost, queue
"""

SUMMARY: Final = """
SELECT vhost, count(*) AS events, min(time) AS first_at, max(time) AS last_at,
       count_if(event = 'publish') AS published, count_if(event = 'deliver') AS delivered,
       count_if(event = 'ack') AS acked, count_if(event = 'deliver' AND redelivered) AS redelivered,
       count_if(event = 'dead_letter') AS dead_lettered,
       count_if(event = 'dead_letter' AND death_count > 1) AS in_loops,
       count_if(event = 'publish' AND size(routed_queues) = 0) AS unrouted,
       nullif(unix_micros(max(time)) - unix_micros(min(time)), 0) / 1e6 AS traced_s,
       count_if(message_number IS NULL) AS unnumbered, count_if(time_source = 'archive') AS untimed,
       CAST(:interval_ms AS bigint) AS interval_ms
FROM slice GROUP BY vhost ORDER BY vhost
"""

# Queries by name, over the views `slice` (events), `steps` and `timed`.
TABLES: Final = {
    "summary": SUMMARY,
    "totals": TOTALS,
    "queues": QUEUES,
    "exchanges": EXCHANGES,
    "redelivery": REDELIVERY,
    "dead_letters": DEAD_LETTERS,
    "given_up": GIVEN_UP,
    "unrouted": UNROUTED,
    "consumers": CONSUMERS,
    "publishers": PUBLISHERS,
    "open": OPEN,
}


Row = dict[str, Any]


class Report(ABC):
    """The tables of a report while it is open. A query names them, or a view of the events: `slice` or `publishes`.

    Times in rows are in UTC.
    """

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    @abstractmethod
    def select(self, query: str, values: Mapping[str, str] | None = None) -> list[Row]:
        """Return the rows of a query over the tables, with `values` in the places of their names (`:name`)."""

    @abstractmethod
    def write(self, target: str, on_table: Callable[[str], None] = lambda name: None) -> None:
        """Write each table to `target`/<name> as one Parquet file, instead of what is there."""


def queries_of(traced_us: int | None) -> dict[str, str]:
    """Return the queries of the tables for a trace of this length."""
    interval_ms = interval_ms_of(traced_us or 0)
    return {name: query.replace(":interval_ms", str(interval_ms)) for name, query in TABLES.items()}


TRACED_US: Final = "SELECT unix_micros(max(time)) - unix_micros(min(time)) AS traced_us FROM slice"
