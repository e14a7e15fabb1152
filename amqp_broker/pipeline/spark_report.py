"""A report that Spark computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

from amqp_broker.pipeline.report_tables import STEPS, TIMED, TRACED_US, Report, Row, queries_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkReport(Report):
    """The report on these events; `tables` are its tables by name. Shared results are cached while it is open."""

    def __init__(self, events: DataFrame) -> None:
        self.spark = events.sparkSession
        self.events = events
        self.tables: dict[str, DataFrame] = {}

    def __enter__(self) -> Self:
        from pyspark import StorageLevel

        self.events.drop("body", "properties").createOrReplaceTempView("slice")
        self.events.where("event = 'publish'").drop("body").createOrReplaceTempView("publishes")
        self.spark.sql(STEPS).createOrReplaceTempView("steps")
        self._timed = self.spark.sql(TIMED).persist(StorageLevel.MEMORY_AND_DISK)
        self._timed.createOrReplaceTempView("timed")
        [row] = self.select(TRACED_US)
        for name, query in queries_of(row["traced_us"]).items():
            self._show(name, self.spark.sql(query))
        return self

    def __exit__(self, *error: object) -> None:
        self._timed.unpersist()
        for view in ("timed", "steps", "slice", "publishes", *self.tables):
            self.spark.catalog.dropTempView(view)

    def select(self, query: str, values: Mapping[str, str] | None = None) -> list[Row]:
        # The times of `collect` are those of this machine's zone.
        rows: list[Row] = self.spark.sql(query, args=dict(values or {})).toArrow().to_pylist()
        return rows

    def write(self, target: str, on_table: Callable[[str], None] = lambda name: None) -> None:
        """Write the tables, and go on with what is written: each is computed once."""
        for name, table in list(self.tables.items()):
            on_table(name)
            path = f"{target.rstrip('/')}/{name}"
            table.coalesce(1).write.mode("overwrite").parquet(path)
            self._show(name, self.spark.read.schema(table.schema).parquet(path))

    def _show(self, name: str, table: DataFrame) -> None:
        self.tables[name] = table
        table.createOrReplaceTempView(name)
