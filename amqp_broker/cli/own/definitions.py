"""`amqp-broker definitions`: export, import and check what is declared in a broker."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from amqp_broker.amqp.errors import DoesNotExist
from amqp_broker.broker.broker import Broker
from amqp_broker.cli.own.broker_client import Address, address_of_broker, answer_of, of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.store import folder_of
from amqp_broker.cli.shared.progress_bar import lasted, showing_progress
from amqp_broker.cli.shared.standard_streams import read_input
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_NOPERM, EX_UNAVAILABLE
from amqp_broker.management.documents.checking import Check
from amqp_broker.management.documents.definition import DefinitionsError, with_remedy
from amqp_broker.management.documents.exporting import export as export_from
from amqp_broker.management.documents.importing import SECTIONS, VHOST_SECTIONS, Import
from amqp_broker.management.documents.parsing import parse
from amqp_broker.server.startup_definitions import DefinitionsUnreadable, Source, sources
from amqp_broker.settings.sources.precedence import load
from amqp_broker.store.contents import Contents
from amqp_broker.store.environment import DATA_FILE, ReadOnlyEnvironment
from amqp_broker.store.store import Store

STANDARD: Final = "-"


def exit_code_of_definitions(error: DefinitionsError) -> int:
    """Return the exit code for an error (sysexits.h)."""
    return EX_NOINPUT if isinstance(error, DefinitionsUnreadable) else EX_DATAERR


def of_a_broker_or_store(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select a running broker or a store."""
    for option in (
        click.option("--vhost", default=None, help="Only this vhost."),
        click.option("--data-dir", default=None, help="Folder of a store that no broker uses, as for `serve`."),
    ):
        command = option(command)
    return of_a_running_broker(command)


def refuse_two_places(data_dir: str | None, node: str, url: str) -> None:
    """Raise UsageError if both a store and a broker are given."""
    if data_dir is not None and (node or url):
        raise click.UsageError(f"give either --data-dir or {'--node' if node else '--url'}")


@click.group()
def definitions() -> None:
    """Export, import and check users, vhosts, queues and other objects in RabbitMQ's JSON."""


@definitions.command()
@of_a_broker_or_store
@click.argument("file", default=STANDARD)
def export(file: str, vhost: str | None, data_dir: str | None, node: str, url: str) -> None:
    """Write definitions to FILE or to standard output."""
    refuse_two_places(data_dir, node, url)
    if data_dir is None:
        document = call_api(address_of_broker(node, url), vhost)
    else:
        environment = ReadOnlyEnvironment(folder_of(data_dir), is_alone=False, is_quick=True)
        with closing(environment), _known(vhost):
            document = export_from(Contents(environment).broker, vhost)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if file == STANDARD:
        click.echo(text)
        return
    try:
        Path(file).write_text(text + "\n", "utf-8")
    except OSError as error:
        raise CommandError(f"cannot write '{file}': {error.strerror}.", EX_CANTCREAT) from None


@definitions.command("import")
@of_a_broker_or_store
@click.argument("file")
def import_(file: str, vhost: str | None, data_dir: str | None, node: str, url: str) -> None:
    """Add the definitions of FILE ("-": standard input) to those of the broker."""
    refuse_two_places(data_dir, node, url)
    found, began = read(file), time.monotonic()
    if data_dir is None:
        address = address_of_broker(node, url)
        for source in found:
            with _naming(source), showing_progress("Importing"):
                call_api(address, vhost, source.document)
        conclude(found, vhost, began)
        return
    folder, settings = folder_of(data_dir), load({}, os.environ).settings
    if not (folder / DATA_FILE).exists():
        # Invalid definitions must not create a store.
        rehearsal = Broker(settings, os.urandom)
        for source in found:
            with _naming(source), _known(vhost):
                for _ in Import(rehearsal, source.document, vhost).run():
                    pass
    store = Store(folder)
    broker = Broker(settings, os.urandom, store.journal)
    store.recover(broker)
    try:
        for source in found:
            declare(broker, source, vhost)
    except BaseException:
        store.abandon()
        raise
    store.close()
    conclude(found, vhost, began)


