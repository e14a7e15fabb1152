from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.cli.own.run import split, variables
from amqp_broker.settings.settings import Settings
from compat.waiting import wait_until
from tests.cli.program import MODULE, TIMEOUT_S, environment, program, run

PUBLISH = """
import os, pika, urllib.request
connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
connection.channel().queue_declare("q")
host, port = os.environ["RABBITMQ_HOST"], int(os.environ["RABBITMQ_PORT"])
login = pika.PlainCredentials(os.environ["RABBITMQ_USER"], os.environ["RABBITMQ_PASSWORD"])
parameters = pika.ConnectionParameters(host, port, os.environ["RABBITMQ_VHOST"], login)
pika.BlockingConnection(parameters).channel().queue_declare("q", passive=True)
assert os.environ["RABBITMQ_MANAGEMENT_URL"].startswith("http://127.0.0.1:")
print("done")
"""


def test_a_command_finds_its_broker_and_its_output_is_unchanged() -> None:
    done = run("run", "--", sys.executable, "-c", PUBLISH)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_the_command_gets_the_user_and_the_vhost_of_a_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("default_user = anna\ndefault_pass = secret\ndefault_vhost = shop\n", "utf-8")
    script = "echo $AMQP_URL $RABBITMQ_VHOST"
    for words, more in (((), {"RABBITMQ_CONFIG_FILE": str(file)}), (("--config", str(file)), {})):
        done = run("run", *words, "--", "sh", "-c", script, **more)
        assert re.fullmatch(r"amqp://anna:secret@127.0.0.1:\d+/shop shop\n", done.stdout), done.stderr


def test_the_command_can_run_ctl_commands_at_its_broker(tmp_path: Path) -> None:
    done = run("run", "--", *program(), "ctl", "-q", "ping", AMQP_BROKER_RUNTIME_DIR=str(tmp_path))
    assert (done.stdout, done.returncode) == ("Ping succeeded\n", 0)


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)], ids=["exit", "kill", "term"]
)
def test_the_exit_code_is_that_of_the_command(script: str, code: int) -> None:
    assert run("run", "--", "sh", "-c", script).returncode == code


def test_an_unknown_command_is_reported(tmp_path: Path) -> None:
    assert run("run", "--", "no-such-command").returncode == 127
    assert run("run", "--", str(tmp_path)).returncode == 126
    assert run("run").returncode == os.EX_USAGE


def test_options_before_the_command_are_those_of_the_broker() -> None:
    done = run("run", "--bogus", "--", "true")
    assert done.returncode == os.EX_USAGE
    assert "No such option '--bogus'" in done.stderr
    assert run("run", "--no-management", "--", "sh", "-c", "test -z $RABBITMQ_MANAGEMENT_URL").returncode == 0


def test_a_signal_is_passed_to_the_command_and_the_broker_ends_with_it(tmp_path: Path) -> None:
    script = 'trap "exit 5" TERM; echo $AMQP_BROKER_PORT > port.part; mv port.part port; while :; do sleep 0.05; done'
    variables = environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path / "run"))
    with subprocess.Popen([*program(), "run", "--", "sh", "-c", script], env=variables, cwd=tmp_path) as process:
        wait_until(lambda: (tmp_path / "port").exists())
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 5
    assert not list((tmp_path / "run").glob("*.sock"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_start_ends_the_broker_and_leaves_no_folder(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    variables = environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path / "run"), TMPDIR=str(folder))
    with subprocess.Popen(
        [*program(), "run", "--", "sleep", "6"], env=variables, cwd=tmp_path, stderr=subprocess.PIPE
    ) as process:
        wait_until(lambda: list(folder.glob("amqp-broker-*")))
        process.send_signal(number)
        assert process.communicate(timeout=TIMEOUT_S)[1] == b""
        assert process.returncode == 128 + number
    assert list(folder.iterdir()) == []


def test_errors_in_a_configuration_file_and_definitions_without_the_user_are_reported(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("no_such_key = 1\n", "utf-8")
    definitions = {"users": [{"name": "anna", "password": "p", "tags": ""}]}
    words = ("--config", str(tmp_path / "rabbitmq.conf"), "--definitions", json.dumps(definitions))
    told = run("run", *words, "--", "true").stderr
    assert "no_such_key" in told
    assert (
        "amqp-broker: the definitions have no user 'guest', so AMQP_URL and the other variables cannot log in" in told
    )
    assert run("run", *words[2:], "--", "true", RABBITMQ_DEFAULT_USER="anna").stderr == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_neither_the_broker_nor_the_command_outlives_a_killed_run(tmp_path: Path) -> None:
    variables = environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path / "run"))
    script = 'trap "touch ended; exit" TERM; touch up; while :; do sleep 0.05; done'
    with subprocess.Popen([*MODULE, "run", "--", "sh", "-c", script], env=variables, cwd=tmp_path) as process:
        wait_until((tmp_path / "up").exists)
        assert list(tmp_path.glob("run/run-*/*.sock"))
        process.kill()
    wait_until((tmp_path / "ended").exists)
    wait_until(lambda: not list(tmp_path.glob("run/run-*/*.sock")))


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--", "a", "--", "b"], ([], ["a", "--", "b"])),
        (["--port", "1", "--", "a"], (["--port", "1"], ["a"])),
        (["a", "-b"], ([], ["a", "-b"])),
        (["--port", "1"], (["--port", "1"], [])),
    ],
)
def test_options_end_where_the_command_begins(words: list[str], parts: tuple[list[str], list[str]]) -> None:
    assert split(words) == parts


def test_names_and_passwords_are_quoted_in_urls() -> None:
    found = variables({"amqp": 1}, Settings(default_user="a@b", default_pass="x/y"))
    assert found["AMQP_URL"] == found["CELERY_BROKER_URL"] == "amqp://a%40b:x%2Fy@127.0.0.1:1/%2F"
    assert "RABBITMQ_MANAGEMENT_URL" not in found


def test_a_port_in_use_is_reported_without_the_command_of_the_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("run", "--port", str(port), "--", "true")
    assert done.returncode == 69
    assert done.stderr.endswith(f"\namqp-broker: port {port} of '127.0.0.1' is in use by another program.\n")


def test_a_broker_of_a_command_is_not_found_by_others(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/runs; while [ ! -e {tmp_path}/end ]; do sleep 0.1; done"
    command = [*program(), "run", "--", "sh", "-c", script]
    with subprocess.Popen(command, env=environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path))) as other:
        wait_until((tmp_path / "runs").exists)
        found = run("clock", "show", "--node", "rabbit", AMQP_BROKER_RUNTIME_DIR=str(tmp_path))
        assert "; running here" not in found.stderr
        assert found.returncode == 69
        assert list(tmp_path.glob("run-*/*.sock"))
        (tmp_path / "end").touch()
        assert other.wait(60) == 0
    assert not list(tmp_path.glob("run-*"))
