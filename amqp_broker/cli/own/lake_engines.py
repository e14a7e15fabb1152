"""The engine of a job on a lake: this process, or Spark if it is asked for or the events are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from amqp_broker.cli.own.command_error import CommandError, refusal
from amqp_broker.cli.own.spark_command import lake_errors, no_lake, session, settings_of
from amqp_broker.exit_codes import EX_NOINPUT, EX_SOFTWARE, EX_UNAVAILABLE

if TYPE_CHECKING:
    from amqp_broker.pipeline.engine import Engine
    from amqp_broker.pipeline.lake import Lake
    from amqp_broker.pipeline.lake_slice import Slice

# Events up to which a report and an export need no Spark.
LOCAL_EVENTS_MAX: Final = 10_000_000
# Settings that are those of the object store, for both engines.
STORE_PREFIX: Final = "spark.hadoop."
# Packages of a job in this process, and of one that reads or writes a queue.
PACKAGES: Final = ("deltalake", "duckdb")
WITH_QUEUES: Final = (*PACKAGES, "pyspark_amqp")
ADVICE: Final = "'{}' is not installed here: pip install 'amqp-minibroker[spark]'"


def asks_for_spark(master: str, conf: tuple[str, ...]) -> bool:
    """Return whether the options are those of Spark."""
    return bool(master) or any(not name.startswith(STORE_PREFIX) for name in settings_of(conf))


def is_large(folder: str, conf: tuple[str, ...], part: Slice) -> bool:
    """Return whether the dates of a slice have too many events for this process, and Spark is here."""
    from amqp_broker.pipeline.spark_session import LOCAL, NoSpark, require_spark

    with lake_errors():
        rows = sum(file.rows for file in lake_at(folder, conf).data_files("events", part))
    if rows <= LOCAL_EVENTS_MAX:
        return False
    try:
        require_spark(LOCAL)
    except NoSpark:
        return False
    return True


def lake_at(folder: str, conf: tuple[str, ...]) -> Lake:
    """Return the lake at a place, with the settings of its object store."""
    from amqp_broker.pipeline.lake import Lake

    settings = settings_of(conf)
    return Lake(folder, lambda name: settings.get(f"{STORE_PREFIX}{name}"))


@contextmanager
def open_engine(
    name: str,
    folder: str,
    master: str,
    conf: tuple[str, ...],
    check: Callable[[], None],
    *,
    with_spark: bool,
    needs: tuple[str, ...] = PACKAGES,
) -> Iterator[Engine]:
    """Provide the engine of a lake, after `check`; turn errors into CommandError.

    `needs` are the packages of a job in this process.
    """
    if with_spark:
        with session(name, master, conf, check) as spark:
            from amqp_broker.pipeline.spark_engine import SparkEngine
            from amqp_broker.pipeline.spark_lake import SparkLake

            yield SparkEngine(SparkLake(spark, folder))
        return
    for package in needs:
        try:
            import_module(package)
        except ImportError as error:
            missing = error.name or getattr(error.__cause__, "name", None) or package
            raise CommandError(ADVICE.format(missing), EX_UNAVAILABLE) from None
    check()
    from duckdb import Error

    from amqp_broker.pipeline.local_engine import LocalEngine

    try:
        with lake_errors():
            yield LocalEngine(lake_at(folder, conf))
    except Error as error:
        raise CommandError(str(error), EX_SOFTWARE) from None


@contextmanager
def broker_errors() -> Iterator[None]:
    """Turn the errors of a source or a sink in this process into CommandError."""
    from pyspark_amqp.errors import BrokerError, DataLoss, OptionError

    try:
        yield
    except (OptionError, BrokerError, DataLoss) as error:
        raise refusal(str(error)) from None


def check_there(lake: Lake, folder: str) -> None:
    """Raise CommandError if there is no lake."""
    if not lake.exists():
        raise CommandError(no_lake(folder), EX_NOINPUT)
