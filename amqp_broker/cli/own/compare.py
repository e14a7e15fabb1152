"""`amqp-broker compare`: a proxy before a RabbitMQ that reports where this broker would answer differently."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.serve import explain, run_loop
from amqp_broker.compare.difference_report import DifferenceReport
from amqp_broker.compare.proxy import Proxy
from amqp_broker.compare.upstream import NoUpstream, Upstream, ask
from amqp_broker.exit_codes import EX_CANTCREAT, EX_NOPERM, EX_UNAVAILABLE, EX_USAGE
from amqp_broker.server.server import Server
from amqp_broker.settings.profiles import PROFILES
from amqp_broker.settings.settings import Settings
from amqp_broker.shovel.shovel_definition import Uri, parse_uri

DIFFERS: Final = 1
PORT: Final = 5673
PORT_MAX: Final = 65_535


@click.command()
@click.option(
    "--upstream", required=True, metavar="URI", help="RabbitMQ to compare with: amqp://user:password@host:port."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address for clients.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=PORT,
    show_default=True,
    help="Port for clients; 0 takes a free one.",
)
@click.option(
    "--compat",
    type=click.Choice(list(PROFILES)),
    help="Version that this broker imitates.  [default: the version of the upstream]",
)
@click.option("--definitions", default="", metavar="FILE", help="Definitions to import into this broker first.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write the report to this file.")
def compare(upstream: str, host: str, port: int, compat: str | None, definitions: str, json_file: Path | None) -> None:
    """Compare this broker with a RabbitMQ while clients use it.

    Clients connect to this proxy instead of the RabbitMQ and get the answers of the RabbitMQ. An empty broker in memory
    gets the same input, and each different answer is reported. Ctrl-C ends the comparison with a summary; the exit code
    is 1 if there were differences.
    """
    try:
        uri = parse_uri(upstream)
    except InvalidParameter as error:
        raise CommandError(f"{error}.", EX_USAGE) from None
    if uri.is_local:
        raise CommandError("the URI of the upstream has no host.", EX_USAGE)
    if json_file is not None:
        _write(json_file, {})
    # The log of this broker is not shown.
    logging.getLogger("amqp_broker").addHandler(logging.NullHandler())
    report = DifferenceReport(click.echo)
    about: dict[str, Any] = {"upstream": str(uri)}
    run_loop(_compare(uri, (host, port), compat, definitions, report, about))
    click.echo(report.summary)
    if json_file is not None:
        _write(json_file, {**about, **report.as_json()})
    if report.differences_count:
        sys.exit(DIFFERS)


async def _compare(
    uri: Uri,
    place: tuple[str, int],
    compat: str | None,
    definitions: str,
    report: DifferenceReport,
    about: dict[str, Any],
) -> None:
    try:
        found = await ask(uri)
    except NoUpstream as error:
        raise CommandError(str(error), EX_NOPERM if error.is_refusal else EX_UNAVAILABLE) from None
    profile = compat or found.profile
    report.version = found.version
    about.update(product=found.product, version=found.version, profile=profile)
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = Server(settings(found, profile, definitions))
    await server.start()
    try:
        proxy = Proxy(uri, server, report)
        try:
            await proxy.start(*place)
        except OSError as error:
            raise explain(*place, error) from None
        click.echo(f"{found.product} {found.version} at {uri} is compared with amqp-broker as RabbitMQ {profile}")
        click.echo(f"clients connect to {place[0]}:{proxy.port}; Ctrl-C ends the comparison")
        await stopped.wait()
        await proxy.stop()
    finally:
        await server.stop()


def settings(upstream: Upstream, profile: str, definitions: str) -> Settings:
    """Return settings like the upstream's where clients see them, and without limits elsewhere."""
    settings = Settings(
        host="127.0.0.1",
        port=0,
        ephemeral=True,
        control=False,
        management=False,
        prometheus=False,
        vm_memory_high_watermark="1.0",
        compat=profile,
        definitions=definitions,
        channel_max=upstream.channel_max,
        heartbeat_s=upstream.heartbeat_s,
    )
    if upstream.frame_max:
        settings = replace(settings, frame_max=upstream.frame_max)
    settings.check()
    return settings


def _write(path: Path, found: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(found, indent=2, default=str) + "\n", "utf-8")
    except OSError as error:
        raise CommandError(f"cannot write '{path}': {error.strerror}.", EX_CANTCREAT) from None
