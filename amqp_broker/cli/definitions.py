"""`amqp-broker definitions`: write down what a broker has declared, have another declare it, and check a file."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import click

from amqp_broker.broker.broker import Broker
from amqp_broker.cli.failing import CommandError
from amqp_broker.cli.standard_files import read_input
from amqp_broker.cli.store import Progress, folder_of
from amqp_broker.errors import DoesNotExist
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_NOPERM, EX_UNAVAILABLE
from amqp_broker.loading import load
from amqp_broker.management.definitions import export as export_from
from amqp_broker.management.definitions import parse
from amqp_broker.management.importing import SECTIONS, DefinitionsError, Import
from amqp_broker.server.definitions import DefinitionsUnreadable, Source, sources
from amqp_broker.store.contents import Contents
from amqp_broker.store.environment import DATA_FILE, ReadOnlyEnvironment
from amqp_broker.store.store import Store

DEFAULT_URL: Final = "http://guest:guest@localhost:15672"
# Definitions of some hundred thousand queues take a broker that long.
TIMEOUT_S: Final = 600
STANDARD: Final = "-"


def exit_code_of_definitions(error: DefinitionsError) -> int:
    """What the program ends with (sysexits.h)."""
    return EX_NOINPUT if isinstance(error, DefinitionsUnreadable) else EX_DATAERR


def of_a_broker(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which broker."""
    for option in (
        click.option("--vhost", default=None, help="Only this vhost."),
        click.option("--data-dir", default=None, help="Folder of a store that no broker has open, as of `serve`."),
        click.option("--url", default=DEFAULT_URL, show_default=True, help="HTTP API of a broker that runs."),
    ):
        command = option(command)
    return command


@click.group()
def definitions() -> None:
    """Export, import and check users, vhosts, queues and all else that is declared, as RabbitMQ's JSON."""


@definitions.command()
@of_a_broker
@click.argument("file", default=STANDARD)
def export(file: str, vhost: str | None, data_dir: str | None, url: str) -> None:
    """Write definitions to FILE, or to the standard output."""
    if data_dir is None:
        document = call_api(url, vhost)
    else:
        environment = ReadOnlyEnvironment(folder_of(data_dir), is_alone=False, is_quick=True)
        with closing(environment), _known(vhost):
            document = export_from(Contents(environment).broker, vhost)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if file == STANDARD:
        click.echo(text)
        return
    try:
        Path(file).write_text(text + "\n")
    except OSError as error:
        raise CommandError(f"cannot write '{file}': {error.strerror}.", EX_CANTCREAT) from None


@definitions.command("import")
@of_a_broker
@click.argument("file")
def import_(file: str, vhost: str | None, data_dir: str | None, url: str) -> None:
    """Declare what FILE says ("-": the standard input) beside what there is."""
    found = read(file)
    if data_dir is None:
        for source in found:
            with _naming(source):
                call_api(url, vhost, source.document)
        return
    folder, config = folder_of(data_dir), load({}, os.environ).config
    if not (folder / DATA_FILE).exists():
        # What is wrong leaves no store behind, where there was none.
        rehearsal = Broker(config, os.urandom)
        for source in found:
            with _naming(source), _known(vhost):
                for _ in Import(rehearsal, source.document, vhost).run():
                    pass
    store = Store(folder)
    broker = Broker(config, os.urandom, store.journal)
    store.recover(broker)
    try:
        for source in found:
            declare(broker, source, vhost)
    except BaseException:
        store.abandon()
        raise
    store.close()


@definitions.command()
@click.option("--vhost", default=None, help="Check FILE as definitions of one vhost, whatever its name.")
@click.argument("file")
def check(file: str, vhost: str | None) -> None:
    """Say whether a new broker could load FILE, or what is wrong with it."""
    broker = Broker(load({}, os.environ).config, os.urandom)
    if vhost is not None:
        broker.add_vhost(vhost)
    for source in read(file):
        declare(broker, source, vhost)
        counts = {section: len(source.document.get(section) or ()) for section in SECTIONS}
        told = ", ".join(f"{count} {section.replace('_', ' ')}" for section, count in counts.items() if count)
        click.echo(f"{source.name} can be imported: {told or 'nothing'}")


def read(file: str) -> list[Source]:
    """The documents of a file, a folder, or the standard input. Raises DefinitionsError."""
    if file != STANDARD:
        return sources(file)
    source = Source("standard input", parse(read_input()))
    return [source]


def declare(broker: Broker, source: Source, vhost: str | None) -> None:
    """Import a document, show how far that is if it takes its time, and tell what is passed over."""
    with _naming(source), _known(vhost):
        work = Import(broker, source.document, vhost)
        with closing(Progress("Importing")) as progress:
            for done in work.run():
                progress.on_progress(done, work.steps)
    for note in work.notes:
        click.echo(f"{source.name}: {note}", err=True)


def call_api(url: str, vhost: str | None, document: Any = None) -> Any:
    """Get definitions from the HTTP API of a broker, or (with a document) have it import them.

    Raises DefinitionsError for what it refuses, and CommandError if it cannot be asked.
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise CommandError(f"'{url}' is no address of an HTTP API, as {DEFAULT_URL} is.", EX_UNAVAILABLE)
    where = parts.netloc.rpartition("@")[2]
    credentials = f"{unquote(parts.username or 'guest')}:{unquote(parts.password or 'guest')}"
    path = "/api/definitions" if vhost is None else f"/api/definitions/{quote(vhost, safe='')}"
    request = Request(
        f"{parts.scheme}://{where}{parts.path.rstrip('/')}{path}",
        data=None if document is None else json.dumps(document).encode(),
        headers={
            "Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            return parse(answer.read())
    except HTTPError as error:
        reason = _reason(error.read())
        if error.code in (401, 403):
            raise CommandError(f"{where} refuses user '{parts.username or 'guest'}': {reason}", EX_NOPERM) from None
        if error.code < 500:
            raise DefinitionsError(f"{where} answers {error.code}: {reason}") from None
        raise CommandError(f"{where} answers {error.code}: {reason}", EX_UNAVAILABLE) from None
    except (URLError, OSError) as error:
        problem = getattr(error, "reason", error)
        raise CommandError(
            f"no HTTP API answers at {where}: {getattr(problem, 'strerror', None) or problem}", EX_UNAVAILABLE
        ) from None


def _reason(octets: bytes) -> str:
    """Why the API refuses, as it says."""
    try:
        reason = json.loads(octets)["reason"]
    except (ValueError, KeyError, TypeError):
        return "it does not say why"
    return reason if isinstance(reason, str) else json.dumps(reason)


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    try:
        yield
    except DefinitionsError as error:
        raise DefinitionsError(f"{source.name}: {error}") from None


@contextmanager
def _known(vhost: str | None) -> Iterator[None]:
    try:
        yield
    except DoesNotExist as error:
        assert vhost is not None
        raise DefinitionsError(str(error)) from None
