"""`amqp-broker pipeline`: a trace into a lake, a report of it, and its messages published again, by Spark."""

from __future__ import annotations

import logging
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from amqp_broker.cli.failing import CommandError, refusal
from amqp_broker.cli.progress import WIDTH, showing_progress
from amqp_broker.exit_codes import EX_CANTCREAT, EX_NOINPUT, EX_SOFTWARE, EX_UNAVAILABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from amqp_broker.pipeline.archive import Progress
    from amqp_broker.pipeline.lake import Lake

URL: Final = "amqp://guest:guest@localhost:5672/"
# What our source and sink raise, as Spark quotes the workers of Python.
_OURS: Final = re.compile(r"(?:OptionError|BrokerError|ConnectionLost|DataLoss): (.+)")
JAVA_GONE: Final = "Spark's Java process has ended before the job was done"
# How py4j says that Java did not answer; an exception of Java has a colon, and more, behind that.
_NO_ANSWER: Final = re.compile(r"An error occurred while (?:calling|trying to connect)[^\n]*(?<!:)\Z|Answer from Java")
_CALL: Final = re.compile(r"\AAn error occurred while calling [^\n]*\n(?=: )")


class Moment(click.ParamType[datetime]):
    """A time in ISO 8601; UTC unless it says otherwise."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"'{value}' is no time; 2026-11-21, 2026-11-21T13:00 and 2026-11-21T13:00:00+01:00 are some")
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


class Job(click.ParamType[str]):
    """The name of a job, which is that of its folder in the lake."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "/" in value or value in (".", ".."):
            self.fail(f"'{value}' is no name of a job: it is a folder's in the lake", param, ctx)
        return str(value)


