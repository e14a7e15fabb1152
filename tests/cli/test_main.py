from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from amqp_broker.settings.settings import SETTINGS
from compat.brokers import free_port
from tests.cli.program import MODULE, SCRIPT, TIMEOUT_S, environment, run, run_as

both_programs = pytest.mark.parametrize("program", [MODULE, SCRIPT], ids=["module", "script"])


@pytest.fixture(scope="module")
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        yield listener.getsockname()[1]


def assert_fails(done: subprocess.CompletedProcess[str], code: int, sentence: str) -> None:
    """One sentence on stderr, nothing else anywhere."""
    # The log may have the first user, but no listener.
    assert "listener started" not in done.stdout
    assert "TCP listener" not in done.stdout
    assert done.stderr == f"amqp-broker: {sentence}\n"
    assert done.returncode == code


# Success


@both_programs
def test_the_version_is_printed(program: tuple[str, ...]) -> None:
    done = run_as(program, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"amqp-broker, version {metadata.version('amqp-minibroker')} (pure Python)\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_the_commands(flag: str) -> None:
    done = run(flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: amqp-broker ")
    assert re.search(r"^  serve +\w", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_of_serve_lists_every_flag_with_its_default(flag: str) -> None:
    done = run("serve", flag, COLUMNS="1000")
    assert (done.returncode, done.stderr) == (0, "")
    text = re.sub(r"\s+", " ", done.stdout)
    for declared in SETTINGS:
        for option in declared.options:
            assert f" {option.partition('/')[0]}" in text
            assert declared.help in text
            assert all(name in text for name in declared.env)
        if not declared.options:
            assert f" --{declared.name.replace('_', '-')} " not in text
    assert "[default: 5672]" in text


def test_help_of_serve_names_the_variables_of_the_environment() -> None:
    text = run("serve", "--help").stdout
    for name in ("AMQP_BROKER_LOG_LEVEL", "RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_PASS", "RABBITMQ_DEFAULT_VHOST"):
        assert name in text


def test_without_a_command_help_is_printed_and_the_command_fails() -> None:
    done = run()
    assert done.returncode == os.EX_USAGE
    assert "Usage: amqp-broker " in done.stdout + done.stderr


# Errors: one sentence and an exit code of sysexits.h


@both_programs
def test_an_unknown_option_is_refused(program: tuple[str, ...]) -> None:
    assert_fails(run_as(program, "serve", "--bogus-option"), os.EX_USAGE, "No such option '--bogus-option'.")


@pytest.mark.parametrize("arguments", [["bogus"], ["serve", "extra"], ["serve", "--port"], ["serve", "--port", "amqp"]])
def test_an_invalid_command_line_is_refused(arguments: list[str]) -> None:
    done = run(*arguments)
    assert_fails(done, os.EX_USAGE, done.stderr.removeprefix("amqp-broker: ").removesuffix("\n"))
    assert re.fullmatch(r"amqp-broker: [A-Z'].*\.\n", done.stderr)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"AMQP_BROKER_PORT": "amqp"}, "AMQP_BROKER_PORT is 'amqp', which is not a whole number."),
        ({"RABBITMQ_NODE_PORT": "70000"}, "RABBITMQ_NODE_PORT is '70000', which is not between 0 and 65535."),
        ({"AMQP_BROKER_EPHEMERAL": "maybe"}, "AMQP_BROKER_EPHEMERAL is 'maybe', which is neither true nor false."),
        (
            {"AMQP_BROKER_LOG_LEVEL": "loud"},
            "AMQP_BROKER_LOG_LEVEL is 'loud', which is not one of debug, info, warning, error.",
        ),
    ],
)
def test_a_bad_value_in_the_environment_is_refused(variables: dict[str, str], sentence: str) -> None:
    assert_fails(run("serve", **variables), os.EX_CONFIG, sentence)


def test_a_value_out_of_range_is_refused() -> None:
    assert_fails(run("serve", "--port", "70000"), os.EX_CONFIG, "--port is '70000', which is not between 0 and 65535.")


def test_a_port_in_use_is_reported(taken_port: int) -> None:
    done = run("serve", "--host", "127.0.0.1", "--port", str(taken_port))
    reason, command = done.stderr.splitlines()
    begin = f"amqp-broker: port {taken_port} of '127.0.0.1' is in use by another program."
    assert (done.returncode, reason) == (os.EX_UNAVAILABLE, f"{begin} A second broker starts with:")
    assert command.startswith("  amqp-broker serve --host 127.0.0.1 --port ")


@pytest.mark.parametrize("host", ["no.such.host.invalid", "..", "256.1.1.1"])
def test_an_invalid_host_is_reported(host: str) -> None:
    done = run("serve", "--host", host, "--port", "0")
    assert_fails(done, os.EX_NOHOST, done.stderr.removeprefix("amqp-broker: ").removesuffix("\n"))
    assert re.fullmatch(rf"amqp-broker: cannot listen on '{re.escape(host)}': [A-Z][\w ]+\.\n", done.stderr)


def test_an_address_of_another_machine_is_reported() -> None:
    done = run("serve", "--host", "192.0.2.1", "--port", "0")
    reason = os.strerror(errno.EADDRNOTAVAIL)
    assert_fails(done, os.EX_NOHOST, f"cannot listen on port 0 of '192.0.2.1': {reason}.")


def test_a_port_that_the_user_may_not_use_is_reported() -> None:
    first_for_all = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not first_for_all.exists() or int(first_for_all.read_text("utf-8")) <= 1:
        pytest.skip("every user may listen on any port here")
    program: tuple[str, ...] = MODULE
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("no setpriv here, to be root without root's rights")
        program = (setpriv, "--bounding-set=-net_bind_service", *MODULE)
    done = run_as(program, "serve", "--host", "127.0.0.1", "--port", "1")
    assert_fails(done, os.EX_NOPERM, "this user may not listen on port 1 of '127.0.0.1'.")


@pytest.mark.parametrize(("name", "number"), [("missing/ports.json", errno.ENOENT), ("", errno.EISDIR)])
def test_a_ports_file_that_cannot_be_written_is_reported(tmp_path: Path, name: str, number: int) -> None:
    path = f"{tmp_path}/{name}"
    done = run("serve", "--host", "127.0.0.1", "--port", "0", "--ports-file", path)
    assert done.stderr == f"amqp-broker: cannot write the ports file '{path}': {os.strerror(number)}.\n"
    assert done.returncode == os.EX_CANTCREAT
    # It had begun to listen by then, but was never ready.
    assert "Server startup complete" not in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [*MODULE, "serve", "--help"], env=environment(), stdout=writing, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        os.close(writing)
        _, complaints = process.communicate(timeout=TIMEOUT_S)
    assert complaints == ""
