"""`amqp-broker conformance`: play RabbitMQ's scenarios at any broker, and report where it answers differently."""

from __future__ import annotations

import signal
import ssl
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, NoReturn
from urllib.parse import quote, urlsplit

import click

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.conformance import scenarios  # noqa: F401 (registers them)
from amqp_broker.conformance.api_client import PORTS, HttpApi, Unanswered
from amqp_broker.conformance.duel.http_steps import EVERYTHING
from amqp_broker.conformance.duel.program_scenarios import ProgramScenarios, questions_of_programs
from amqp_broker.conformance.html_report import html_report
from amqp_broker.conformance.judging import Judge, Judged
from amqp_broker.conformance.junit_report import junit_report
from amqp_broker.conformance.lab import HTTP_SCENARIOS, SCENARIOS, Scenario
from amqp_broker.conformance.probing import Greeting, NoBroker, greeting_of, lacking
from amqp_broker.conformance.records import Transcripts, exact_version, load
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
@click.option("--duel", is_flag=True, help="Play recorded random programs, too.")
@click.option("--management", metavar="URL", help="Ask this HTTP API, too, as an administrator.")
@click.option("--html", "html", type=FILE, metavar="FILE", help="Write a report with all frames side by side.")
@click.option("--junit", "junit", type=FILE, metavar="FILE", help="Write a report for CI servers.")
def conformance(
    uri: str,
    version: str | None,
    only: str,
    duel: bool,
    management: str | None,
    html: Path | None,
    junit: Path | None,
) -> None:
    """Compare a broker with RabbitMQ, frame by frame.

    Plays about a thousand scenarios at any broker that speaks AMQP 0-9-1 (amqp://user:password@host:port/vhost) and
    compares its answers with those that RabbitMQ 3.10, 4.0 and 4.3 have given. It needs no RabbitMQ, and a user with
    all permissions of the vhost. It declares objects whose names begin with "conformance-", and deletes them at the
    end. The exit code is 1 if there are differences.

    --duel adds random programs of some dozens of steps, with RabbitMQ's answers. With --management, scenarios and
    programs ask the HTTP API, too, and all is done in a vhost that is added for the run and deleted at the end.
    """
    where = _parsed(uri)
    registered = [*SCENARIOS.values(), *(HTTP_SCENARIOS.values() if management else ())]
    questions = [*(one.question for one in registered), *(questions_of_programs() if duel else ())]
    if not any(only in question for question in questions):
        raise CommandError(f"no scenario contains '{only}'.", EX_USAGE)
    if management is not None and urlsplit(management).scheme not in PORTS:
        raise CommandError(f"'{management}' is no URL of an HTTP API, such as http://localhost:15672.", EX_USAGE)
    oracles = _accepted(version) if version else ()
    for path in (html, junit):
        if path is not None:
            _check_writable(path)
    signal.signal(signal.SIGTERM, _end)
    terms = Terms(where.user, where.password, where.vhost or "/", _tls(where), new_prefix(), PROBE_SILENCE_S)
    with _own_vhost(where, terms, management) as terms:
        results = _play(where, terms, version, oracles, Choice(only, duel))
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
    return _verified(uri), uri.query.get("server_name_indication", uri.host.strip("[]"))


def _verified(uri: Uri) -> ssl.SSLContext:
    """Return the context with the certificates that the URI names."""
    try:
        return tls_context(uri)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot use TLS with {uri}: {error}.", EX_USAGE) from None


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


class Choice(NamedTuple):
    """The scenarios to play: their chapter and name contain a text. Recorded programs may be among them."""

    text: str
    with_programs: bool

    def scenarios(self, recorded: Mapping[str, Transcripts], has_api: bool) -> list[Scenario]:
        programs = ProgramScenarios(recorded, has_api).scenarios if self.with_programs else []
        over_http = HTTP_SCENARIOS.values() if has_api else ()
        return [one for one in (*SCENARIOS.values(), *over_http, *programs) if self.text in one.question]


@contextmanager
def _own_vhost(uri: Uri, terms: Terms, url: str | None) -> Iterator[Terms]:
    """Add a vhost for the run, if the HTTP API is to be asked; delete it afterwards."""
    if url is None:
        yield terms
        return
    api = HttpApi(url, terms.user, terms.password, _verified(uri) if url.startswith("https:") else None)
    vhost = terms.prefix.rstrip("-")
    requests = [(f"vhosts/{vhost}", {}), (f"permissions/{vhost}/{quote(terms.user, safe='')}", EVERYTHING)]
    try:
        for path, body in requests:
            if (status := api.ask("PUT", path, body).status) >= 300:
                reason = f"PUT /api/{path} is answered with {status}"
                raise CommandError(f"{url}: a vhost cannot be added for the run: {reason}.", EX_NOPERM)
        yield replace(terms, vhost=vhost, api=api)
    except Unanswered as error:
        raise CommandError(f"{error}.", EX_UNAVAILABLE) from None
    finally:
        with suppress(Unanswered):
            api.ask("DELETE", f"vhosts/{vhost}")


def _play(uri: Uri, terms: Terms, version: str | None, oracles: tuple[str, ...], choice: Choice) -> Results:
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
    recorded = {oracle: load(oracle) for oracle in oracles}
    chosen = choice.scenarios(recorded, has_api=terms.api is not None)
    progress = Progress(len(chosen))

    def add(judged: Judged) -> None:
        results.judged.append(judged)
        progress.add(judged)

    judge = Judge(recorded, (greeting.channel_max, greeting.frame_max))
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
