"""A stream of a broker as a table, and a table that is computed from it."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.table
def orders() -> DataFrame:
    """Each message of the stream once, however often the pipeline runs."""
    reader = spark.readStream.format("amqp").options(
        url=os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/"),
        queue="orders",
        queueType="stream",
        startingOffsets="earliest",
    )
    return reader.load().selectExpr("offset", "cast(body AS string) AS body", "timestamp")


@dp.materialized_view
def summary() -> DataFrame:
    """The number of orders."""
    return spark.read.table("orders").selectExpr("count(*) AS orders", "max(offset) AS last_offset")
