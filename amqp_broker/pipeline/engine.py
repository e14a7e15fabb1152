"""The two engines of jobs on a lake: this process (`local_engine.py`), and Spark (`spark_engine.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import Replayed, Slice

if TYPE_CHECKING:
    from amqp_broker.pipeline.archive import Archive
    from amqp_broker.pipeline.report_tables import Report


class Engine(ABC):
    """An engine and a lake. The results of both engines are equal. All methods raise LakeRefused."""

    lake: Lake

    @abstractmethod
    def archive(self, options: Mapping[str, str], job: str, *, with_bodies: bool) -> Archive:
        """Return a job that reads a queue with the options of a source (pyspark_amqp)."""

    @abstractmethod
    def report(self, part: Slice) -> Report:
        """Return the report on a slice, which computes its tables when it is entered."""

    @abstractmethod
    def export(self, part: Slice, target: str) -> int:
        """Write events to a new folder or address as plain Parquet files by date; return their number."""

    @abstractmethod
    def replay(self, replayed: Replayed, options: Mapping[str, str]) -> int:
        """Publish messages again with a sink's options (pyspark_amqp); return their number.

        All are confirmed then. An option `routingKey` replaces the routing keys of the messages.
        """
