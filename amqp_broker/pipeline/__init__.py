"""Spark jobs on a trace: archive a stream in Delta tables, report on it, and replay its messages.

The broker does not import this package, and importing it imports no Spark. The source and sink for AMQP are in
`pyspark_amqp`, the commands in `cli/own/pipeline.py`. Read `event_rows.py` first, then `trace_records.py`, then
`archive.py`.

A record of the trace has thousands of events. Python decodes it column by column where it is read; Spark's JVM does all
else, and writes Parquet files. The archive is a streaming query, whose process commits the files of each batch to a
Delta table (`lake_table.py`). Reports are queries over three views, and `tests/pipeline/reference.py` computes the same
figures without Spark.
"""
