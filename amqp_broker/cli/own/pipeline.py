"""`amqp-broker pipeline`: archive a trace, report on the archive, and publish its messages again."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from amqp_broker.cli.own.command_error import CommandError, refusal
from amqp_broker.cli.own.lake_commands import compact, convert, export
from amqp_broker.cli.own.lake_engines import (
    WITH_QUEUES,
    asks_for_spark,
    broker_errors,
    check_there,
    is_large,
    open_engine,
)
from amqp_broker.cli.own.spark_command import check_lake, of_a_slice, on_spark
from amqp_broker.cli.shared.progress_bar import counted, showing_progress
from amqp_broker.cli.shared.standard_streams import leave_interrupted_line
from amqp_broker.exit_codes import EX_CANTCREAT, EX_NOINPUT
from amqp_broker.pipeline.lake_slice import Replayed, Slice

if TYPE_CHECKING:
    from amqp_broker.pipeline.archive import Progress

URL: Final = "amqp://guest:guest@localhost:5672/"
# The page of a report.
PAGE: Final = "report.html"


class Job(click.ParamType[str]):
    """The name of a job and of its folder in the lake."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "/" in value or value in (".", ".."):
            self.fail(f"'{value}' is not a valid name of a job: it names a folder in the lake", param, ctx)
        return str(value)


url_option = click.option("--url", default=URL, show_default=True, envvar="AMQP_URL", help="Broker and vhost.")


@click.group()
def pipeline() -> None:
    """Archive a trace, report on it, or publish it again; docs/pipeline.md describes this."""


for command in (compact, convert, export):
    pipeline.add_command(command)


@pipeline.command()
@on_spark
@url_option
@click.option("--queue", default="trace", show_default=True, help="Queue with the trace.")
@click.option("--queue-type", type=click.Choice(["stream", "classic"]), default="stream", show_default=True)
@click.option("--job", type=Job(), default="", help="Name of the checkpoint: the name of the queue by default.")
@click.option("--follow", is_flag=True, help="Continue with new events until Ctrl-C or SIGTERM.")
@click.option(
    "--every",
    "every_s",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Seconds between batches.",
)
@click.option(
    "--max-records",
    "records_max",
    type=click.IntRange(1),
    default=None,
    help="Maximum number of the stream's messages per batch.",
)
@click.option("--no-bodies", is_flag=True, help="Leave out bodies; without them, messages cannot be replayed.")
def archive(
    folder: str, master: str, conf: tuple[str, ...], url: str, queue: str, queue_type: str, job: str, follow: bool,
    every_s: int, records_max: int | None, no_bodies: bool,
) -> None:  # fmt: skip
    """Append the events of a stream to the lake, each once; the next run continues after the last event.

    Events of a classic queue (RabbitMQ's firehose) are removed from it.
    """
    options = {"url": url, "queue": queue, "queueType": queue_type}
    if records_max is not None:
        options["maxOffsetsPerTrigger"] = str(records_max)
    with_spark = asks_for_spark(master, conf)
    check = partial(check_source, options)
    with (
        open_engine("archive", folder, master, conf, check, with_spark=with_spark, needs=WITH_QUEUES) as engine,
        broker_errors(),
    ):
        work = engine.archive(options, job or job_of(queue), with_bodies=not no_bodies)
        signal.signal(signal.SIGTERM, _interrupt)
        began = time.monotonic()
        try:
            with rows_shown() as show:
                work.run(follow=follow, every_s=every_s, on_progress=show)
        except KeyboardInterrupt:
            if not follow:
                raise
            leave_interrupted_line()
        click.echo(f"{counted(work.events, 'event', began)} archived in {folder}.")
        if work.poisoned:
            click.echo(
                f"{work.poisoned:,} messages were not events; the table 'poisoned' contains them, with reasons.",
                err=True,
            )


@pipeline.command()
@on_spark
@of_a_slice
@click.option("--to", "target", required=True, metavar="PATH", help="Folder or address of the tables.")
@click.option("--html", default="", metavar="FILE", help="File of the page: by default report.html in --to.")
@click.option("--follow", "id_", default="", metavar="ID", help="Draw the way of messages with this id on the page.")
def report(
    folder: str, master: str, conf: tuple[str, ...], since: datetime | None, until: datetime | None, vhost: str | None,
    target: str, html: str, id_: str,
) -> None:  # fmt: skip
    """Compute the report of a lake or a part: tables of Parquet, and a page with plots."""
    file = html or str(PAGE if "://" in target else Path(target, PAGE))
    part, with_spark = Slice(since, until, vhost), asks_for_spark(master, conf)
    check_places(folder, target, file)
    with_spark = with_spark or is_large(folder, conf, part)
    with open_engine("report", folder, master, conf, lambda: None, with_spark=with_spark) as engine:
        from amqp_broker.pipeline import report_page, report_tables
        from amqp_broker.pipeline.followed import followed
        from amqp_broker.pipeline.lake import extent

        check_there(engine.lake, folder)
        began = time.monotonic()
        with (
            showing_progress("Computing", len(report_tables.TABLES) + 1) as progress,
            engine.report(part) as tables,
        ):
            tables.write(target, lambda name: progress.step())
            events = sum(row["events"] for row in tables.select("SELECT events FROM summary"))
            note = "" if events else f"There are no events in this part of the lake. {extent(engine.lake)}"
            way = followed(tables, id_) if id_ else []
            title = f"The way of '{id_}'" if way else "Report of a message trace"
            text = report_page.page(tables, title, note, way)
        if id_ and not way:
            raise CommandError(f"no message of this part of the lake has the id '{id_}'", EX_NOINPUT)
        try:
            Path(file).write_text(text, "utf-8")
        except OSError as error:
            raise CommandError(f"cannot write '{file}': {error.strerror}", EX_CANTCREAT) from None
        if note:
            click.echo(note, err=True)
        click.echo(f"{counted(events, 'event', began)} reported on in {target} and {file}.")


