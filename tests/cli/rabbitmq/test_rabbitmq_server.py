from __future__ import annotations

import os
import platform
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.cli.rabbitmq import rabbitmq_server
from amqp_broker.cli.rabbitmq.rabbitmq_server import (
    ERL_ARGS,
    divided,
    node_name,
    of_file,
    settings,
    write_cookie,
    write_pid,
)
from compat.brokers import free_port
from compat.certificates import Issuer
from compat.waiting import wait_until
from tests.cli.program import environment

MAIN = "import sys; from amqp_broker.cli.rabbitmq.rabbitmq_server import main; main(sys.argv[1:])"


def test_rabbitmqs_environment_variables_apply(tmp_path: Path) -> None:
    plugins = tmp_path / "enabled_plugins"
    plugins.write_text("[rabbitmq_management].\n", "utf-8")
    found = settings(
        {
            "RABBITMQ_NODENAME": "a@b",
            "RABBITMQ_MNESIA_BASE": "/data",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        }
    )
    assert found == {"AMQP_BROKER_DATA_DIR": "/data/a@b"}
    assert settings({})["AMQP_BROKER_HOST"] == "::"
    assert node_name({"RABBITMQ_NODENAME": "a"}) == f"a@{platform.node().partition('.')[0]}"


def test_nodes_without_plugins_do_not_take_the_ports_of_plugins(tmp_path: Path) -> None:
    missing = {"RABBITMQ_ENABLED_PLUGINS_FILE": str(tmp_path / "enabled_plugins")}
    switched_off = {"AMQP_BROKER_MANAGEMENT": "false", "AMQP_BROKER_PROMETHEUS": "false"}
    assert switched_off.items() <= settings({**missing, "RABBITMQ_NODE_PORT": "5673"}).items()
    for given in (
        {},
        {"RABBITMQ_NODE_PORT": "5672"},
        {"RABBITMQ_NODE_PORT": "5673", "RABBITMQ_ENABLED_PLUGINS": "rabbitmq_management"},
    ):
        assert not set(switched_off) & set(settings({**missing, **given}))
    asked_for = {**missing, "RABBITMQ_NODE_PORT": "5673", "AMQP_BROKER_MANAGEMENT": "true"}
    assert "AMQP_BROKER_MANAGEMENT" not in settings(asked_for)


def test_the_file_of_the_environment_is_a_script_whose_names_may_lack_the_prefix(tmp_path: Path) -> None:
    path = tmp_path / "rabbitmq-env.conf"
    path.write_text(
        "# a comment\necho hello\nPORT=5673\nNODE_PORT=$PORT\nRABBITMQ_NODENAME='a b'\nLOG_BASE=/theirs\n", "utf-8"
    )
    found = of_file({**os.environ, "RABBITMQ_CONF_ENV_FILE": str(path)})
    assert found.items() >= {"RABBITMQ_NODE_PORT": "5673", "RABBITMQ_NODENAME": "a b"}.items()
    assert of_file({"RABBITMQ_CONF_ENV_FILE": str(tmp_path / "none")}) == {}


def test_the_file_of_the_environment_has_a_usual_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rabbitmq-env.conf"
    path.write_text("NODENAME=one@host\nSERVER_START_ARGS='-rabbit heartbeat 7'\n", "utf-8")
    monkeypatch.setattr(rabbitmq_server, "ENV_FILE", str(path))
    found = of_file(os.environ)
    assert found.items() >= {"RABBITMQ_NODENAME": "one@host"}.items()
    assert settings(found)[ERL_ARGS] == "-rabbit heartbeat 7"


@pytest.mark.parametrize(
    ("words", "options", "arguments"),
    [
        ([], [], []),
        (["-detached"], [], []),
        (["--port", "5673", "-c", "a.conf"], ["--port", "5673", "-c", "a.conf"], []),
        (["-rabbit", "consumer_timeout", "7200000"], [], ["-rabbit", "consumer_timeout", "7200000"]),
        (["+S", "1:1", "-detached", "--port", "1"], ["--port", "1"], ["+S", "1:1"]),
        (["--erlang-cookie=x", "--log-level", "debug"], ["--log-level", "debug"], ["--erlang-cookie=x"]),
        (["--hostname", "harbour", "--port=1", "-t"], ["--port=1", "-t"], ["--hostname", "harbour"]),
        (["start", "-D", "--no-management"], ["--no-management"], ["start", "-D"]),
    ],
)
def test_arguments_of_erlang_are_no_options(words: list[str], options: list[str], arguments: list[str]) -> None:
    assert divided(words) == (options, arguments)


def test_arguments_of_erlang_follow_those_of_the_environment() -> None:
    given = {
        "RABBITMQ_SERVER_ERL_ARGS": "+P 9",
        ERL_ARGS: "-rabbit heartbeat 1",
        "RABBITMQ_SERVER_START_ARGS": "-rabbit channel_max 2",
    }
    found = settings(given, ["-rabbit", "frame_max", "8192"])[ERL_ARGS]
    assert found == "+P 9 -rabbit heartbeat 1 -rabbit channel_max 2 -rabbit frame_max 8192"
    assert ERL_ARGS not in settings({ERL_ARGS: "-rabbit heartbeat 1"})


