"""The one Spark session of the tests: `from tests.spark_session import spark`. To start it takes some ten seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyspark_amqp.java import NoJava, ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "768m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # It needs pandas.
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    try:
        ensure_java(MASTER)
    except NoJava as lacking:
        # Where CI runs, what is lacking is a failure.
        if os.environ.get("CI"):
            raise
        pytest.skip(str(lacking))
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).appName("tests")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    yield session
    session.stop()
