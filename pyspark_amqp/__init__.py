"""AMQP 0-9-1 queues and streams as tables of Apache Spark: `spark.readStream.format("amqp")`.

Spark finds this package by its name. It works with any AMQP 0-9-1 broker and imports nothing of `amqp_broker`. Jobs on
a broker's trace are in `amqp_broker.pipeline`. Read `data_source.py` first.
"""

from __future__ import annotations

try:
    import pika  # noqa: F401
    import pyarrow  # noqa: F401

    from pyspark_amqp.data_source import DefaultSource
except ModuleNotFoundError as missing:
    raise ImportError(
        f"The Spark format 'amqp' needs {missing.name}, which is not installed:"
        ' pip install "amqp-minibroker[spark]"; without Java 17 or newer, "amqp-minibroker[spark,spark-jre]"'
    ) from missing

__all__ = ["DefaultSource"]
