"""Spark jobs on a trace: archive a stream as Parquet, report on it, and publish its messages again.

The broker does not import this package, and importing it imports no Spark. The source and sink for AMQP are in
`pyspark_amqp`, the commands in `cli/own/pipeline.py`. Read `event_rows.py` first, then `trace_records.py`, then
`archive.py`.

A record of the trace has thousands of events. Python decodes it column by column where it is read; Spark's JVM does all
else. The archive is a streaming query. Each batch writes to files of its own, so a repeated batch replaces itself, and
compaction joins the small files of later batches. Reports are queries over three views, and
`tests/pipeline/reference.py` computes the same figures without Spark.
"""
