"""`amqp-broker snapshot`: save the state of a vhost under a name, and restore it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from amqp_broker.cli.own.broker_client import ask, of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_NOPERM, EX_USAGE
from amqp_broker.management.documents.merged_snapshots import merged
from amqp_broker.management.documents.snapshots import Snapshot, SnapshotError, read_snapshot

FOLDER: Final = "snapshots"
NAME: Final = re.compile(r"[\w.-]{1,200}")


@click.group()
def snapshot() -> None:
    """Save the state of a vhost under a name, and restore it: definitions, and messages in their order."""


def in_a_folder(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option that selects the folder of the snapshots."""
    help_ = "Folder of the snapshots; each is a file NAME.json."
    return click.option("--folder", type=Path, default=FOLDER, show_default=True, help=help_)(command)


def of_a_vhost(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the name of a snapshot, and the options that select the vhost and the folder."""
    command = click.option("--vhost", default="/", show_default=True, help="The vhost.")(in_a_folder(command))
    return of_a_running_broker(click.argument("name")(command))


@snapshot.command()
@of_a_vhost
@click.option("--force", is_flag=True, help="Replace a snapshot of this name.")
def save(node: str, url: str, name: str, vhost: str, folder: Path, force: bool) -> None:
    """Save the state of a vhost as NAME."""
    path = _new_path(folder, name, force)
    try:
        saved = read_snapshot(ask(node, url, "GET", _target(vhost)))
    except SnapshotError as error:
        raise CommandError(f"the answer of the broker: {error}", EX_DATAERR) from None
    _write(path, saved)
    click.echo(_line(name, saved))


@snapshot.command("load")
@of_a_vhost
@click.option("--clear", is_flag=True, help="Empty the vhost first; otherwise it must be empty.")
def load_(node: str, url: str, name: str, vhost: str, folder: Path, clear: bool) -> None:
    """Restore the snapshot NAME to a vhost."""
    saved = _read(folder, name)
    query = {"clear": "true"} if clear else {}
    try:
        ask(node, url, "PUT", _target(vhost), body=msgspec.to_builtins(saved), query=query)
    except CommandError as error:
        # The option has another form over HTTP.
        raise CommandError(str(error).replace("clear=true", "--clear"), error.exit_code) from None
    click.echo(_line(name, saved))


@snapshot.command("list")
@in_a_folder
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def list_(folder: Path, is_json: bool) -> None:
    """List the snapshots with their vhosts, and the numbers of their queues and messages."""
    stems = [path.stem for path in folder.glob("*.json")] if folder.is_dir() else []
    names = sorted(stem for stem in stems if _is_name(stem))
    found = {name: _read(folder, name) for name in names}
    if is_json:
        click.echo(json.dumps([{"name": name, **_facts(saved)} for name, saved in found.items()], indent=2))
        return
    for name, saved in found.items():
        click.echo(_line(name, saved))


@snapshot.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--into", required=True, help="Name of the new snapshot.")
@in_a_folder
@click.option("--force", is_flag=True, help="Replace a snapshot of this name.")
def merge(names: tuple[str, ...], into: str, folder: Path, force: bool) -> None:
    """Make one snapshot of those with these NAMES: all objects, and the messages one after another."""
    path = _new_path(folder, into, force)
    snapshots = [_read(folder, name) for name in names]
    try:
        saved = merged(snapshots)
    except SnapshotError as error:
        raise CommandError(f"{', '.join(names)} cannot be merged: {error}", EX_DATAERR) from None
    _write(path, saved)
    click.echo(_line(into, saved))


def _target(vhost: str) -> str:
    return f"/_broker/snapshot/{quote(vhost, safe='')}"


def _new_path(folder: Path, name: str, force: bool) -> Path:
    """Return the file of a new snapshot. Raise CommandError for one that exists, unless it is to be replaced."""
    path = _path(folder, name)
    if path.exists() and not force:
        raise CommandError(f"there is a snapshot '{name}' in {folder} already; --force replaces it", EX_CANTCREAT)
    return path


def _path(folder: Path, name: str) -> Path:
    """Return the file of a snapshot. Raise CommandError for a name that cannot be that of a file."""
    if not _is_name(name):
        raise CommandError(f"'{name}' is no name of a snapshot: letters, digits, '.', '_' and '-' are", EX_USAGE)
    return folder / f"{name}.json"


def _is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None and not text.startswith(".")


def _read(folder: Path, name: str) -> Snapshot:
    path = _path(folder, name)
    try:
        return read_snapshot(json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise CommandError(f"there is no snapshot '{name}' in {folder}", EX_NOINPUT) from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", EX_NOPERM) from None
    except SnapshotError as error:
        raise CommandError(f"{path}: {error}", EX_DATAERR) from None
    except (ValueError, RecursionError):
        raise CommandError(f"{path}: this is not JSON", EX_DATAERR) from None


def _write(path: Path, saved: Snapshot) -> None:
    """Write a snapshot whole or not at all. Raise CommandError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(f"{json.dumps(msgspec.to_builtins(saved), indent=1)}\n", "utf-8")
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise CommandError(f"{path} cannot be written: {error.strerror}", EX_CANTCREAT) from None


def _facts(saved: Snapshot) -> dict[str, Any]:
    messages = sum(len(queue.returned) + len(queue.messages) for queue in saved.queues)
    messages += sum(len(chunk.messages) for stream in saved.streams for chunk in stream.chunks)
    messages += sum(len(exchange.delayed) for exchange in saved.exchanges)
    queues = saved.definitions.get("queues")
    return {
        "vhost": saved.definitions.get("original_vhost_name", ""),
        "queues": len(queues) if isinstance(queues, list) else 0,
        "messages": messages,
    }


def _line(name: str, saved: Snapshot) -> str:
    facts = _facts(saved)
    return f"{name}: vhost '{facts['vhost']}', queues={facts['queues']} messages={facts['messages']}"