@pipeline.command()
@on_spark
@of_a_slice
@url_option
@click.option("--exchange", required=True, help="Exchange to publish to; amq.default is the default one.")
@click.option("--from-exchange", default=None, help="Only messages that were published to this exchange.")
@click.option("--from-routing-key", default=None, help="Only messages that were published with this routing key.")
@click.option("--routing-key", default=None, help="Routing key instead of that of the message.")
@click.option("--unroutable-too", is_flag=True, help="Continue when a message reaches no queue.")
def replay(
    folder: str, master: str, conf: tuple[str, ...], since: datetime | None, until: datetime | None, vhost: str | None,
    url: str, exchange: str, from_exchange: str | None, from_routing_key: str | None, routing_key: str | None,
    unroutable_too: bool,
) -> None:  # fmt: skip
    """Publish messages of the lake again in their order, and wait for the confirms."""
    options = {"url": url, "exchange": unnamed(exchange) or "", "mandatory": str(not unroutable_too).lower()}
    if routing_key is not None:
        options["routingKey"] = routing_key
    with_spark = asks_for_spark(master, conf)
    check = partial(check_target, folder, options)
    with (
        open_engine("replay", folder, master, conf, check, with_spark=with_spark, needs=WITH_QUEUES) as engine,
        broker_errors(),
    ):
        check_there(engine.lake, folder)
        replayed = Replayed(Slice(since, until, vhost), unnamed(from_exchange), from_routing_key)
        began = time.monotonic()
        with showing_progress("Publishing"):
            count = engine.replay(replayed, options)
        click.echo(f"{counted(count, 'message', began)} published to {exchange}.")


def job_of(queue: str) -> str:
    """Return a folder name that differs for each queue: queues that share a checkpoint would lose events."""
    return re.sub(r"[^\w-]|_", lambda found: f"_{ord(found[0]):x}_", queue)


def unnamed(exchange: str | None) -> str | None:
    """Return the name of an exchange; amq.default stands for the one without a name."""
    return "" if exchange == "amq.default" else exchange


def check_source(options: Mapping[str, str]) -> None:
    """Check the queue before Spark starts, so that a typing error leaves no lake. Raises CommandError."""
    from pyspark_amqp.amqp_connection import Connection
    from pyspark_amqp.errors import BrokerError, OptionError
    from pyspark_amqp.format_options import read_source
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
    """Check the lake and the exchange of a replay before Spark starts. Raises CommandError."""
    from pyspark_amqp.errors import BrokerError, OptionError
    from pyspark_amqp.format_options import read_sink
    from pyspark_amqp.sink import check_broker

    check_lake(lake)
    try:
        check_broker(read_sink(options))
    except (OptionError, BrokerError) as error:
        raise refusal(str(error)) from None


def check_places(lake: str, target: str, file: str) -> None:
    """Check the places of a report before Spark starts; it replaces only reports. Raises CommandError."""
    from amqp_broker.pipeline.report_tables import TABLES

    check_lake(lake)
    page = Path(file)
    # The tables make their folder.
    if (not page.parent.is_dir() and page.parent != Path(target)) or page.is_dir():
        raise CommandError(f"cannot write '{file}'", EX_CANTCREAT)
    if page.exists() and not is_report(page):
        problem = f"'{file}' is not the page of a report and would be lost; choose another --html"
        raise CommandError(problem, EX_CANTCREAT)
    if "://" in target:
        return
    for path in (found for name in TABLES for found in Path(target, name).rglob("*")):
        if not path.name.startswith(("part-", ".part-", "_", "._")):
            raise CommandError(f"'{path}' is not part of a report and would be lost; choose another --to", EX_CANTCREAT)


def is_report(page: Path) -> bool:
    """Return whether a file is the page of a report. Raises CommandError."""
    from amqp_broker.pipeline.page_document import GENERATOR

    try:
        with page.open(encoding="utf-8", errors="replace") as lines:
            return GENERATOR in lines.readline()
    except OSError as error:
        raise CommandError(f"cannot read '{page}': {error.strerror}", EX_NOINPUT) from None


@contextmanager
def rows_shown() -> Iterator[Callable[[Progress], None] | None]:
    """Show rows, rate and backlog on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    with showing_progress("Archiving") as bar:

        def show(progress: Progress) -> None:
            bar.move_to(progress.rows, max(1, progress.rows + progress.behind))
            bar.note = f"{progress.rows_per_s:,.0f} rows/s"

        yield show


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
