"""`amqp-broker conformance`: play RabbitMQ's scenarios at any broker, and report where it answers differently."""

from __future__ import annotations

import signal
import ssl
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.conformance import scenarios  # noqa: F401 (registers them)
from amqp_broker.conformance.html_report import html_report
from amqp_broker.conformance.judging import Judge, Judged
from amqp_broker.conformance.junit_report import junit_report
from amqp_broker.conformance.lab import SCENARIOS, Scenario
from amqp_broker.conformance.probing import Greeting, NoBroker, greeting_of, lacking
from amqp_broker.conformance.records import exact_version, load
from amqp_broker.conformance.results import Results
from amqp_broker.conformance.suite_run import BrokerAddress, SuiteRun, new_prefix
from amqp_broker.conformance.terms import Terms
from amqp_broker.conformance.text_report import Progress, text_report
from amqp_broker.conformance.versions import ASKED_ABOUT_DURABLE, UnknownVersion, accepted, guessed
from amqp_broker.exit_codes import EX_CANTCREAT, EX_NOPERM, EX_UNAVAILABLE, EX_USAGE
from amqp_broker.server.link_tls import tls_context
from amqp_broker.shovel.shovel_definition import Uri, parse_uri

DIFFERS: Final = 1
# The first look does not wait longer for an answer.
PROBE_SILENCE_S: Final = 10.0
FILE: Final = click.Path(path_type=Path)


@click.command()
@click.argument("uri")
@click.option(
    "--as",
    "version",
    metavar="VERSION",
    help="RabbitMQ to compare with, for example 4.3.  [default: the version that the broker names, or 4.3]",
)
@click.option("--only", default="", metavar="TEXT", help="Play only scenarios whose chapter/name contains this.")
@click.option("--html", "html", type=FILE, metavar="FILE", help="Write a report with all frames side by side.")
@click.option("--junit", "junit", type=FILE, metavar="FILE", help="Write a report for CI servers.")
def conformance(uri: str, version: str | None, only: str, html: Path | None, junit: Path | None) -> None:
    """Compare a broker with RabbitMQ, frame by frame.

    Plays about a thousand scenarios at any broker that speaks AMQP 0-9-1 (amqp://user:password@host:port/vhost) and
    compares its answers with those that RabbitMQ 3.10, 4.0 and 4.3 have given. It needs no RabbitMQ, and a user with
    all permissions of the vhost. It declares objects whose names begin with "conformance-", and deletes them at the
    end. The exit code is 1 if there are differences.
    """
    where = _parsed(uri)
    chosen = [one for one in SCENARIOS.values() if only in one.question]
    if not chosen:
        raise CommandError(f"no scenario contains '{only}'.", EX_USAGE)
    oracles = _accepted(version) if version else ()
    for path in (html, junit):
        if path is not None:
            _check_writable(path)
    signal.signal(signal.SIGTERM, _end)
    terms = Terms(where.user, where.password, where.vhost or "/", _tls(where), new_prefix(), PROBE_SILENCE_S)
    results = _play(where, terms, version, oracles, chosen)
    for line in text_report(results):
        click.echo(line)
    if html is not None:
        _write(html, html_report(results).encode())
    if junit is not None:
        _write(junit, junit_report(results))
    if results.has_differences:
        sys.exit(DIFFERS)


def _parsed(text: str) -> Uri:
    try:
        uri = parse_uri(text)
    except InvalidParameter as error:
        raise CommandError(f"{error}: it should be like amqp://user:password@host:port/vhost.", EX_USAGE) from None
    if uri.is_local:
        raise CommandError("the URI has no host.", EX_USAGE)
    return uri


def _accepted(version: str) -> tuple[str, ...]:
    try:
        return accepted(version)
    except UnknownVersion as error:
        raise CommandError(f"{error}.", EX_USAGE) from None


def _tls(uri: Uri) -> tuple[ssl.SSLContext, str] | None:
    if uri.scheme != "amqps":
        return None
    try:
        context = tls_context(uri)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot use TLS with {uri}: {error}.", EX_USAGE) from None
    return context, uri.query.get("server_name_indication", uri.host.strip("[]"))


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _play(uri: Uri, terms: Terms, version: str | None, oracles: tuple[str, ...], chosen: Sequence[Scenario]) -> Results:
    """Look at the broker, play the scenarios, and return the verdicts."""
    began = time.monotonic()
    broker = BrokerAddress(uri.host.strip("[]"), uri.port)
    try:
        greeting = greeting_of(broker, terms)
        oracles = oracles or accepted(guessed(greeting.product, greeting.version))
        broker = replace(broker, declares_durable=set(oracles) <= ASKED_ABOUT_DURABLE)
        terms = replace(terms, lacks=lacking(broker, terms, greeting, oracles[-1]))
    except NoBroker as error:
        raise CommandError(
            f"{uri}: {str(error).rstrip('.')}.", EX_NOPERM if error.is_refusal else EX_UNAVAILABLE
        ) from None
    results = Results(f"{greeting.product} {greeting.version} at {uri}".strip(), _reference(oracles, version, greeting))
    click.echo(f"{results.broker} is compared with {results.compared_with}")
    progress = Progress(len(chosen))

    def add(judged: Judged) -> None:
        results.judged.append(judged)
        progress.add(judged)

    judge = Judge({oracle: load(oracle) for oracle in oracles}, (greeting.channel_max, greeting.frame_max))
    try:
        SuiteRun(broker, terms, judge).play_all(chosen, add)
    finally:
        progress.clear()
    results.duration_s = time.monotonic() - began
    return results


def _reference(oracles: Sequence[str], version: str | None, greeting: Greeting) -> str:
    """Return the versions of RabbitMQ whose answers count, and the reason."""
    names = " and ".join(exact_version(oracle) for oracle in oracles)
    if version:
        return f"RabbitMQ {names} (--as {version})"
    if guessed(greeting.product, greeting.version) == greeting.version:
        return f"RabbitMQ {names} (it is RabbitMQ {greeting.version}; --as chooses another version)"
    return f"RabbitMQ {names} (the newest with recorded answers; --as chooses another version)"


def _check_writable(path: Path) -> None:
    """Find out before the run that takes a minute."""
    try:
        path.open("ab").close()
    except OSError as error:
        raise _unwritable(path, error) from None


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> CommandError:
    return CommandError(f"cannot write '{path}': {error.strerror}.", EX_CANTCREAT)
