"""Read the lake of examples/pipeline.py without Spark, as any tool that knows Delta tables.

pip install '.[spark]'
python examples/pipeline.py
python examples/lake.py
"""

import pyarrow.compute as pc
from deltalake import DeltaTable

events = DeltaTable("trace/lake/events")
print(f"version {events.version()} of the table has {len(events.file_uris())} files")

table = events.to_pyarrow_table(columns=["event", "queue", "time"])
for row in table.group_by("event").aggregate([("time", "count")]).sort_by("event").to_pylist():
    print(f"{row['event']:12} {row['time_count']:6}")

dead = table.filter(pc.field("event") == "dead_letter")
print(f"{dead.num_rows} orders were refused")
