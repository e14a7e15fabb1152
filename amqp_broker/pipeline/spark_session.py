"""A Spark session for a job, by default on this machine's cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
# Defaults that `--conf` may override. Times and the lake's dates are in UTC.
DEFAULTS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# Defaults for a single machine; a cluster has better settings.
LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # A job is short, so Java's second compiler costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "8",
}
ADVICE: Final = (
    "Spark is not installed here ({}): pip install 'amqp-minibroker[spark]' where Java 17 or newer is, and "
    "'amqp-minibroker[spark,spark-jre]' where it is not"
)


class NoSpark(RuntimeError):
    """Spark, or a Java for it, is missing; the text says how to get it."""


def master_of(master: str, conf: Mapping[str, str]) -> str:
    """Return the master of a session: `master` if it is given, or `spark.master`, or this machine."""
    return master or conf.get("spark.master", LOCAL)


def require_spark(master: str) -> None:
    """Prepare the environment for Spark with this master. Raise NoSpark if Spark or Java is missing."""
    try:
        import deltalake  # noqa: F401

        import pyspark_amqp  # noqa: F401
        from pyspark_amqp.java import NoJava, ensure_java
    except ImportError as error:
        raise NoSpark(ADVICE.format(error.name or str(error.__cause__ or error))) from None
    try:
        ensure_java(master)
    except NoJava as error:
        raise NoSpark(str(error)) from None


def open_session(name: str, master: str = "", conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session for a job. Without `master`, `spark.master` or this machine is used. Raise NoSpark."""
    given = dict(conf or {})
    place = master_of(master, given)
    require_spark(place)
    from pyspark.sql import SparkSession

    from pyspark_amqp import DefaultSource

    settings = {**DEFAULTS, **(LOCAL_DEFAULTS if place.startswith("local") else {}), **given}
    builder = SparkSession.builder.appName(f"amqp-broker {name}").master(place)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # Spark does not find the format of a package that is installed in place (`pip install -e`).
    session.dataSource.register(DefaultSource)
    return session
