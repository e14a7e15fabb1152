"""The outcome of a start: objects, effective limits, and lines of the log that people wait for."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from pamqp import base, commands, frame

from compat.startup.starting import StartedAmqpBroker, StartedRabbitMQ, logged, start

LINES: Final = re.compile(
    r"Ready to start client connection listeners|(?<= )completed with \d+ plugins\."
    r"|Server startup complete; \d+ plugins started\."
)
LISTENERS: Final = re.compile(
    r"started (?:TCP|TLS \(SSL\)) listener on \S+|HTTPS? \([^)]*\) listener started on port \d+"
)
COOKIE: Final = re.compile("[A-Z]{20}")
TIMEOUT_S: Final = 20
# Objects of exported definitions, and the fields that an input determines.
FIELDS: Final = {
    "users": ("name", "tags"),
    "vhosts": ("name",),
    "permissions": ("user", "vhost", "configure", "write", "read"),
    "queues": ("name", "vhost", "durable"),
    "exchanges": ("name", "vhost", "type"),
    "parameters": ("component", "name", "vhost", "value"),
}


def outcome(broker: StartedRabbitMQ | StartedAmqpBroker) -> dict[str, Any]:
    """Start a broker, look at it, and stop it."""
    try:
        if not start(broker):
            return {"is started": False, "fails": broker.fails()}
        text = "".join(file.read_text("utf-8", errors="replace") for file in sorted(broker.folder.glob("log/*.log")))
        file = broker.folder / "exported.json"
        # Each of RabbitMQ's commands takes a second to start.
        with ThreadPoolExecutor(2) as pool:
            settings, is_exported = pool.submit(broker.effective), pool.submit(broker.export, file)
        exported: Mapping[str, Any] = json.loads(file.read_text("utf-8")) if is_exported.result() else {}
        return {
            "is started": True,
            "lines": sorted(set(LINES.findall(logged(broker) + text))),
            "listeners": sorted(broker.anonymous(line) for line in set(LISTENERS.findall(logged(broker) + text))),
            "files": files(broker),
            "settings": settings.result(),
            "limits": limits(broker),
            **{kind: _rows(exported.get(kind, []), names) for kind, names in FIELDS.items()},
        }
    finally:
        broker.kill()


def files(broker: StartedRabbitMQ | StartedAmqpBroker) -> dict[str, bool]:
    """Return which files are there that scripts look for."""
    nodes = broker.folder / "mnesia"
    pids = [file.read_text("utf-8").strip() for file in nodes.glob("*@localhost.pid")]
    return {
        "a file with the number of the process": len(pids) == 1 and pids[0].isdecimal(),
        "a folder of the node": any(path.is_dir() for path in nodes.glob("*@localhost")),
        "a cookie of Erlang that its owner alone can read": _is_cookie(broker.home / ".erlang.cookie"),
    }


def _is_cookie(file: Path) -> bool:
    # RabbitMQ may write at once, or when the first command runs.
    return file.exists() and file.stat().st_mode & 0o777 == 0o400 and bool(COOKIE.fullmatch(file.read_text("utf-8")))


def _rows(found: list[dict[str, Any]], names: tuple[str, ...]) -> list[list[Any]]:
    # RabbitMQ 4.3 exports an exchange of its own, amq.rabbitmq.log.
    others = (one for one in found if not str(one.get("name", "")).startswith("amq."))
    return sorted([one.get(name) for name in names] for one in others)


def limits(broker: StartedRabbitMQ | StartedAmqpBroker) -> list[int] | str:
    """Return channel_max, frame_max and heartbeat as a client sees them, or why it sees none."""
    name, password = broker.given.login
    with socket.create_connection((broker.host, broker.port), TIMEOUT_S) as client:
        client.settimeout(TIMEOUT_S)
        received = bytearray()

        def expect() -> Any:
            while True:
                with contextlib.suppress(Exception):
                    size, _, method = frame.unmarshal(bytes(received))
                    del received[:size]
                    return method
                more = client.recv(65536)
                if not more:
                    return None
                received.extend(more)

        def send(method: base.Frame) -> Any:
            client.sendall(frame.marshal(method, 0))
            return expect()

        client.sendall(b"AMQP\x00\x00\x09\x01")
        expect()
        tune = send(commands.Connection.StartOk({}, "PLAIN", f"\0{name}\0{password}"))
        if not isinstance(tune, commands.Connection.Tune):
            return "the login is refused"
        client.sendall(frame.marshal(commands.Connection.TuneOk(1, tune.frame_max or 131072, 0), 0))
        opened = send(commands.Connection.Open(broker.given.vhost))
        if not isinstance(opened, commands.Connection.OpenOk):
            return "the vhost is refused"
        return [tune.channel_max, tune.frame_max, tune.heartbeat]
