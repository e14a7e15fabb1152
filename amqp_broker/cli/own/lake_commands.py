"""Commands for the lake itself: compaction, export to plain Parquet, and conversion of old lakes."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import click

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.lake_engines import asks_for_spark, check_there, lake_at, open_engine
from amqp_broker.cli.own.spark_command import check_lake, lake_errors, of_a_slice, on_spark, session
from amqp_broker.cli.shared.progress_bar import counted
from amqp_broker.exit_codes import EX_CANTCREAT, EX_UNAVAILABLE
from amqp_broker.pipeline.lake_slice import Slice

KEEP_HOURS = 168


@click.command()
@click.option("--lake", "folder", required=True, metavar="PATH", help="Lake: a folder, or an address like s3a://…")
@click.option(
    "--keep-hours",
    type=click.IntRange(1),
    default=KEEP_HOURS,
    show_default=True,
    help="Keep files that the lake has lost since, for readers that began before.",
)
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Setting spark.hadoop.fs.s3a.… of Spark; repeatable.")
def compact(folder: str, keep_hours: int, conf: tuple[str, ...]) -> None:
    """Join the small files of a lake, and delete those that are no longer needed.

    The archive does this by itself. This command joins all, also deletes what killed processes left behind, and needs
    no Spark.
    """
    try:
        import deltalake  # noqa: F401
    except ImportError:
        raise CommandError("deltalake is missing: pip install 'amqp-minibroker[spark]'", EX_UNAVAILABLE) from None
    check_lake(folder)
    with lake_errors():
        lake = lake_at(folder, conf)
        check_there(lake, folder)
        tables = lake.tables
        joined = sum(table.compact() for table in tables.values())
        gone = sum(table.vacuum(keep_hours) for table in tables.values())
    click.echo(f"{joined:,} small files joined, {gone:,} old files deleted in {folder}.")


@click.command()
@on_spark
@of_a_slice
@click.option("--to", "target", required=True, metavar="PATH", help="Folder or address of the files.")
def export(
    folder: str, master: str, conf: tuple[str, ...], since: datetime | None, until: datetime | None, vhost: str | None,
    target: str,
) -> None:  # fmt: skip
    """Write the events of a lake, or a part, as plain Parquet files by date."""

    def check() -> None:
        check_lake(folder)
        if "://" not in target and (Path(target).is_file() or (Path(target).is_dir() and any(Path(target).iterdir()))):
            raise CommandError(f"'{target}' is not empty; choose another --to", EX_CANTCREAT)

    part = Slice(since, until, vhost)
    with_spark = asks_for_spark(master, conf)
    with open_engine("export", folder, master, conf, check, with_spark=with_spark) as engine:
        check_there(engine.lake, folder)
        began = time.monotonic()
        count = engine.export(part, target)
        click.echo(f"{counted(count, 'event', began)} exported to {target}.")


@click.command()
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Setting of Spark; repeatable.")
@click.option("--master", default="", help="Master of Spark: spark.master or local[*] by default.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
def convert(old: str, new: str, master: str, conf: tuple[str, ...]) -> None:
    """Make a new lake of one that an older version wrote; archives continue in the new one.

    An interrupted conversion is continued when it is repeated. Stop the archives of the old lake before.
    """
    with session("convert", master, conf, lambda: check_lake(old)) as spark:
        from amqp_broker.pipeline.old_lake import convert

        began = time.monotonic()
        click.echo(f"{counted(convert(spark, old, new), 'row', began)} converted to {new}.")
