"""`rabbitmq-server`: start the broker with RabbitMQ's environment; `-detached` starts it in the background.

Source: RabbitMQ's scripts rabbitmq-server and rabbitmq-env; rabbit_env.erl.
"""

from __future__ import annotations

import os
import platform
import secrets
import string
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from amqp_broker.cli.shared.own_program import own_program

PROGRAM = own_program("serve")
# The script that sets variables where RABBITMQ_CONF_ENV_FILE names no other.
ENV_FILE = "/etc/rabbitmq/rabbitmq-env.conf"
HOME = "/var/lib/rabbitmq"
MNESIA_BASE = f"{HOME}/mnesia"
ERL_ARGS = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
# Words in the commands of nodes: this broker's, and RabbitMQ's virtual machine.
_NODES = (b"amqp_broker", b"amqp-broker", b"beam.smp")
# Options of `serve` that stand for no setting.
_COMMAND_OPTIONS = ("-t", "--check-config", "-h", "--help")


def main(words: list[str]) -> None:
    """Become the broker, or start it in the background."""
    environment = {**of_file(os.environ), **os.environ}
    options, arguments = divided(words)
    environment |= settings(environment, arguments)
    # The script may have been the only one to know where the package is.
    paths = (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if "AMQP_BROKER_DATA_DIR" in environment:
        # RabbitMQ also creates its folders.
        Path(environment["AMQP_BROKER_DATA_DIR"]).parent.mkdir(parents=True, exist_ok=True)
    if "-detached" not in words:
        write_pid(os.getpid(), environment)
        write_cookie(environment)
        os.execve(sys.executable, [*PROGRAM, *options], environment)
    detach(options, environment)


def divided(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the options of this broker, and arguments for Erlang's virtual machine, such as `-rabbit heartbeat 30`.

    All words that this broker does not know are such arguments: RabbitMQ hands them on, and most have no effect.
    """
    options: list[str] = []
    arguments: list[str] = []
    known = _own_options()
    current = arguments
    for word in words:
        if word == "-detached":
            continue
        if word.startswith(("-", "+")):
            current = options if word.partition("=")[0] in known else arguments
        current.append(word)
    return options, arguments


def _own_options() -> set[str]:
    from amqp_broker.settings.settings import SETTINGS

    return {name for one in SETTINGS for option in one.options for name in option.split("/")}.union(_COMMAND_OPTIONS)


def settings(environment: Mapping[str, str], arguments: Iterable[str] = ()) -> dict[str, str]:
    """Return variables of this broker that follow from RabbitMQ's environment and the script's arguments."""
    found = {}
    parts = [environment.get(name, "") for name in ("RABBITMQ_SERVER_ERL_ARGS", ERL_ARGS, "RABBITMQ_SERVER_START_ARGS")]
    joined = " ".join(filter(None, [*parts, *arguments]))
    if joined != environment.get(ERL_ARGS, ""):
        found[ERL_ARGS] = joined
    name = node_name(environment)
    if name != environment.get("RABBITMQ_NODENAME"):
        found["RABBITMQ_NODENAME"] = name
    if not {"RABBITMQ_NODE_IP_ADDRESS", "AMQP_BROKER_HOST"} & set(environment):
        found["AMQP_BROKER_HOST"] = "::"
    base = environment.get("RABBITMQ_MNESIA_BASE")
    if base and not {"RABBITMQ_MNESIA_DIR", "AMQP_BROKER_DATA_DIR"} & set(environment):
        found["AMQP_BROKER_DATA_DIR"] = str(Path(base) / name)
    plugins = environment.get("RABBITMQ_ENABLED_PLUGINS_FILE")
    is_usual = environment.get("RABBITMQ_NODE_PORT", "") in ("", "5672")
    if plugins and not Path(plugins).is_file() and not is_usual and "RABBITMQ_ENABLED_PLUGINS" not in environment:
        # RabbitMQ has no plugins then, so that nodes run side by side; here they would share ports 15672 and 15692.
        for setting in ("AMQP_BROKER_MANAGEMENT", "AMQP_BROKER_PROMETHEUS"):
            if setting not in environment:
                found[setting] = "false"
    return found


def of_file(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that RABBITMQ_CONF_ENV_FILE sets, whose names may lack RABBITMQ_.

    The file is a shell script; its output goes to stderr.
    """
    path = environment.get("RABBITMQ_CONF_ENV_FILE") or ENV_FILE
    if not Path(path).is_file():
        return {}
    import subprocess

    names_before = set(environment) | {"_", "PWD", "OLDPWD", "SHLVL"}
    command = ["/bin/sh", "-c", 'set -a; . "$0" >&2; exec env -0', str(Path(path).absolute())]
    done = subprocess.run(command, env=dict(environment), capture_output=True, check=False)
    sys.stderr.write(done.stderr.decode(errors="replace"))
    pairs = (line.partition("=") for line in os.fsdecode(done.stdout).split("\0") if line)
    found = {name: value for name, _, value in pairs if name not in names_before}
    return {
        name if name.startswith(("RABBITMQ_", "AMQP_BROKER_")) else f"RABBITMQ_{name}": found[name] for name in found
    }


def node_name(environment: Mapping[str, str]) -> str:
    """Return the full name of the node; without a host, it is on this machine."""
    name = environment.get("RABBITMQ_NODENAME") or "rabbit"
    return name if "@" in name else f"{name}@{platform.node().partition('.')[0]}"


def detach(options: list[str], environment: Mapping[str, str]) -> None:
    """Start the broker in a new session; its log has RabbitMQ's place."""
    import subprocess

    base = environment.get("RABBITMQ_LOG_BASE")
    if base:
        Path(base).mkdir(parents=True, exist_ok=True)
    log = Path(base) / f"{node_name(environment)}.log" if base else Path(os.devnull)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*PROGRAM, *options],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    write_pid(process.pid, environment)
    write_cookie(environment)
    # The process must not be waited for any more.
    process.returncode = 0


def write_pid(pid: int, environment: Mapping[str, str]) -> None:
    """Write the file for which `rabbitmqctl wait FILE` waits, if its place is known and writable.

    The file of another node that still runs is kept, although RabbitMQ would replace it.
    """
    file = environment.get("RABBITMQ_PID_FILE")
    if not file:
        name = node_name(environment)
        file = (
            environment.get("RABBITMQ_MNESIA_DIR") or f"{environment.get('RABBITMQ_MNESIA_BASE') or MNESIA_BASE}/{name}"
        ) + ".pid"
    with suppress(OSError):
        if Path(file).parent.parent.is_dir():
            Path(file).parent.mkdir(exist_ok=True)
        if not _is_of_another_node(Path(file), pid):
            Path(file).write_text(f"{pid}\n", "utf-8")


def _is_of_another_node(file: Path, pid: int) -> bool:
    """Return whether a file has the number of a process that is a node, but not this one.

    After a crash and a restart of the machine, the number may be that of any program.
    """
    try:
        other = int(file.read_text("utf-8"))
        if other in (pid, os.getpid()) or other <= 0:
            return False
        os.kill(other, 0)
        command = Path(f"/proc/{other}/cmdline").read_bytes()
    except PermissionError:
        return True
    except FileNotFoundError:
        # Without /proc, the program is not known.
        return file.exists() and not Path("/proc/self").exists()
    except (OSError, ValueError, OverflowError):
        return False
    return any(name in command for name in _NODES)


def write_cookie(environment: Mapping[str, str]) -> None:
    """Create `.erlang.cookie` in the home of RabbitMQ's user, where scripts change its mode or copy it.

    It means nothing here. Homes of other users get none.
    """
    home = Path(environment.get("HOME", ""))
    if str(home) != HOME:
        return
    with suppress(OSError):
        descriptor = os.open(home / ".erlang.cookie", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("".join(secrets.choice(string.ascii_uppercase) for _ in range(20)))
