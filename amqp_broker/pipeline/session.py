"""A Spark session for a job of ours: on this machine's cores unless somebody says where else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
# What `--conf` may say otherwise. Times are told in UTC, and a date of the lake is a date there.
DEFAULTS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# What only one machine needs: a cluster's own settings are better than these.
LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # A job here is short: most of what it costs is Java's second compiler, which pays off later than that.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "8",
}
ADVICE: Final = (
    "Spark is not installed here ({}): pip install 'amqp-minibroker[spark]' where Java 17 or newer is, and "
    "'amqp-minibroker[spark,spark-jre]' where it is not"
)


class NoSpark(RuntimeError):
    """Spark, or a Java for it, is missing; the text says how to get it."""


def require_spark() -> None:
    """Raises NoSpark."""
    try:
        import pyspark_amqp  # noqa: F401
        from pyspark_amqp.java import NoJava, ensure_java
    except ImportError as error:
        raise NoSpark(ADVICE.format(error.name or str(error.__cause__ or error))) from None
    try:
        ensure_java()
    except NoJava as error:
        raise NoSpark(str(error)) from None


def open_session(name: str, master: str = "", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session for a job called `name`. `master` is Spark's; without one `spark.master`, else this machine.

    Raises NoSpark.
    """
    require_spark()
    from pyspark.sql import SparkSession

    from pyspark_amqp import DefaultSource

    given = dict(conf or {})
    place = master or given.get("spark.master", LOCAL)
    settings = {**DEFAULTS, **(LOCAL_DEFAULTS if place.startswith("local") else {}), **given}
    builder = SparkSession.builder.appName(f"amqp-broker {name}").master(place)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # Spark does not find it by itself where the package is installed in place (`pip install -e`).
    session.dataSource.register(DefaultSource)
    return session