@pytest.mark.parametrize("variable", ["RABBITMQ_MNESIA_BASE", "RABBITMQ_MNESIA_DIR", "RABBITMQ_PID_FILE"])
def test_the_number_of_the_process_is_in_a_file_where_rabbitmqctl_waits_for_it(tmp_path: Path, variable: str) -> None:
    values = {
        "RABBITMQ_MNESIA_BASE": tmp_path / "mnesia",
        "RABBITMQ_MNESIA_DIR": tmp_path / "mnesia" / "one@host",
        "RABBITMQ_PID_FILE": tmp_path / "mnesia" / "one@host.pid",
    }
    write_pid(7, {"RABBITMQ_NODENAME": "one@host", variable: str(values[variable])})
    assert (tmp_path / "mnesia" / "one@host.pid").read_text("utf-8") == "7\n"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
@pytest.mark.parametrize(("word", "kept"), [("amqp_broker", True), ("another-program", False)])
def test_the_file_of_another_node_that_runs_is_kept(tmp_path: Path, word: str, kept: bool) -> None:
    file = tmp_path / "pid"
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", word]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        # Its command is known once it has started.
        assert other.stdout is not None
        other.stdout.readline()
        file.write_text(f"{other.pid}\n", "utf-8")
        write_pid(7, {"RABBITMQ_PID_FILE": str(file)})
        assert file.read_text("utf-8") == (f"{other.pid}\n" if kept else "7\n")
        file.write_text(f"{other.pid}\n", "utf-8")
        write_pid(other.pid, {"RABBITMQ_PID_FILE": str(file)})
        assert file.read_text("utf-8") == f"{other.pid}\n"
        other.communicate()
    # It has ended.
    write_pid(7, {"RABBITMQ_PID_FILE": str(file)})
    assert file.read_text("utf-8") == "7\n"


@pytest.mark.parametrize("content", ["", "no number", "0", "-1", "9" * 30, "9" * 5000])
def test_a_file_without_the_number_of_a_process_is_replaced(tmp_path: Path, content: str) -> None:
    file = tmp_path / "pid"
    file.write_text(content, "utf-8")
    write_pid(7, {"RABBITMQ_PID_FILE": str(file)})
    assert file.read_text("utf-8") == "7\n"


def test_a_file_that_cannot_be_written_does_not_stop_the_start() -> None:
    write_pid(7, {"RABBITMQ_PID_FILE": "/proc/none/pid"})


def test_the_home_of_rabbitmqs_user_has_a_cookie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq_server, "HOME", str(tmp_path))
    write_cookie({"HOME": str(tmp_path / "other")})
    assert list(tmp_path.iterdir()) == []
    write_cookie({"HOME": str(tmp_path)})
    file = tmp_path / ".erlang.cookie"
    text = file.read_text("utf-8")
    assert re.fullmatch("[A-Z]{20}", text)
    assert file.stat().st_mode & 0o777 == 0o400
    write_cookie({"HOME": str(tmp_path)})
    assert file.read_text("utf-8") == text


def test_a_detached_broker_stays_and_logs_where_rabbitmq_does(tmp_path: Path) -> None:
    port, pid_file = free_port(), tmp_path / "pid"
    variables = environment(
        RABBITMQ_NODE_PORT=str(port),
        RABBITMQ_NODENAME="one@localhost",
        RABBITMQ_LOG_BASE=str(tmp_path / "log"),
        RABBITMQ_MNESIA_BASE=str(tmp_path / "mnesia"),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(tmp_path / "enabled_plugins"),
        RABBITMQ_PID_FILE=str(pid_file),
        AMQP_BROKER_RUNTIME_DIR=str(tmp_path / "run"),
    )
    subprocess.run([sys.executable, "-c", MAIN, "-detached"], env=variables, check=True, timeout=20)
    log = tmp_path / "log" / "one@localhost.log"
    try:
        wait_until(lambda: "Server startup complete" in log.read_text("utf-8"))
        socket.create_connection(("127.0.0.1", port), 1).close()
    finally:
        os.kill(int(pid_file.read_text("utf-8")), signal.SIGTERM)
    wait_until(lambda: not list((tmp_path / "run").glob("*.sock")))


def test_a_broker_with_tls_alone_logs_the_lines_for_which_testcontainers_for_go_waits(tmp_path: Path) -> None:
    served, port = Issuer(tmp_path / "certificates").server(), free_port()
    conf = tmp_path / "rabbitmq-testcontainers.conf"
    lines = (
        *("default_user = guest", "default_pass = guest", "listeners.tcp = none", f"listeners.ssl.default = {port}"),
        *(f"ssl_options.cacertfile = {served.authority}", f"ssl_options.certfile = {served.certificate}"),
        *(f"ssl_options.keyfile = {served.key}", "ssl_options.depth = 1", "ssl_options.verify = verify_peer"),
        "ssl_options.fail_if_no_peer_cert = false",
    )
    conf.write_text("\n".join(lines), "utf-8")
    variables = environment(
        RABBITMQ_CONFIG_FILE=str(conf),
        RABBITMQ_MNESIA_BASE=str(tmp_path / "mnesia"),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(tmp_path / "enabled_plugins"),
        AMQP_BROKER_RUNTIME_DIR=str(tmp_path / "run"),
        AMQP_BROKER_LOG_CONSOLE="true",
    )
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", MAIN], env=variables, stdout=output, stderr=output)
    try:
        wait_until(lambda: "Server startup complete" in log.read_text("utf-8"))
        assert f"started TLS (SSL) listener on [::]:{port}\n" in log.read_text("utf-8")
        with served.context().wrap_socket(
            socket.create_connection(("127.0.0.1", port), 5), server_hostname="localhost"
        ):
            pass
    finally:
        process.terminate()
        process.wait(20)
