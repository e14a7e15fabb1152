"""`amqp-broker run -- COMMAND`: a broker for one command.

The broker is a process of its own, so that the command's work does not slow it down, and so that it survives the
Ctrl-C which the command may want to handle. On Linux both end with this process, however that ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from amqp_broker.cli.shared.own_program import own_program
from amqp_broker.control import control_folder
from amqp_broker.exit_codes import EX_UNAVAILABLE, EX_USAGE

if TYPE_CHECKING:
    from amqp_broker.settings.settings import Settings
    from amqp_broker.settings.sources.precedence import Loaded

HELP: Final = """Run a command with a broker of its own, which ends with the command.

    amqp-broker run -- pytest -q

The options before -- are those of serve. By default, the broker keeps everything in memory and listens on free ports of
127.0.0.1. With --report FILE, a command that fails leaves a page about its messages. The command gets AMQP_URL,
RABBITMQ_URL, CELERY_BROKER_URL, RABBITMQ_HOST, RABBITMQ_PORT, RABBITMQ_USER, RABBITMQ_PASSWORD, RABBITMQ_VHOST and
RABBITMQ_MANAGEMENT_URL. The exit code is that of the command, or 128 and the number of the signal that ended it.
"""
# Exit codes of shells for a command that cannot be run, or does not exist.
EX_NOT_EXECUTABLE = 126
EX_NOT_FOUND = 127
# Stands before the command that avoids what is in use (conflicts.py).
SECOND: Final = "A second broker starts with:"
LOOK_S = 0.005
START_S_MAX = 30.0
STOP_S_MAX = 5.0
# prctl(2)
PR_SET_PDEATHSIG = 1
ENDING = [signal.SIGTERM, signal.SIGINT]
FORWARDED = [*ENDING]
if sys.platform != "win32":
    ENDING += [signal.SIGHUP]
    FORWARDED += [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]


def main(words: list[str]) -> int:
    """Run a command with a broker, and return its exit code."""
    options, command = split(words)
    if not command:
        print("amqp-broker: run needs a command: amqp-broker run -- COMMAND.", file=sys.stderr)
        return EX_USAGE
    page = ""
    if any(word.partition("=")[0] == "--report" for word in options):
        from amqp_broker.cli.own.command_report import NoReport, without_report

        try:
            page, options = without_report(options)
        except NoReport as reason:
            print(f"amqp-broker: {reason}.", file=sys.stderr)
            return EX_USAGE
        options = ["--event-log", *options]
    # Signals during the start. An exception in a handler could vanish in a callback of an import.
    received: list[int] = []
    for number in ENDING:
        signal.signal(number, lambda number, frame: received.append(number))
    with tempfile.TemporaryDirectory(prefix="amqp-broker-") as name:
        folder = Path(name)
        broker = start_broker(options, folder)
        try:
            loaded = settings_of(options)
            ports = wait_for_ports(broker, folder, received)
            if received:
                return 128 + received[0]
            if ports is None or loaded is None:
                log = (folder / "log").read_text("utf-8", errors="replace")
                # The command that follows is that of `serve`, which the user did not write.
                before, is_command, _ = log.partition(SECOND)
                sys.stderr.write(before.rstrip(" ") + ("\n" if is_command else ""))
                return broker.returncode or EX_UNAVAILABLE
            warnings = [*([] if shows_log(options) else loaded.wrong), *missing_user(loaded.settings)]
            sys.stderr.writelines(f"amqp-broker: {warning}\n" for warning in warnings)
            environment = {**os.environ, **variables(ports, loaded.settings)}
            code = run_command(command, environment, received)
            if page and code:
                write_report(page, command, code, environment)
            return code
        finally:
            stop_broker(broker)
            shutil.rmtree(runtime_folder(), ignore_errors=True)


def write_report(path: str, command: Sequence[str], code: int, environment: Mapping[str, str]) -> None:
    """Write the page about a command that failed, and say so."""
    from amqp_broker.cli.own.command_report import NoReport, report

    try:
        sentence = report(path, command, code, environment)
    except NoReport as reason:
        sentence = str(reason)
    print(f"amqp-broker: {sentence}.", file=sys.stderr)


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the options of serve, and the command after -- (or all words if the first is not an option)."""
    if "--" in words:
        at = words.index("--")
        return words[:at], words[at + 1 :]
    return ([], words) if words and not words[0].startswith("-") else (words, [])