def on_spark(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that every job has."""
    for option in (
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; repeatable."),
        click.option(
            "--master", default="", help="Where Spark runs: local[*] unless this or spark.master says otherwise."
        ),
        click.option(
            "--lake", "folder", required=True, metavar="PATH", help="The lake: a folder, or an address like s3a://…"
        ),
    ):
        command = option(command)
    return command


def of_a_slice(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which events."""
    for option in (
        click.option("--vhost", "-p", default=None, help="Only of this vhost."),
        click.option("--until", type=Moment(), default=None, help="Only before this time (UTC)."),
        click.option("--since", type=Moment(), default=None, help="Only from this time on (UTC)."),
    ):
        command = option(command)
    return command


url_option = click.option("--url", default=URL, show_default=True, envvar="AMQP_URL", help="The broker, and the vhost.")


@click.group()
def pipeline() -> None:
    """Archive a trace as Parquet, report on it, publish it again: docs/pipeline.md."""


@pipeline.command()
@on_spark
@url_option
@click.option("--queue", default="trace", show_default=True, help="Where the trace goes to.")
@click.option("--queue-type", type=click.Choice(["stream", "classic"]), default="stream", show_default=True)
@click.option(
    "--job", type=Job(), default="", help="Whose checkpoint it is: one for each queue, and named like it unless said."
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C or SIGTERM.")
@click.option(
    "--every", "every_s", type=click.IntRange(1), default=10, show_default=True, help="With --follow: seconds."
)
@click.option("--max-events", "events_max", type=click.IntRange(1), default=None, help="How many a batch has at most.")
@click.option("--no-bodies", is_flag=True, help="Leave bodies out; then nothing can be replayed.")
def archive(
    folder: str, master: str, conf: tuple[str, ...], url: str, queue: str, queue_type: str, job: str, follow: bool,
    every_s: int, events_max: int | None, no_bodies: bool,
) -> None:  # fmt: skip
    """Append what a stream has to the lake, each event once; the next run goes on where this one ended.

    A classic queue (RabbitMQ's firehose) is emptied.
    """
    options = {"url": url, "queue": queue, "queueType": queue_type}
    if events_max is not None:
        options["maxOffsetsPerTrigger"] = str(events_max)
    with session("archive", master, conf, lambda: check_source(options)) as spark:
        from amqp_broker.pipeline.archive import Archive
        from amqp_broker.pipeline.lake import Lake

        name = job or job_of(queue)
        work = Archive(spark, Lake(spark, folder), options, name, with_bodies=not no_bodies)
        signal.signal(signal.SIGTERM, _interrupt)
        began = time.monotonic()
        with rows_shown() as show:
            try:
                work.run(follow=follow, every_s=every_s, on_progress=show)
            except KeyboardInterrupt:
                if not follow:
                    raise
        click.echo(f"{told(work.events, 'event', began)} archived in {folder}.")
        if work.poisoned:
            click.echo(
                f"{work.poisoned:,} messages were no events; the table 'poisoned' has them, with reasons.", err=True
            )


@pipeline.command()
@on_spark
@of_a_slice
@click.option("--to", "target", required=True, metavar="PATH", help="Where the tables go.")
@click.option("--html", default="", metavar="FILE", help="Where the page goes: report.html in the current folder.")
def report(
    folder: str, master: str, conf: tuple[str, ...], since: datetime | None, until: datetime | None, vhost: str | None,
    target: str, html: str,
) -> None:  # fmt: skip
    """Compute the report of a lake, or of a part of it: tables of Parquet, and a page with plots."""
    file = html or "report.html"
    with session("report", master, conf, lambda: check_places(folder, target, file)) as spark:
        from amqp_broker.pipeline import page, report

        lake = open_lake(spark, folder)
        began = time.monotonic()
        with showing_progress("Computing", len(report.TABLES) + 1) as advance:
            with report.computed(spark, report.slice_of(lake, since, until, vhost)) as tables:
                written = report.write(tables, target, lambda name: advance())
            text = page.page(written)
        try:
            Path(file).write_text(text)
        except OSError as error:
            raise CommandError(f"cannot write '{file}': {error.strerror}", EX_CANTCREAT) from None
        events = sum(row["events"] for row in written["summary"].collect())
        click.echo(f"{told(events, 'event', began)} reported on in {target} and {file}.")


@pipeline.command()
@on_spark
@of_a_slice
@url_option
@click.option("--exchange", required=True, help="Where to publish; amq.default is the default exchange.")
@click.option("--from-exchange", default=None, help="Only what was published to this exchange.")
@click.option("--from-routing-key", default=None, help="Only what was published with this key.")
@click.option("--routing-key", default=None, help="Publish with this key instead of the message's own.")
@click.option("--unroutable-too", is_flag=True, help="Go on when a message reaches no queue.")
def replay(
    folder: str, master: str, conf: tuple[str, ...], since: datetime | None, until: datetime | None, vhost: str | None,
    url: str, exchange: str, from_exchange: str | None, from_routing_key: str | None, routing_key: str | None,
    unroutable_too: bool,
) -> None:  # fmt: skip
    """Publish messages of the lake again, in their order, and wait until the broker has confirmed them."""
    options = {"url": url, "exchange": unnamed(exchange) or "", "mandatory": str(not unroutable_too).lower()}
    if routing_key is not None:
        options["routingKey"] = routing_key
    with session("replay", master, conf, lambda: check_target(folder, options)) as spark:
        from amqp_broker.pipeline import replay, report

        events = report.slice_of(open_lake(spark, folder), since, until, vhost)
        rows = replay.messages(events, unnamed(from_exchange), from_routing_key)
        if routing_key is not None:
            rows = rows.drop("routing_key")
        began = time.monotonic()
        with showing_progress("Publishing"):
            count = replay.publish(rows, options)
        click.echo(f"{told(count, 'message', began)} published to {exchange}.")


def job_of(queue: str) -> str:
    """A folder's name, another one for each queue: two that share a checkpoint would skip each other's events."""
    return re.sub(r"[^\w-]|_", lambda found: f"_{ord(found[0]):x}_", queue)


def unnamed(exchange: str | None) -> str | None:
    """The default exchange has no name, but one for people."""
    return "" if exchange == "amq.default" else exchange


def open_lake(spark: SparkSession, folder: str) -> Lake:
    """Raises CommandError where there is none."""
    from amqp_broker.pipeline.lake import Lake

    lake = Lake(spark, folder)
    if not lake.hours("events"):
        raise CommandError(_no_lake(folder), EX_NOINPUT)
    return lake


def check_source(options: Mapping[str, str]) -> None:
    """Look at the queue before Spark starts: a typing error is told at once and leaves no lake. Raises CommandError."""
    from pyspark_amqp.connection import Connection
    from pyspark_amqp.errors import BrokerError, OptionError
    from pyspark_amqp.options import read_source
    from pyspark_amqp.stream_probe import begin

    try:
        source = read_source(options, is_streaming=True)
        with Connection(source.address) as connection:
            for queue in source.queues:
                if source.is_stream:
                    begin(connection, queue, "next", 1)
                else:
                    connection.check_no_stream(queue)
    except (OptionError, BrokerError) as error:
        raise refusal(str(error)) from None


def check_target(lake: str, options: Mapping[str, str]) -> None:
    """Look at a replay's lake, and at the exchange, before Spark starts. Raises CommandError."""
    from pyspark_amqp.errors import BrokerError, OptionError
    from pyspark_amqp.options import read_sink
    from pyspark_amqp.sink import check_broker

    check_lake(lake)
    try:
        check_broker(read_sink(options))
    except (OptionError, BrokerError) as error:
        raise refusal(str(error)) from None


def check_lake(folder: str) -> None:
    """Raise CommandError where a folder of this machine is no lake."""
    if "://" not in folder and not Path(folder).is_dir():
        raise CommandError(_no_lake(folder), EX_NOINPUT)


def check_places(lake: str, target: str, file: str) -> None:
    """Look at a report's places before Spark starts: its tables replace only what is a table. Raises CommandError."""
    from amqp_broker.pipeline.report import TABLES

    check_lake(lake)
    if not Path(file).parent.is_dir() or Path(file).is_dir():
        raise CommandError(f"cannot write '{file}'", EX_CANTCREAT)
    if "://" in target:
        return
    for path in (found for name in TABLES for found in Path(target, name).rglob("*")):
        if not path.name.startswith(("part-", ".part-", "_", "._")):
            raise CommandError(f"'{path}' is no part of a report, and would be lost; take another --to", EX_CANTCREAT)


def _no_lake(folder: str) -> str:
    return f"there is no lake at '{folder}'; `amqp-broker pipeline archive` makes one"


@contextmanager
def session(
    name: str, master: str, conf: tuple[str, ...], check: Callable[[], None] = lambda: None
) -> Iterator[SparkSession]:
    """Spark, for a while, if `check` raises nothing; what it cannot do ends as a sentence."""
    from amqp_broker.pipeline.session import NoSpark, open_session, require_spark

    # py4j writes a traceback to the root logger when it is interrupted, as --follow ends.
    logging.getLogger().addHandler(logging.NullHandler())
    settings = {}
    for pair in conf:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--conf must be NAME=VALUE, not '{pair}'")
        settings[key] = value
    try:
        require_spark()
        check()
        spark = open_session(name, master, settings)
    except NoSpark as error:
        raise CommandError(str(error), EX_UNAVAILABLE) from None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        with closing_of(spark):
            yield spark
    except (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        raise CommandError(reason_of(text_of(error)), EX_SOFTWARE) from None


@contextmanager
def closing_of(spark: SparkSession) -> Iterator[None]:
    """Stop Spark at the end; where its Java process is gone that is done, and hides no other reason."""
    try:
        yield
    finally:
        with suppress(ConnectionRefusedError, ConnectionResetError):
            spark.stop()


def text_of(error: Exception) -> str:
    """What an error of Spark says. Who stops a container or a service ends all of its processes: then Java is gone, and
    what comes of that says so in many ways."""
    if isinstance(error, ConnectionError):
        return JAVA_GONE
    try:
        # That of an exception in Java is asked for there.
        text = str(error)
    except OSError:
        return JAVA_GONE
    return JAVA_GONE if _NO_ANSWER.match(text) else text


def reason_of(text: str) -> str:
    """What of Spark's many lines says what is wrong."""
    ours = _OURS.findall(text)
    # Where Java fails, py4j's line says which of its objects was called, and Java's own what is wrong.
    lines = [line.strip(" :") for line in _CALL.sub("", text).splitlines() if line.strip(" :")]
    return str(ours[-1]) if ours else lines[0] if lines else "Spark failed and does not say why"


def told(count: int, what: str, began: float) -> str:
    """How many, and how fast."""
    seconds = max(time.monotonic() - began, 0.001)
    return f"{count:,} {what}{'' if count == 1 else 's'} in {seconds:.1f} s ({count / seconds:,.0f}/s)"


@contextmanager
def rows_shown() -> Iterator[Callable[[Progress], None] | None]:
    """A line on stderr that tells rows, rate, and how many are still to come, if a person looks at it."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(progress: Progress) -> None:
        click.echo(f"\r\x1b[KArchiving {bar_of(progress)}", nl=False, err=True)

    yield show
    click.echo("\r\x1b[K", nl=False, err=True)


def bar_of(progress: Progress) -> str:
    whole = max(1, progress.rows + progress.behind)
    full = WIDTH * progress.rows // whole
    counts = f"{progress.rows:,} rows, {progress.rows_per_s:,.0f}/s, {progress.behind:,} to come"
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {counts}"


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
