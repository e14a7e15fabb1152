from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pamqp import commands

from amqp_broker.cli.own.serve import beside_clients, explain, without_authorities
from compat.brokers import free_port
from compat.certificates import Issuer
from compat.monitoring.playing import ask
from compat.waiting import wait_until
from tests.cli.program import MODULE, SCRIPT, Serving, environment, program, serving, serving_as
from tests.client import PROTOCOL_HEADER, Client
from tests.server.addresses import has_address, needs_ipv6

SHUTDOWN = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
READY = "Server startup complete"

both_signals = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])


needs_second_address = pytest.mark.skipif(
    not has_address((socket.AF_INET, "127.0.0.2")), reason="this machine has one IPv4 address for itself only"
)


def messages(broker: Serving) -> list[str]:
    """The log's lines without their times, levels and process ids."""
    lines = broker.output.splitlines()
    pattern = re.compile(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d \[(debug|info|warning|error)\] <0\.\d+\.0> "
    )
    assert all(pattern.match(line) for line in lines), lines
    return [pattern.sub("", line) for line in lines]


# Starting


@pytest.mark.parametrize("program", [MODULE, SCRIPT], ids=["module", "script"])
def test_a_broker_serves_on_a_free_port(tmp_path: Path, program: tuple[str, ...]) -> None:
    with serving_as(program, tmp_path, "--port", "0") as broker:
        client = broker.client().open()
        assert client.declare("q").queue == "q"


def test_the_ports_file_has_a_port_for_each_kind_of_listener(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0") as broker:
        assert broker.ports.keys() == {"amqp", "management", "prometheus"}
        assert 0 < broker.port < 65536
        assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "ports.json"]


def test_all_ports_in_the_ports_file_accept_connections(tmp_path: Path) -> None:
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with serving(folder) as broker:
            # No waiting and no second try: the port accepts since before the file was there.
            broker.client().open().close()


def test_the_last_line_of_the_start_says_that_the_broker_is_ready(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        wait_until(lambda: READY in broker.output)
        for _ in range(3):
            broker.client().open().close()
        assert broker.end() == 0
        logged = messages(broker)
        assert logged[:4] == [
            " data dir       : (in memory only)",
            "Adding vhost '/'",
            "Created user 'guest'",
            "Successfully set permissions for 'guest' in virtual host '/' to '.*', '.*', '.*'",
        ]
        first, listener, watermark, management, metrics, completed, ready, *plugins = logged[4:]
        assert first == "Ready to start client connection listeners"
        assert listener == f"started TCP listener on 127.0.0.1:{broker.port}"
        sizes = r"\d+ MiB \(\d+ bytes\)"
        assert re.fullmatch(f"Memory high watermark set to {sizes} of {sizes} total", watermark)
        assert management == (
            f"Management plugin: HTTP (non-TLS) listener started on port {broker.ports['management']}"
        )
        assert metrics == f"Prometheus metrics: HTTP (non-TLS) listener started on port {broker.ports['prometheus']}"
        count = re.fullmatch(r"Server startup complete; (\d+) plugins started\.", ready)
        assert count is not None
        assert completed == f" completed with {count[1]} plugins."
        assert plugins.count(" * rabbitmq_management") == plugins.count(" * rabbitmq_prometheus") == 1
        assert sum(line.startswith(" * rabbitmq_") for line in plugins) == int(count[1])
        assert broker.output.count(READY) == 1


def test_the_log_and_the_http_api_name_the_files_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("heartbeat = 13\n", "utf-8")
    with serving(tmp_path, "--host", "127.0.0.1", "--config", str(file)) as broker:
        wait_until(lambda: READY in broker.output)
        assert messages(broker)[0] == f" config file(s) : {file}"
        [node] = ask(f"http://guest:guest@127.0.0.1:{broker.ports['management']}", "/api/nodes")
        assert (node["config_files"], node["log_files"]) == ([str(file)], ["<stdout>"])


def test_the_last_line_of_a_failed_start_is_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*program(), "serve", "--ephemeral", "--no-management", "--host", "127.0.0.1", "--port", str(port)]
        done = subprocess.run(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False
        )
    assert done.returncode == 69
    *_, logged, _, reason, _ = done.stdout.decode().splitlines()
    assert logged.endswith("Successfully set permissions for 'guest' in virtual host '/' to '.*', '.*', '.*'")
    assert reason.startswith(f"amqp-broker: port {port} of '127.0.0.1' is in use by another program.")


