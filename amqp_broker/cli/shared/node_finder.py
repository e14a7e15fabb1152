"""Selection of the broker for a command: by name, by port, or the only one that runs."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Mapping
from typing import NamedTuple

from amqp_broker.cli.shared.http_api import Api, Place, Unreachable
from amqp_broker.control import FOLDER_VARIABLES, control_folder, control_socket, is_exposed

# Timeout of the request for a broker's name, on the same machine.
NAMING_TIMEOUT_S = 5.0
# Of several brokers, the one on this port is meant.
USUAL_PORT = "5672"


class NotRunning(Exception):
    """The broker `name` does not run; `others`, which are values of `--node`, do.

    `is_choice` if none was named, and there are several.
    """

    def __init__(self, name: str, others: list[str], folder: str, *, is_choice: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.others = others
        self.folder = folder
        self.is_choice = is_choice


class UntrustedFolder(Exception):
    """Other users could answer in place of a broker, and would see the passwords that are sent to it."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"the folder '{folder}' of the control sockets is not this user's alone: another user could answer there; "
            "name the broker's folder in AMQP_BROKER_RUNTIME_DIR"
        )


class Running(NamedTuple):
    """A running broker, the address of its API, and the version of RabbitMQ that it imitates.

    `is_started` is False after stop_app; `pid` is its process.
    """

    name: str
    place: Place
    version: str
    is_started: bool = True
    pid: int = 0


def find(given: str, environment: Mapping[str, str]) -> Running:
    """Return the broker `given` by name or port, or by the environment. Raises NotRunning and UntrustedFolder."""
    folder = control_folder(environment)
    _check(folder, environment)
    name = given or environment.get("RABBITMQ_NODENAME", "")
    port = environment.get("RABBITMQ_NODE_PORT") or environment.get("AMQP_BROKER_PORT") or ""
    if given.isdecimal():
        name, port = "", given
    # A port selects the broker, unless the user gave another name.
    running = _ask(control_socket(folder, int(port))) if port.isdecimal() else None
    if running is not None and (not given or given.isdecimal() or is_named(running.name, name)):
        return running
    try:
        paths = [entry.path for entry in os.scandir(folder) if entry.name.endswith(".sock")]
    except OSError:
        paths = []
    found = [running for path in sorted(paths) if (running := _ask(path)) is not None]
    wanted = [running for running in found if is_named(running.name, name)] if name else [] if port else found
    if len(wanted) == 1:
        return wanted[0]
    usual = [running for running in wanted if port_of(running) == USUAL_PORT]
    if usual:
        return usual[0]
    wanted_name = given or name or f"rabbit@{socket.gethostname()}"
    is_choice = not name and not port and len(found) > 1
    raise NotRunning(wanted_name, _distinct_names(found), folder, is_choice=is_choice)


def _check(folder: str, environment: Mapping[str, str]) -> None:
    """Raise UntrustedFolder if another user may have made the folder. Root may name that of any user."""
    if sys.platform != "win32" and os.getuid() == 0 and any(environment.get(name) for name in FOLDER_VARIABLES):
        return
    with contextlib.suppress(OSError):
        if is_exposed(folder):
            raise UntrustedFolder(folder)


def _distinct_names(found: list[Running]) -> list[str]:
    """Return values of `--node`: the names, or the ports if several brokers have one name."""
    names = [running.name for running in found]
    return names if len(set(names)) == len(names) else list(map(port_of, found))


def port_of(running: Running) -> str:
    """Return the AMQP port, after which the socket is named."""
    return running.place.path.rpartition("/")[2].removesuffix(".sock")


def is_named(name: str, wanted: str) -> bool:
    """Return whether `wanted` names a node; without a host, it names that node on any host."""
    short, _, host = name.partition("@")
    wanted_short, _, wanted_host = wanted.partition("@")
    if short != wanted_short:
        return False
    return not wanted_host or wanted_host == host or wanted_host.partition(".")[0] == host.partition(".")[0]


def _ask(path: str) -> Running | None:
    place = Place(path=path)
    try:
        answer = Api(place, NAMING_TIMEOUT_S).get("/_broker/node")
    except Unreachable:
        return None
    if not answer.is_ok:
        return None
    value = answer.value
    return Running(
        str(value["name"]), place, str(value["version"]), bool(value["is_started"]), int(value.get("pid", 0))
    )
