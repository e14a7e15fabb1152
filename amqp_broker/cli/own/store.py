"""`amqp-broker store`: show, check, repair, compact and back up the store of a broker."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click

from amqp_broker.cli.shared.progress_bar import lasted, showing_progress
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_SOFTWARE, EX_TEMPFAIL
from amqp_broker.settings.sources.precedence import load
from amqp_broker.store import copies
from amqp_broker.store import info as info_of
from amqp_broker.store.environment import (
    ReadOnlyEnvironment,
    StoreDamaged,
    StoreError,
    StoreInaccessible,
    StoreInUse,
    StoreMissing,
    StoreUnusable,
)
from amqp_broker.store.repair import repair as repair_store
from amqp_broker.store.verify import verify as verify_store

EXIT_CODES: Final[dict[type[StoreError], int]] = {
    StoreUnusable: EX_DATAERR,
    StoreDamaged: EX_DATAERR,
    StoreMissing: EX_NOINPUT,
    StoreInaccessible: EX_CANTCREAT,
    StoreInUse: EX_TEMPFAIL,
}
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def exit_code_of(error: StoreError) -> int:
    """Return the exit code for an error (sysexits.h)."""
    return EXIT_CODES.get(type(error), EX_SOFTWARE)


def folder_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the folder of a store: as an argument, or as the option of `serve`."""

    @functools.wraps(command)
    def with_folder(*, folder: str | None, data_dir: str | None, **options: Any) -> None:
        if folder is not None and data_dir is not None:
            raise click.UsageError("give the folder once, as DIR or with --data-dir")
        if "" in (folder, data_dir):
            raise click.UsageError("the name of the folder is empty; give that of a store")
        try:
            command(data_dir=data_dir if folder is None else folder, **options)
        except StoreError as error:
            if folder is None:
                raise
            # The remedy names the option, as `serve` has it.
            raise type(error)(str(error).replace(" with --data-dir", "")) from error

    help_ = "Folder of the store, as for `serve`."
    return click.argument("folder", metavar="[DIR]", required=False)(
        click.option("--data-dir", default=None, help=help_)(with_folder)
    )


def folder_of(data_dir: str | None) -> Path:
    """Return the folder that `serve` would use with the same option and environment."""
    folder = load({"data_dir": data_dir, "ephemeral": False}, os.environ).settings.store_path
    assert folder is not None
    return folder


@click.group()
def store() -> None:
    """Show, check, repair, compact and copy the store of a broker."""


@store.command()
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(data_dir: str | None, as_json: bool) -> None:
    """Show the contents of a store, also while a broker uses it."""
    environment = ReadOnlyEnvironment(folder_of(data_dir), is_alone=False, is_quick=True)
    with closing(environment):
        summary = info_of.summarize(environment)
    if as_json:
        click.echo(json.dumps(summary.as_json(), indent=2))
        return
    click.echo(f"{summary.folder}: format {summary.format}, {shown(summary.file_bytes)} on disk, ", nl=False)
    click.echo(f"{summary.free_pages} of {summary.pages} pages free")
    click.echo(f"vhosts: {', '.join(summary.vhosts) or 'none'}")
    click.echo(f"users: {', '.join(summary.users) or 'none'}")
    click.echo(f"exchanges: {summary.exchanges}, with {summary.delayed_messages} delayed messages")
    click.echo(f"queues: {len(summary.queues)}")
    for queue in summary.queues:
        count = f"{queue.messages} messages, {shown(queue.bytes)}"
        click.echo(f"  {queue.name} in vhost {queue.vhost} ({queue.type}): {count}")
    oldest = f", next a part of {summary.oldest_garbage}" if summary.oldest_garbage else ""
    click.echo(f"to be deleted: {summary.garbage or 'nothing'}{oldest}")
    for problem in summary.problems:
        click.echo(problem, err=True)


@store.command()
@folder_option
def verify(data_dir: str | None) -> None:
    """Check every page, definition and message of a store that no broker uses."""
    folder, began = folder_of(data_dir), time.monotonic()
    with showing_progress("Checking") as progress:
        verdict = verify_store(folder, progress.move_to)
    for problem in verdict.problems:
        click.echo(problem)
    if verdict.problems:
        raise StoreUnusable(f"'{folder}' has {len(verdict.problems)} problems; restore a backup, or run `store repair`")
    checked = f"{verdict.pages} pages, {verdict.queues} queues, {verdict.messages} messages checked in {lasted(began)}"
    click.echo(f"{folder} has no problems: {checked}")


@store.command()
@folder_option
def repair(data_dir: str | None) -> None:
    """Drop what is damaged in a store that no broker uses; a file in its folder keeps a copy."""
    folder, began = folder_of(data_dir), time.monotonic()
    with showing_progress("Repairing"):
        result = repair_store(folder)
    for change in result.changes:
        click.echo(change)
    if result.replaced is not None:
        click.echo(f"{result.replaced} is the damaged file")
    if result.copy is not None:
        click.echo(f"{result.copy} has copies of what was damaged or dropped")
    click.echo(f"{folder} {'was repaired' if result.changes else 'has nothing to repair'}; checked in {lasted(began)}")


@store.command()
@folder_option
def compact(data_dir: str | None) -> None:
    """Return unused space of a store to the disk; no broker may use it."""
    folder, began = folder_of(data_dir), time.monotonic()
    with showing_progress("Checking") as progress:
        before, after = copies.compact(folder, progress.step)
    click.echo(f"{folder}: {shown(before)} compacted to {shown(after)} in {lasted(began)}")


@store.command()
@folder_option
@click.option("--to", required=True, help="An empty or new folder.")
def backup(data_dir: str | None, to: str) -> None:
    """Copy a store, also while a broker uses it.

    The copy contains everything that was confirmed before the backup began. A broker can be started on it.
    """
    began = time.monotonic()
    with showing_progress("Checking") as progress:
        size = copies.back_up(folder_of(data_dir), Path(to), progress.step)
    click.echo(f"{to}: copied {shown(size)} in {lasted(began)}")


def shown(octets: int) -> str:
    """Return a size such as `1.5 MiB`."""
    size, unit = float(octets), 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{octets} B"
