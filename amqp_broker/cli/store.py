"""`amqp-broker store`: look at, check, compact and back up what a broker keeps on disk."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click

from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_SOFTWARE, EX_TEMPFAIL
from amqp_broker.loading import load
from amqp_broker.store import copies
from amqp_broker.store import info as info_of
from amqp_broker.store.environment import (
    ReadOnlyEnvironment,
    StoreError,
    StoreInaccessible,
    StoreInUse,
    StoreMissing,
    StoreUnusable,
)
from amqp_broker.store.verify import verify as verify_store

EXIT_CODES: Final[dict[type[StoreError], int]] = {
    StoreUnusable: EX_DATAERR,
    StoreMissing: EX_NOINPUT,
    StoreInaccessible: EX_CANTCREAT,
    StoreInUse: EX_TEMPFAIL,
}
# What takes longer shows how far it is.
PATIENCE_S: Final = 1.0
PAUSE_S: Final = 0.1
PORTION: Final = 256
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def exit_code_of(error: StoreError) -> int:
    """What the program ends with (sysexits.h)."""
    return EXIT_CODES.get(type(error), EX_SOFTWARE)


def folder_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option that names the store, as `serve` has it."""
    return click.option("--data-dir", default=None, help="Folder of the store, as of `serve`.")(command)


def folder_of(data_dir: str | None) -> Path:
    """The folder that a broker started with the same option and environment would use."""
    folder = load({"data_dir": data_dir, "ephemeral": False}, os.environ).config.store_path
    assert folder is not None
    return folder


@click.group()
def store() -> None:
    """Look at, check and copy what a broker keeps on disk."""


@store.command()
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Tell it as JSON.")
def info(data_dir: str | None, as_json: bool) -> None:
    """Tell what is in a store, whether a broker runs on it or not."""
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
    oldest = f", first that of {summary.oldest_garbage}" if summary.oldest_garbage else ""
    click.echo(f"to be deleted: {summary.garbage or 'nothing'}{oldest}")
    for problem in summary.problems:
        click.echo(problem, err=True)


@store.command()
@folder_option
def verify(data_dir: str | None) -> None:
    """Check every page, definition and message of a store that no broker uses."""
    folder = folder_of(data_dir)
    with closing(Progress("Checking")) as progress:
        verdict = verify_store(folder, progress.on_progress)
    for problem in verdict.problems:
        click.echo(problem)
    if verdict.problems:
        raise StoreUnusable(
            f"'{folder}' has {len(verdict.problems)} problems; put a backup in its place, or drain what it has"
        )
    click.echo(f"{folder} is whole: {verdict.pages} pages, {verdict.queues} queues, {verdict.messages} messages")


@store.command()
@folder_option
def compact(data_dir: str | None) -> None:
    """Give the disk back what a store does not need any more, while no broker uses it."""
    folder = folder_of(data_dir)
    with closing(Progress("Checking")) as progress:
        before, after = copies.compact(folder, progress.on_page)
    click.echo(f"{folder} has {shown(after)} now, and had {shown(before)}")


@store.command()
@folder_option
@click.option("--to", required=True, help="A folder that is empty or not there yet.")
def backup(data_dir: str | None, to: str) -> None:
    """Copy a store, whether a broker runs on it or not.

    What was confirmed before is in the copy, which a broker can be started on.
    """
    with closing(Progress("Checking")) as progress:
        size = copies.back_up(folder_of(data_dir), Path(to), progress.on_page)
    click.echo(f"{to} has a copy of {shown(size)}")


def shown(octets: int) -> str:
    """A size for people: `1.5 MiB`."""
    size, unit = float(octets), 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{octets} B"


class Progress:
    """How far something is: shown on stderr, if it takes its time."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = self._told = time.monotonic()
        self._pages = 0
        self._bar: Any = None

    def on_page(self, total: int) -> None:
        """One page more."""
        self._pages += 1
        self.on_progress(self._pages, total)

    def on_progress(self, done: int, total: int) -> None:
        """So many are done, of so many."""
        if done % PORTION:
            return
        now = time.monotonic()
        if now - self._started < PATIENCE_S or now - self._told < PAUSE_S:
            return
        self._told = now
        if self._bar is None or self._bar.length != total:
            self.close()
            self._bar = click.progressbar(length=total, label=self._label, file=sys.stderr)
        self._bar.update(done - self._bar.pos)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
