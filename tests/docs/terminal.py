"""A terminal for a page's commands: one shell, an empty home, and separate ports.

Pages use 5672, 15672 and so on. Commands are run with free ports instead (`Names`), and the output is read with the
original ones, so that pages can run beside other brokers. A program `amqp-broker`, first in PATH, gives a broker these
ports if the page names none.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from compat.brokers import free_port
from tests.docs.blocks import PROJECT
from tests.forking.server import forked

# Only a hanging command is interrupted, before the timeout of the test: a page may start Spark, which is slow beside
# other work.
TIMEOUT_S: Final = 280.0
END: Final = "end of command"
_END: Final = re.compile(rf"\n{END} (\d+)\n".encode())
READY: Final = "Server startup complete"
WELL_KNOWN: Final = ("5671", "5672", "5673", "15671", "15672", "15673", "15692", "15693")

# Options and variables of the user take precedence over those set here, except for those of `run`.
PROGRAM: Final = """\
#!/bin/bash
case "$1" in
  check-config | run) ;;
  # Like RabbitMQ's, it would otherwise write to /etc/rabbitmq of this machine.
  plugins) export RABBITMQ_ENABLED_PLUGINS_FILE="${{RABBITMQ_ENABLED_PLUGINS_FILE:-{plugins}}}" ;;
  admin) shift; exec {program} admin -P {management} "$@" ;;
  *)
    export RABBITMQ_NODE_PORT="${{RABBITMQ_NODE_PORT:-{amqp}}}"
    export AMQP_BROKER_MANAGEMENT_PORT="${{AMQP_BROKER_MANAGEMENT_PORT:-{management}}}"
    export AMQP_BROKER_PROMETHEUS_PORT="${{AMQP_BROKER_PROMETHEUS_PORT:-{prometheus}}}"
    case " $*" in
      *" --tls "* | *" --tls-cert-file "*)
        export AMQP_BROKER_TLS_PORT={tls}
        export AMQP_BROKER_MANAGEMENT_TLS_PORT="${{AMQP_BROKER_MANAGEMENT_TLS_PORT:-{management_tls}}}" ;;
    esac ;;
esac
exec {program} "$@"
"""
_SERVE: Final = re.compile(r"(\w+=\S* )*amqp-broker serve\b(?!.*--check-config)")


class Names:
    """Names of ports and machines in pages, and their replacements."""

    def __init__(self) -> None:
        self.ports: dict[str, str] = {}
        while len(self.ports) < len(WELL_KNOWN):
            # A free port may be found twice.
            if (port := str(free_port())) not in self.ports.values():
                self.ports[WELL_KNOWN[len(self.ports)]] = port
        self.machines: dict[str, str] = {}

    def here(self, text: str) -> str:
        for machine, address in self.machines.items():
            text = text.replace(machine, address)
        return re.sub(rf"\b({'|'.join(WELL_KNOWN)})\b", lambda found: self.ports[found[1]], text)

    def there(self, text: str) -> str:
        for machine, address in self.machines.items():
            text = text.replace(address, machine)
        own = {port: name for name, port in self.ports.items()}
        return re.sub(rf"\b({'|'.join(own)})\b", lambda found: own[found[1]], text)


class Terminal:
    """Runs commands in order, like a reader; a new broker replaces the previous one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = Names()
        # The path of a socket must be short.
        self._runtime = Path(tempfile.mkdtemp(prefix="docs-"))
        for name in ("home", "bin", "work"):
            (folder / name).mkdir()
        self.work = folder / "work"
        self._write_program()
        self._serves = 0
        self._unread = b""
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.work,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _write_program(self) -> None:
        ports = self.names.ports
        program = self.folder / "bin" / "amqp-broker"
        program.write_text(
            PROGRAM.format(
                program=shlex.join(forked("amqp_broker")),
                plugins=self.folder / "enabled_plugins",
                amqp=ports["5672"],
                management=ports["15672"],
                prometheus=ports["15692"],
                tls=ports["5671"],
                management_tls=ports["15671"],
            ),
            "utf-8",
        )
        program.chmod(0o755)
        # A forked pytest would warn of the plugin's package, which the fork server has imported.
        for name, command in (("python", (sys.executable,)), ("pytest", (sys.executable, "-m", "pytest"))):
            script = self.folder / "bin" / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
            script.chmod(0o755)

    def _environment(self) -> dict[str, str]:
        # No settings or home of the parent process: a page states what it needs.
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "LOCPATH", "SYSTEMROOT") if name in os.environ}
        return {
            **kept,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": str(PROJECT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_RUNTIME_DIR": str(self._runtime),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        }

    def write(self, name: str, text: str) -> None:
        """Write a file where the commands run."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.names.here(text), "utf-8")

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code and its output with the names of the pages."""
        typed = self.names.here(command)
        if _SERVE.match(command) and not command.rstrip().endswith("&"):
            typed = self._served(typed)
        shell = self._shell.stdin
        assert shell is not None
        shell.write(f"{{ {typed}\n}} </dev/null\nprintf '\\n{END} %s\\n' $?\n".encode())
        shell.flush()
        printed, code = self._read(command)
        return code, self.names.there(printed)

    def _served(self, typed: str) -> str:
        """Start a broker in the background; once it is ready or has ended, return its log as output."""
        self._serves += 1
        log = self.folder / f"serve-{self._serves}.log"
        without_comment = re.sub(r"\s+#.*", "", typed)
        return (
            f'[ -z "$BROKER" ] || {{ kill $BROKER; wait $BROKER; }} 2>/dev/null\n'
            f"{without_comment} >{log} 2>&1 &\n"
            f"BROKER=$!\n"
            f'while kill -0 $BROKER 2>/dev/null && ! grep -q "{READY}" {log}; do sleep 0.02; done\n'
            f'cat {log}; grep -q "{READY}" {log} || {{ wait $BROKER; }}'
        )

    def _read(self, command: str) -> tuple[str, int]:
        """Return the output up to the end of a command, and its exit code.

        Commands in the background go on printing: what comes later is output of the next command.
        """
        output = self._shell.stdout
        assert output is not None
        deadline = time.monotonic() + TIMEOUT_S
        while (end := _END.search(self._unread)) is None:
            ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            printed = self._unread.decode()
            assert ready, f"{command!r} did not end within {TIMEOUT_S:.0f} seconds; it printed:\n{printed}"
            octets = os.read(output.fileno(), 65536)
            assert octets, f"{command!r} ended the shell; it printed:\n{printed}"
            self._unread += octets
        printed, self._unread = self._unread[: end.start()].decode(), self._unread[end.end() :]
        return printed, int(end[1])

    def close(self) -> None:
        """End the shell and all its processes."""
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for stream in (self._shell.stdin, self._shell.stdout):
            if stream is not None:
                stream.close()
        shutil.rmtree(self._runtime, ignore_errors=True)
