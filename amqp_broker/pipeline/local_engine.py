"""Jobs in this process, with pyarrow and DuckDB: no Java, and no wait for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqp_broker.pipeline.engine import Engine
from amqp_broker.pipeline.event_rows import ARROW
from amqp_broker.pipeline.lake import Lake, place_of
from amqp_broker.pipeline.lake_slice import Replayed, Slice
from amqp_broker.pipeline.lake_table import PARTITION

if TYPE_CHECKING:
    from pyarrow.dataset import WrittenFile

    from amqp_broker.pipeline.archive import Archive
    from amqp_broker.pipeline.report_tables import Report


class LocalEngine(Engine):
    """The engine of a lake in this process. The imports of a job are its own: Spark's package takes a second."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def archive(self, options: Mapping[str, str], job: str, *, with_bodies: bool) -> Archive:
        from amqp_broker.pipeline.local_archive import LocalArchive

        return LocalArchive(self.lake, options, job, with_bodies=with_bodies)

    def report(self, part: Slice) -> Report:
        from amqp_broker.pipeline.local_report import LocalReport

        return LocalReport(self.lake, part)

    def export(self, part: Slice, target: str) -> int:
        import pyarrow as pa
        import pyarrow.dataset as arrow

        from amqp_broker.pipeline.lake_files import files_at

        columns = {name: arrow.field(name) for name in ARROW.names}
        columns[PARTITION] = arrow.field("time").cast(pa.date32())
        count = 0

        def counted(written: WrittenFile) -> None:
            nonlocal count
            count += written.metadata.num_rows

        arrow.write_dataset(
            self.lake.dataset("events", part).scanner(columns=columns, filter=part.filter),
            "",
            format="parquet",
            filesystem=files_at(place_of(target), self.lake.options),
            partitioning=arrow.partitioning(pa.schema([(PARTITION, pa.date32())]), flavor="hive"),
            basename_template="part-{i}.parquet",
            file_visitor=counted,
            existing_data_behavior="overwrite_or_ignore",
        )
        return count

    def replay(self, replayed: Replayed, options: Mapping[str, str]) -> int:
        from amqp_broker.pipeline.local_replay import publish

        return publish(self.lake, replayed, options)
