"""Replay in this process: DuckDB orders the publishes of a slice, and the sink of the format `amqp` writes them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from amqp_broker.pipeline.event_rows import PROPERTIES
from amqp_broker.pipeline.local_report import open_duckdb

if TYPE_CHECKING:
    from amqp_broker.pipeline.lake import Lake
    from amqp_broker.pipeline.lake_slice import Replayed

BATCH_ROWS: Final = 1000
_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.timestamp("us", tz="UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
SCHEMA: Final = pa.schema(
    [("body", pa.binary()), ("routing_key", pa.string()), *((name, _TYPES[kind]) for name, kind in PROPERTIES.items())]
)


def publish(lake: Lake, replayed: Replayed, options: Mapping[str, str]) -> int:
    """Publish messages with the sink's options (pyspark_amqp); return their number once all are confirmed."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from pyspark_amqp.format_options import read_sink
    from pyspark_amqp.sink import BatchSink

    # A message without an id gets none.
    given = read_sink({"messageId": "column", **options})
    names = [name for name in SCHEMA.names if name != "routing_key" or "routingKey" not in options]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    sink = BatchSink(given, from_arrow_schema(schema), overwrite=False)
    return sink.write(rows.select(names) for rows in messages(lake, replayed)).count


def messages(lake: Lake, replayed: Replayed) -> Iterator[pa.RecordBatch]:
    """Yield the publishes among events in order. Events archived without bodies are skipped."""
    part = replayed.part
    names = ("time", "trace_offset", "trace_index", "event", "exchange", "routing_key", "properties", "body")
    events = lake.dataset("events", part).scanner(columns=list(names), filter=part.filter)
    wanted = {"exchange": replayed.exchange, "routing_key": replayed.routing_key}
    given = {name: value for name, value in wanted.items() if value is not None}
    conditions = "".join(f" AND {name} = ${name}" for name in given)
    with tempfile.TemporaryDirectory(prefix="amqp-broker-replay-") as folder, open_duckdb(folder) as connection:
        connection.register("events", events)
        rows = connection.execute(
            f"""SELECT body, coalesce(routing_key, '') AS routing_key, properties FROM events
                WHERE event = 'publish' AND body IS NOT NULL{conditions}
                ORDER BY time, trace_offset, trace_index""",
            given,
        )
        while found := rows.fetchmany(BATCH_ROWS):
            told = [{"body": body, "routing_key": key, **properties_of(text)} for body, key, text in found]
            yield pa.RecordBatch.from_pylist(told, schema=SCHEMA)


def properties_of(text: str | None) -> dict[str, Any]:
    """Return properties from their JSON; those of another type are NULL, as Spark reads them."""
    given = json.loads(text or "{}")
    values: dict[str, Any] = {}
    for name, kind in PROPERTIES.items():
        value = given.get(name)
        if kind == "string":
            values[name] = None if value is None else _text(value)
        elif kind == "map<string,string>":
            is_table = isinstance(value, dict)
            values[name] = (
                [(key, None if one is None else _text(one)) for key, one in value.items()] if is_table else None
            )
        elif isinstance(value, int) and not isinstance(value, bool):
            # The sink writes seconds.
            values[name] = value * 1_000_000 if kind == "bigint" else value
        else:
            values[name] = None
    return values


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
