"""A report that DuckDB computes in this process, from the same queries as Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final, Self

from amqp_broker.pipeline.lake import Lake, place_of
from amqp_broker.pipeline.lake_slice import EVERYTHING, Slice
from amqp_broker.pipeline.report_tables import STEPS, TIMED, TRACED_US, Report, Row, queries_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from pyarrow.dataset import Expression, Scanner

# Spark's functions in DuckDB.
MACROS: Final = (
    "unix_micros(moment) AS epoch_us(moment)",
    "timestamp_micros(micros) AS make_timestamptz(micros)",
    "pmod(number, divisor) AS ((number % divisor) + divisor) % divisor",
    "percentile(number, quantiles) AS quantile_cont(number, quantiles)",
    "size(elements) AS len(elements)",
    "sort_array(elements) AS list_sort(elements)",
    "array_distinct(elements) AS list_distinct(elements)",
    "collect_set(element) AS list(DISTINCT element)",
    "get_json_object(document, path) AS CASE WHEN json_valid(document) THEN json_extract_string(document, path) END",
)
# Columns that identify a message.
KEYS: Final = ("event", "node", "numbered_since_us", "message_number")
# Those that a macro cannot replace.
_NAMES: Final = {"explode(": "unnest(", " array(": " list_value(", "element_at(": "list_extract("}


def of_duckdb(query: str) -> str:
    """Return a query of Spark as one of DuckDB with the macros."""
    for name, other in _NAMES.items():
        query = query.replace(name, other)
    return query


def open_duckdb(folder: str) -> DuckDBPyConnection:
    """Return a database in memory, with a folder for what memory cannot hold."""
    import duckdb

    connection = duckdb.connect(config={"temp_directory": folder})
    connection.execute("SET TimeZone = 'UTC'")
    # As Spark sorts.
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    for macro in MACROS:
        connection.execute(f"CREATE MACRO {macro}")
    return connection


class LocalReport(Report):
    """The report on a slice of a lake."""

    def __init__(self, lake: Lake, part: Slice = EVERYTHING) -> None:
        self.lake = lake
        self.part = part
        self.names: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="amqp-broker-report-")
        self._duckdb = open_duckdb(self._folder.name)
        self._dataset = self.lake.dataset("events", self.part)
        columns = [name for name in self._dataset.schema.names if name not in ("body", "properties")]
        self._duckdb.register("scanned", self._scanned(columns))
        self._duckdb.execute("CREATE TABLE slice AS SELECT * FROM scanned")
        self._duckdb.execute(f"CREATE TABLE steps AS {of_duckdb(STEPS)}")
        self._duckdb.execute(f"CREATE TABLE timed AS {of_duckdb(TIMED)}")
        [row] = self.select(TRACED_US)
        queries = queries_of(row["traced_us"])
        for name, query in queries.items():
            self._create(name, of_duckdb(query))
        self.names = tuple(queries)
        return self

    def __exit__(self, *error: object) -> None:
        self._duckdb.close()
        self._folder.cleanup()

    def select(self, query: str, values: Mapping[str, str] | None = None) -> list[Row]:
        values = dict(values or {})
        for name in values:
            query = query.replace(f":{name}", f"${name}")
        if "publishes" in query:
            # A scanner is read once. The views have no properties, which would fill the memory.
            self._duckdb.register("publishes", self._scanned([*KEYS, "properties"], _field("event") == "publish"))
        rows: list[Row] = self._duckdb.sql(of_duckdb(query), params=values).to_arrow_table().to_pylist()
        return rows

    def _scanned(self, columns: list[str], condition: Expression | None = None) -> Scanner:
        """Return columns of the slice's events."""
        both = [one for one in (self.part.filter, condition) if one is not None]
        return self._dataset.scanner(columns=columns, filter=reduce(and_, both) if both else None)

    def write(self, target: str, on_table: Callable[[str], None] = lambda name: None) -> None:
        from pyarrow.parquet import write_table

        from amqp_broker.pipeline.lake_files import files_at

        files = files_at(place_of(target), self.lake.options)
        for name in self.names:
            on_table(name)
            _empty(files, name)
            write_table(self._arrow(f"FROM {name}"), f"{name}/part-0.parquet", filesystem=files)

    def _arrow(self, query: str) -> pa.Table:
        return self._duckdb.sql(query).to_arrow_table()

    def _create(self, name: str, query: str) -> None:
        """Create a table with Spark's types: a sum of DuckDB has 128 bits."""
        columns = self._duckdb.execute(f"DESCRIBE {query}").fetchall()
        wide = [f"CAST({column} AS bigint) AS {column}" for column, kind, *_ in columns if kind == "HUGEINT"]
        replaced = f" REPLACE ({', '.join(wide)})" if wide else ""
        self._duckdb.execute(f"CREATE TABLE {name} AS SELECT *{replaced} FROM ({query})")


def _empty(files: Any, folder: str) -> None:
    """Delete the files of a table that a report wrote before."""
    from pyarrow.fs import FileSelector

    for info in files.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True)):
        if info.is_file:
            files.delete_file(info.path)


def _field(name: str) -> Expression:
    from pyarrow.dataset import field

    return field(name)
