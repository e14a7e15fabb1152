"""Options of the commands that run on Spark, its session, and sentences for its errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.exit_codes import EX_DATAERR, EX_IOERR, EX_NOINPUT, EX_SOFTWARE, EX_TEMPFAIL, EX_UNAVAILABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Errors of the Spark source and sink of this project, as Spark quotes its Python workers.
_OWN_ERROR: Final = re.compile(r"(?:OptionError|BrokerError|ConnectionLost|DataLoss): (.+)")
JAVA_GONE: Final = "Spark's Java process has ended before the job was done"
# Message of py4j when Java does not answer; for an exception in Java, a colon and more text follow.
_NO_ANSWER: Final = re.compile(r"An error occurred while (?:calling|trying to connect)[^\n]*(?<!:)\Z|Answer from Java")
_CALL: Final = re.compile(r"\AAn error occurred while calling [^\n]*\n(?=: )")

# Colours in the texts of deltalake.
_ESCAPE: Final = re.compile(r"\x1b\[\d*m|↳")
ERROR_CHARACTERS: Final = 400


class Moment(click.ParamType[datetime]):
    """A time in ISO 8601, in UTC unless it has an offset."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"'{value}' is not a time like 2026-11-21, 2026-11-21T13:00 or 2026-11-21T13:00:00+01:00")
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def on_spark(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of every job."""
    for option in (
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Setting of Spark; repeatable."),
        click.option("--master", default="", help="Master of Spark: spark.master or local[*] by default."),
        click.option(
            "--lake", "folder", required=True, metavar="PATH", help="Lake: a folder, or an address like s3a://…"
        ),
    ):
        command = option(command)
    return command


def of_a_slice(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select events."""
    for option in (
        click.option("--vhost", "-p", default=None, help="Only events of this vhost."),
        click.option("--until", type=Moment(), default=None, help="Only events before this time (UTC)."),
        click.option("--since", type=Moment(), default=None, help="Only events at or after this time (UTC)."),
    ):
        command = option(command)
    return command


def settings_of(conf: tuple[str, ...]) -> dict[str, str]:
    """Return the settings of `--conf`."""
    settings = {}
    for pair in conf:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--conf must be NAME=VALUE, not '{pair}'")
        settings[key] = value
    return settings


@contextmanager
def session(
    name: str, master: str, conf: tuple[str, ...], check: Callable[[], None] = lambda: None
) -> Iterator[SparkSession]:
    """Start Spark after `check`, and turn its errors into CommandError."""
    from amqp_broker.pipeline.spark_session import NoSpark, master_of, open_session, require_spark

    # py4j logs a traceback when it is interrupted, which is how --follow ends.
    logging.getLogger().addHandler(logging.NullHandler())
    settings = settings_of(conf)
    try:
        require_spark(master_of(master, settings))
        check()
        spark = open_session(name, master, settings)
    except NoSpark as error:
        raise CommandError(str(error), EX_UNAVAILABLE) from None
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with closing_of(spark), lake_errors():
            yield spark
    except (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        raise CommandError(reason_of(text_of(error)), EX_SOFTWARE) from None


@contextmanager
def closing_of(spark: SparkSession) -> Iterator[None]:
    """Stop Spark at the end; a Java process that has already ended is not an error."""
    try:
        yield
    finally:
        with suppress(ConnectionRefusedError, ConnectionResetError):
            spark.stop()


def text_of(error: Exception) -> str:
    """Return the message of an error of Spark.

    When a container or a service stops, Java may end before Python, which causes errors of many kinds.
    """
    if isinstance(error, ConnectionError):
        return JAVA_GONE
    try:
        # py4j asks Java for the message of a Java exception.
        text = str(error)
    except OSError:
        return JAVA_GONE
    return JAVA_GONE if _NO_ANSWER.match(text) else text


def reason_of(text: str) -> str:
    """Return the reason among the many lines of an error."""
    known = _OWN_ERROR.findall(text)
    # For an error in Java, py4j's line names the called object; Java's own line has the reason.
    lines = [line.strip(" :") for line in _CALL.sub("", text).splitlines() if line.strip(" :")]
    return str(known[-1]) if known else lines[0] if lines else "Spark failed without a reason"


@contextmanager
def lake_errors() -> Iterator[None]:
    """Turn refusals of a lake, and errors of its log and its store, into CommandError."""
    from deltalake.exceptions import DeltaError

    from amqp_broker.pipeline.lake_table import LakeBusy, LakeRefused

    try:
        yield
    except LakeRefused as error:
        raise CommandError(str(error), EX_TEMPFAIL if isinstance(error, LakeBusy) else EX_DATAERR) from None
    except ConnectionError:
        # Java is gone.
        raise
    except (DeltaError, OSError) as error:
        text = " ".join(_ESCAPE.sub("", str(error)).split())
        raise CommandError(f"the lake cannot be read or written: {text[:ERROR_CHARACTERS]}", EX_IOERR) from None


def check_lake(folder: str) -> None:
    """Raise CommandError if a local folder does not exist."""
    if "://" not in folder and not Path(folder).is_dir():
        raise CommandError(no_lake(folder), EX_NOINPUT)


def no_lake(folder: str) -> str:
    return f"there is no lake at '{folder}'; `amqp-broker pipeline archive` creates one"
