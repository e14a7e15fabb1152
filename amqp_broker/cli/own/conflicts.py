"""All that keeps a second broker from starting, in one sentence, with the command that starts it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.run import SECOND
from amqp_broker.cli.shared import node_finder
from amqp_broker.cli.shared.own_program import same_command
from amqp_broker.server.listening import CannotListen, listen
from amqp_broker.server.management import MANAGEMENT_PORT, PROMETHEUS_PORT
from amqp_broker.server.server import TLS_PORT

if TYPE_CHECKING:
    from amqp_broker.settings.settings import Settings

PORT_MAX: Final = 65535


class Wanted(NamedTuple):
    """A port that must be free, the option that changes it, and whether the user has chosen it."""

    option: str
    host: str
    port: int
    is_given: bool = True


def explain(settings: Settings, reason: CommandError, port: int | None = None) -> CommandError:
    """Return the error of a start that met a port in use, or a store in use for None.

    It is `reason` alone if no option of the command avoids that port.
    """
    taken = [one for one in _wanted(settings) if is_taken(one.host, one.port)]
    if port is not None and port not in [one.port for one in taken]:
        return reason
    amqp = [one for one in taken if one.option == "--port"]
    sentences = [_holder(one) for one in amqp]
    if others := [str(one.port) for one in taken if one not in amqp]:
        ports = f"port {others[0]} is" if len(others) == 1 else f"ports {' and '.join(others)} are"
        sentences.append(f"{ports} in use{', too' if amqp else ' by another program'}")
    options = _options(settings, taken)
    if port is None:
        # The rest is advice, for which the command stands.
        sentences.append(str(reason).partition(";")[0])
        # The folder has the name of the other broker's, with the port of the new one.
        options["--data-dir"] = f"{settings.store_path}-{options.get('--port') or settings.port or 2}"
    return CommandError(f"{'; '.join(sentences)}. {SECOND}\n  {same_command(options)}", reason.exit_code)


def is_taken(host: str, port: int) -> bool:
    """Return whether another program listens on a port."""
    try:
        sockets = listen(host, port)
    except CannotListen as error:
        return error.error.errno == errno.EADDRINUSE
    for one in sockets:
        one.close()
    return False


def _wanted(settings: Settings) -> Iterator[Wanted]:
    """Yield the ports that must be free and that an option changes. Those that follow that of AMQP move aside."""
    if settings.tcp and settings.port:
        yield Wanted("--port", settings.host, settings.port)
    pages = settings.management and settings.management_tcp
    for is_on, option, host, default, given in (
        (pages, "--management-port", settings.management_host, MANAGEMENT_PORT, settings.management_port),
        (settings.has_tls, "--tls-port", settings.host, TLS_PORT, settings.tls_port),
        (settings.prometheus, "--prometheus-port", settings.prometheus_host, PROMETHEUS_PORT, settings.prometheus_port),
    ):
        port = settings.port_of(default, given)
        if is_on and port and not settings.nearby(default, given):
            yield Wanted(option, host or settings.host, port, given is not None)


def _holder(wanted: Wanted) -> str:
    running = None
    with contextlib.suppress(node_finder.NotRunning, node_finder.UntrustedFolder):
        running = node_finder.find(str(wanted.port), os.environ)
    if running is None:
        return f"port {wanted.port} of '{wanted.host}' is in use by another program"
    return f"an amqp-broker (pid {running.pid}) serves amqp://{wanted.host}:{wanted.port} already"


def _options(settings: Settings, taken: Sequence[Wanted]) -> dict[str, str]:
    """Return the options by which the command avoids all ports that are taken."""
    moves = any(one.option == "--port" for one in taken)
    used = {one.port for one in _wanted(settings)}
    options: dict[str, str] = {}
    for one in taken:
        # Ports that the user has not chosen follow that of AMQP.
        if one.is_given or not moves:
            ports = range(one.port + 1, PORT_MAX + 1)
            free = next((port for port in ports if port not in used and not is_taken(one.host, port)), 0)
            used.add(free)
            options[one.option] = str(free)
    return options