@definitions.command()
@click.option("--vhost", default=None, help="Check FILE as definitions of a single vhost.")
@click.argument("file")
def check(file: str, vhost: str | None) -> None:
    """Check whether a new broker could import FILE, and show all its faults."""
    broker = Broker(load({}, os.environ).settings, os.urandom)
    if vhost is not None:
        broker.add_vhost(vhost)
    faults, found = [], read(file)
    for source in found:
        with _naming(source):
            work = Check(broker, source.document, vhost)
        with showing_progress("Checking") as progress:
            for done in work.run():
                progress.move_to(done, work.steps)
        faults += [f"{source.name}: {with_remedy(fault)}" for fault in work.faults]
        if not work.faults:
            notes_of(source, work)
    if faults:
        raise CommandError("\n".join(faults), EX_DATAERR)
    for source in found:
        click.echo(f"{source.name} can be imported: {contents_of(source, vhost)}")


def contents_of(source: Source, vhost: str | None) -> str:
    """Return the number of objects of each kind, such as `2 queues, 1 policy`."""
    sections = SECTIONS if vhost is None else VHOST_SECTIONS
    counts = {section: len(source.document.get(section) or ()) for section in sections}
    parts = [f"{count} {_nouns(section, count)}" for section, count in counts.items() if count]
    return ", ".join(parts) or "nothing"


def _nouns(section: str, count: int) -> str:
    nouns = section.replace("_", " ")
    if count != 1:
        return nouns
    return f"{nouns.removesuffix('ies')}y" if nouns.endswith("ies") else nouns.removesuffix("s")


def conclude(imported: list[Source], vhost: str | None, began: float) -> None:
    """Print what was in the documents, and the time of their import."""
    for source in imported:
        click.echo(f"{source.name} is imported: {contents_of(source, vhost)}")
    click.echo(f"The import took {lasted(began)}.")


def read(file: str) -> list[Source]:
    """Return the documents of a file, a folder or standard input. Raises DefinitionsError."""
    if file != STANDARD:
        # Without a name, as from a variable that is not set, all files of the current folder would be read.
        if not file:
            raise DefinitionsUnreadable("the name of the file is empty")
        if not (found := sources(file)):
            raise DefinitionsUnreadable(f"{file}: there is no file *.json in this folder")
        return found
    source = Source("standard input", parse(read_input()))
    return [source]


def declare(broker: Broker, source: Source, vhost: str | None) -> None:
    """Import a document, showing the progress if it takes long, and print what is left out."""
    with _naming(source), _known(vhost):
        work = Import(broker, source.document, vhost)
        with showing_progress("Importing") as progress:
            for done in work.run():
                progress.move_to(done, work.steps)
    notes_of(source, work)


def notes_of(source: Source, work: Import) -> None:
    """Print what is left out."""
    for note in work.notes:
        click.echo(f"{source.name}: {note}", err=True)


def call_api(address: Address, vhost: str | None, document: Any = None) -> Any:
    """Get definitions from the HTTP API of a broker, or let it import a document.

    Raises DefinitionsError if the broker refuses the document, and CommandError if it cannot be reached.
    """
    if vhost == "":
        # The path without a name is that of all vhosts.
        raise DefinitionsError("the name of the vhost is empty")
    target = "/api/definitions" if vhost is None else f"/api/definitions/{quote(vhost, safe='')}"
    answer = answer_of(address, "GET" if document is None else "POST", target, document)
    if answer.is_ok:
        if document is None and not isinstance(answer.value, dict):
            raise CommandError(f"the server at {address.name} is neither amqp-broker nor RabbitMQ", EX_UNAVAILABLE)
        return answer.value
    if answer.status in (401, 403):
        raise CommandError(f"{address.name} refuses user '{address.user}': {answer.reason}", EX_NOPERM)
    refusal = f"{address.name} answers {answer.status}: {answer.reason}"
    if answer.status < 500:
        raise DefinitionsError(refusal)
    raise CommandError(refusal, EX_UNAVAILABLE)


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    """Add the name of the source to its errors."""
    try:
        yield
    except DefinitionsError as error:
        raise DefinitionsError(f"{source.name}: {with_remedy(str(error))}") from None


@contextmanager
def _known(vhost: str | None) -> Iterator[None]:
    """Turn the error that this vhost does not exist into DefinitionsError."""
    try:
        yield
    except DoesNotExist as error:
        assert vhost is not None
        raise DefinitionsError(str(error)) from None