def start_broker(options: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a broker; its log is shown if a level was given, or if the start fails."""
    serve = own_program("serve", "--ephemeral", "--host", "127.0.0.1", "--port", "0")
    is_shown = shows_log(options)
    environment = {name: value for name, value in os.environ.items() if name not in PLACES}
    environment["AMQP_BROKER_RUNTIME_DIR"] = runtime_folder()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*serve, *options, "--ports-file", str(folder / "ports.json")],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if is_shown else log,
            stderr=sys.stderr if is_shown else log,
            start_new_session=True,
            preexec_fn=until_end_of_this(),
        )


def runtime_folder() -> str:
    """Return the folder of the broker's control socket.

    It is below that of others, so that commands elsewhere do not find it. The path of a socket must be short, and that
    of a temporary folder may be long.
    """
    return f"{control_folder(os.environ)}/run-{os.getpid()}"


def shows_log(options: Sequence[str]) -> bool:
    return any(word.startswith("--log-level") for word in options)


# These variables name the place of another broker.
PLACES = ("RABBITMQ_NODE_PORT", "RABBITMQ_NODE_IP_ADDRESS", "AMQP_BROKER_PORT", "AMQP_BROKER_HOST", "RABBITMQ_NODENAME")


def until_end_of_this() -> Callable[[], None] | None:
    """Return what a child does before its program runs, so that it is terminated when this process ends.

    Only Linux has it. There, the end of the thread that starts the child counts, which is the main thread here.
    """
    if sys.platform != "linux":
        return None
    parent, libc = os.getpid(), ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # It has ended meanwhile.
            os._exit(128 + signal.SIGTERM)

    return prepare


def wait_for_ports(broker: subprocess.Popen[bytes], folder: Path, received: list[int]) -> dict[str, int] | None:
    """Return the ports of the broker, or None if it ended or a signal was received."""
    path = folder / "ports.json"
    deadline = time.monotonic() + START_S_MAX
    while not path.exists():
        if received or broker.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(LOOK_S)
    ports: dict[str, int] = json.loads(path.read_text("utf-8"))
    return ports


def settings_of(options: Sequence[str]) -> Loaded | None:
    """Return the settings of a broker with these options; None if it ends with an error about them.

    The imports take no time of their own: the broker is starting.
    """
    import click

    from amqp_broker.cli.own.setting_options import settings_as_options
    from amqp_broker.settings.settings import SettingsError
    from amqp_broker.settings.sources.precedence import load

    @click.command(add_help_option=False)
    @settings_as_options
    def read(**given: Any) -> Loaded:
        return load(given, os.environ)

    try:
        loaded: Loaded = read.main([*options], standalone_mode=False)
    except (click.ClickException, SettingsError):
        return None
    return loaded


def missing_user(settings: Settings) -> list[str]:
    """Return a sentence if there are definitions, and the default user is not among them."""
    if not settings.definitions or settings.always_create_default_user:
        return []
    from amqp_broker.server.startup_definitions import sources

    users = [user for source in sources(settings.definitions) for user in source.document.get("users") or []]
    if settings.default_user in [user.get("name") for user in users]:
        return []
    return [
        f"the definitions have no user '{settings.default_user}', so AMQP_URL and the other variables cannot log in:"
        " set RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS to a user there, or"
        " AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER=1"
    ]


def variables(ports: Mapping[str, int], settings: Settings) -> dict[str, str]:
    """Return the environment variables by which a command finds the broker."""
    user, password, vhost = settings.default_user, settings.default_pass, settings.default_vhost
    host, port = "127.0.0.1", ports["amqp"]
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    url = f"amqp://{login}@{host}:{port}/{quote(vhost, safe='')}"
    found = {
        **dict.fromkeys(("AMQP_URL", "RABBITMQ_URL", "CELERY_BROKER_URL"), url),
        "RABBITMQ_HOST": host,
        **dict.fromkeys(("RABBITMQ_PORT", "RABBITMQ_NODE_PORT", "AMQP_BROKER_PORT"), str(port)),
        **dict.fromkeys(("RABBITMQ_USER", "RABBITMQ_USERNAME"), user),
        **dict.fromkeys(("RABBITMQ_PASS", "RABBITMQ_PASSWORD"), password),
        "RABBITMQ_VHOST": vhost,
        "AMQP_BROKER_RUNTIME_DIR": runtime_folder(),
    }
    if "management" in ports:
        found["RABBITMQ_MANAGEMENT_URL"] = f"http://{host}:{ports['management']}"
        found["RABBITMQ_MANAGEMENT_PORT"] = str(ports["management"])
    return found


def run_command(command: list[str], environment: Mapping[str, str], received: list[int]) -> int:
    """Run the command with the same standard files, passing on signals, and return its exit code.

    `received` has the signals that came before the command could get them.
    """
    try:
        child = subprocess.Popen(command, env=dict(environment), preexec_fn=until_end_of_this())
    except FileNotFoundError:
        print(f"amqp-broker: '{command[0]}': command not found.", file=sys.stderr)
        return EX_NOT_FOUND
    except OSError as error:
        print(f"amqp-broker: '{command[0]}': {error.strerror}.", file=sys.stderr)
        return EX_NOT_EXECUTABLE

    def forward(number: int, frame: object) -> None:
        # The terminal sends Ctrl-C to the command itself.
        if number != signal.SIGINT or not is_in_foreground():
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    for number in received:
        child.send_signal(number)
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def is_in_foreground() -> bool:
    """Return whether Ctrl-C in a terminal reaches this process."""
    if sys.platform == "win32":
        # All processes of a console get it.
        return True
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def stop_broker(broker: subprocess.Popen[bytes]) -> None:
    broker.terminate()
    try:
        broker.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        broker.kill()
        broker.wait()