def test_the_ports_file_is_written_before_the_log_says_ready(tmp_path: Path) -> None:
    # A pipe without a reader blocks the broker when it writes the ports file.
    ports_file, output = tmp_path / "pipe", tmp_path / "output"
    os.mkfifo(ports_file)
    command = [*program(), "serve", "--host", "127.0.0.1", "--port", "0", "--ports-file", str(ports_file)]
    with output.open("wb") as file, subprocess.Popen(command, env=environment(), stdout=file) as process:
        wait_until(lambda: "started TCP listener" in output.read_text("utf-8"))
        assert READY not in output.read_text("utf-8")
        port = json.loads(ports_file.read_text("utf-8"))["amqp"]
        Client(port).open().close()
        wait_until(lambda: READY in output.read_text("utf-8"))
        process.kill()


def test_a_debug_log_has_lines_like_any_other(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-level", "debug") as broker:
        broker.client().open().close()
        broker.end()
        assert any(READY in message for message in messages(broker))


def test_a_log_of_errors_only_is_empty(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-level", "error") as broker:
        broker.client().open().close()
        broker.end()
        assert broker.output == ""


# Where it listens


@needs_second_address
def test_a_broker_listens_only_on_its_address(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "127.0.0.2") as broker:
        broker.client("127.0.0.2").open().close()
        # The tests beside this one may have the same port at 127.0.0.1.
        with pytest.raises(ConnectionRefusedError):
            broker.client("127.0.0.3")


@needs_ipv6
def test_two_colons_listen_on_ipv4_and_ipv6(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "::") as broker:
        for host in ("127.0.0.1", "::1"):
            broker.client(host).open().close()
        wait_until(lambda: f"started TCP listener on [::]:{broker.port}" in messages(broker))


def is_of_this_machine(family: socket.AddressFamily, host: str) -> bool:
    """A list of hosts may name ::1 where there is no IPv6."""
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def test_localhost_is_every_address_of_that_name(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        for family, *_, address in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM):
            if is_of_this_machine(family, str(address[0])):
                broker.client(str(address[0])).open().close()


# The environment


@needs_second_address
def test_every_setting_has_a_variable_of_this_broker(tmp_path: Path) -> None:
    port = free_port()
    variables = {
        "AMQP_BROKER_HOST": "127.0.0.2",
        "AMQP_BROKER_PORT": str(port),
        "AMQP_BROKER_LOG_LEVEL": "error",
        "AMQP_BROKER_DEFAULT_USER": "anna",
        "AMQP_BROKER_DEFAULT_PASS": "secret",
        "AMQP_BROKER_DEFAULT_VHOST": "test",
        "AMQP_BROKER_HEARTBEAT_S": "7",
        "AMQP_BROKER_FRAME_MAX": "10000",
        "AMQP_BROKER_CHANNEL_MAX": "5",
    }
    with serving(tmp_path, **variables) as broker:
        assert broker.port == port
        client = broker.client("127.0.0.2")
        client.send_bytes(PROTOCOL_HEADER)
        client.expect(commands.Connection.Start, channel=0)
        client.send(commands.Connection.StartOk({}, "PLAIN", "\0anna\0secret"), channel=0)
        tune = client.expect(commands.Connection.Tune, channel=0)
        assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (5, 10000, 7)
        client.send(commands.Connection.TuneOk(5, 10000, 0), channel=0)
        client.call(commands.Connection.Open("test"), channel=0)
        assert broker.output == ""


@needs_second_address
def test_the_variables_of_rabbitmq_work(tmp_path: Path) -> None:
    port = free_port()
    variables = {
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.2",
        "RABBITMQ_DEFAULT_USER": "anna",
        "RABBITMQ_DEFAULT_PASS": "secret",
        "RABBITMQ_DEFAULT_VHOST": "test",
    }
    with serving(tmp_path, **variables) as broker:
        assert broker.port == port
        broker.client("127.0.0.2").open("anna", "secret", "test").close()


def test_an_option_comes_before_the_environment(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, "--port", str(port), RABBITMQ_NODE_PORT=str(free_port())) as broker:
        assert broker.port == port


def test_a_switch_may_come_from_the_environment(tmp_path: Path) -> None:
    with serving(tmp_path, AMQP_BROKER_REMOTE_GUEST="true", AMQP_BROKER_EPHEMERAL="1") as broker:
        broker.client().open().close()


# Stopping


@both_signals
def test_a_signal_ends_a_broker_without_clients(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as broker:
        assert broker.end(number) == 0


@both_signals
def test_a_signal_ends_the_broker_and_closes_connections(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as broker:
        client = broker.client().open()
        broker.process.send_signal(number)
        close = client.expect(commands.Connection.Close, channel=0)
        assert (close.reply_code, close.reply_text) == (320, SHUTDOWN)
        client.send(commands.Connection.CloseOk(), channel=0)
        assert client.expect_end() == b""
        assert broker.process.wait(30) == 0


def test_clients_that_do_not_answer_do_not_delay_the_end(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        clients = [broker.client().open() for _ in range(5)]
        assert broker.end() == 0
        for client in clients:
            assert client.expect(commands.Connection.Close, channel=0).reply_text == SHUTDOWN


def test_unfinished_handshakes_do_not_delay_the_end(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        silent, begun, logged_in = broker.client(), broker.client(), broker.client()
        silent.send_bytes(PROTOCOL_HEADER[:3])
        begun.send_bytes(PROTOCOL_HEADER)
        begun.expect(commands.Connection.Start, channel=0)
        logged_in.log_in()
        assert broker.end() == 0
        for client in (silent, begun, logged_in):
            assert client.expect_end() == b""


def test_a_client_with_a_full_socket_does_not_delay_the_end(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        stalled, publisher = Client(broker.port, receive_bytes=16 * 1024).open(), broker.client().open()
        publisher.declare("q")
        stalled.consume("q", no_ack=True)
        for _ in range(32):
            publisher.publish("q", bytes(1_000_000))
        assert publisher.ready_count("q") > 0
        assert broker.end() == 0
        assert len(stalled.expect_end()) < 32_000_000


def test_a_second_signal_has_no_effect(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        client = broker.client().open()
        broker.process.send_signal(signal.SIGTERM)
        client.expect(commands.Connection.Close, channel=0)
        assert broker.end(signal.SIGINT) == 0


def test_a_broker_ends_without_warnings(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        clients = [broker.client().open(), broker.client()]
        assert broker.end() == 0
        assert "Traceback" not in broker.output
        assert not any("error" in line or "warning" in line for line in broker.output.splitlines())
        assert len(clients) == 2


def test_a_broker_starts_again_on_its_port_at_once(tmp_path: Path) -> None:
    port = free_port()
    clients: list[Client] = []
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with serving_as(MODULE, folder, "--port", str(port)) as broker:
            # Connections that are open when it is killed leave their traces on the port.
            clients += [broker.client().open() for _ in range(3)]
            assert broker.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.parametrize("streams", [[0], [1], [2], [0, 1, 2]])
def test_a_broker_runs_without_standard_streams(tmp_path: Path, streams: list[int]) -> None:
    closed = " ".join(f"{number}<&-" for number in streams)
    shell = ("sh", "-c", f'exec "$@" {closed}', "sh", *MODULE)
    with serving_as(shell, tmp_path) as broker:
        for _ in range(3):
            broker.client().open().close()
        assert broker.end() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_broker_whose_log_cannot_be_written_continues(tmp_path: Path) -> None:
    shell = ("sh", "-c", 'exec "$@" >/dev/full', "sh", *MODULE)
    with serving_as(shell, tmp_path) as broker:
        broker.client().open().close()
        assert broker.end() == 0
        assert broker.output == ""


def test_a_broker_accepts_as_many_clients_as_the_system_allows(tmp_path: Path) -> None:
    shell = ("sh", "-c", 'ulimit -S -n 40 && exec "$@"', "sh", *MODULE)
    with serving_as(shell, tmp_path) as broker:
        clients = [broker.client().open() for _ in range(100)]
        for client in clients:
            client.close()


# Fast start


def test_rarely_needed_modules_are_not_imported_before_the_port_opens() -> None:
    script = "import sys, amqp_broker.cli.own.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=30, check=True)
    late = {"aiohttp", "click", "msgspec", "regex", "platformdirs", "importlib.metadata", "cryptography"}
    own = {f"amqp_broker.{name}" for name in ("shovel", "server.startup_definitions", "management.documents.importing")}
    assert all(importlib.util.find_spec(name) for name in own)
    assert set(done.stdout.split()) & {*late, *own} == set()


def test_garbage_collection_continues_after_the_import_of_a_command() -> None:
    script = (
        "import gc, click; from amqp_broker.cli.own.program import Program; "
        "Program().get_command(click.Context(click.Command('x')), 'serve'); print(gc.isenabled())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=30, check=True)
    assert done.stdout == "True\n"


def test_no_garbage_is_collected_while_objects_are_restored() -> None:
    script = (
        "import gc; from amqp_broker.cli.own.serve import without_collections\n"
        "with without_collections(): before = gc.isenabled(), gc.get_freeze_count() > 0\n"
        "print(before, gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=30, check=True)
    assert done.stdout == "(False, False) True True\n"


def test_an_import_beside_clients_gives_way_sooner_and_leaves_no_work_for_collections() -> None:
    script = (
        "import gc, sys; from amqp_broker.cli.own.serve import IMPORT_SWITCH_S, beside_clients\n"
        "usual = sys.getswitchinterval()\n"
        "with beside_clients(): print(sys.getswitchinterval() == IMPORT_SWITCH_S < usual, gc.isenabled())\n"
        "print(sys.getswitchinterval() == usual, gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=30, check=True)
    assert done.stdout == "True False\nTrue True True\n"


def test_two_listeners_that_import_at_once_leave_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    before = dict(os.environ)
    began, entered = threading.Event(), list[str]()

    def second() -> None:
        began.set()
        with beside_clients():
            entered.append("second")

    other = threading.Thread(target=second)
    with beside_clients():
        other.start()
        began.wait(20)
        entered.append("first")
    other.join(20)
    assert entered == ["first", "second"]
    assert os.environ == before


def test_certificate_authorities_are_skipped_only_during_the_import_of_aiohttp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = Issuer(tmp_path).authority
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    before = dict(os.environ)
    with without_authorities():
        assert ssl.create_default_context().cert_store_stats()["x509"] == 0
    assert ssl.create_default_context().cert_store_stats()["x509"] == 1
    assert os.environ == before


# In words


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (OSError(errno.EADDRINUSE, "..."), 69, "port 5672 of 'localhost' is in use by another program."),
        (OSError(errno.EACCES, "..."), 77, "this user may not listen on port 5672 of 'localhost'."),
        (OSError(errno.EPERM, "..."), 77, "this user may not listen on port 5672 of 'localhost'."),
        (socket.gaierror(1, "Unknown"), 68, "cannot listen on 'localhost': Unknown."),
        (OSError("strange"), 68, "cannot listen on port 5672 of 'localhost': strange."),
    ],
)
def test_listening_errors_have_a_message_and_an_exit_code(error: OSError, code: int, sentence: str) -> None:
    said = explain("localhost", 5672, error)
    assert (str(said), said.exit_code) == (sentence, code)
