"""Passwords and tokens are neither in the log nor in errors, nor in the list of processes."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from compat.brokers import AmqpBroker
from tests.cli.program import run
from tests.client import PROTOCOL_HEADER, Client

pytestmark = pytest.mark.verify

SECRET = "Zx9secretQ7"
CONFIGURATION = f"""
default_user = admin
default_pass = {SECRET}default
anonymous_login_pass = {SECRET}anonymous
log.console.level = debug
"""
URI = f"amqp://admin:{SECRET}uri@127.0.0.1:1"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    """Provide a broker that logs at the level debug; after all tests, no password may be in its log."""
    folder = tmp_path_factory.mktemp("broker")
    (folder / "rabbitmq.conf").write_text(CONFIGURATION, "utf-8")
    broker = AmqpBroker(folder, options=("--config", str(folder / "rabbitmq.conf"), "--log-level", "debug"))
    with broker.running():
        yield broker
        broker.stop()
    log = broker.log_path.read_text("utf-8")
    assert "Server startup complete" in log
    assert [line for line in log.splitlines() if SECRET in line] == []


def ask(broker: AmqpBroker, method: str, path: str, body: Any = None, login: str = "") -> str:
    """Return status, headers and body of an answer; a body that is a text is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", broker.management_port, timeout=20)
    login = login or "Basic " + b64encode(f"admin:{SECRET}default".encode()).decode()
    octets = body if isinstance(body, str) else json.dumps(body)
    headers = {"Authorization": login, "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else octets, headers)
    answer = connection.getresponse()
    text = f"{answer.status} {answer.headers} {answer.read().decode()}"
    connection.close()
    return text


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", f"\0admin\0{SECRET}wrong"),
        ("PLAIN", f"admin{SECRET}"),
        ("PLAIN", f"\0\0{SECRET}"),
        ("AMQPLAIN", f"\x05LOGINS\0\0\0\x05admin\x08PASSWORDS\0\0\0\x0b{SECRET}"),
        ("AMQPLAIN", SECRET),
        ("RABBIT-CR-DEMO", SECRET),
        ("ANONYMOUS", SECRET),
    ],
)
def test_a_failed_login_shows_no_password(broker: AmqpBroker, mechanism: str, response: str) -> None:
    with Client(broker.port) as client:
        client.send_bytes(PROTOCOL_HEADER)
        client.expect(commands.Connection.Start, channel=0)
        client.send(commands.Connection.StartOk({}, mechanism, response), channel=0)
        assert SECRET.encode() not in client.expect_end()


@pytest.mark.parametrize(
    "login",
    [
        "Basic " + b64encode(f"admin:{SECRET}wrong".encode()).decode(),
        "Basic " + b64encode(f"admin{SECRET}".encode()).decode(),
        f"Basic {SECRET}",
        f"Bearer {SECRET}",
        f"{SECRET}",
    ],
)
def test_a_failed_login_over_http_shows_no_password(broker: AmqpBroker, login: str) -> None:
    assert SECRET not in ask(broker, "GET", "/api/whoami", login=login)
    assert SECRET not in ask(broker, "GET", "/api/whoami?password=" + SECRET, login=login)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/users/u", {"password": [SECRET], "tags": ""}),
        ("PUT", "/api/users/u", {"password": SECRET, "password_hash": SECRET, "tags": ""}),
        ("PUT", "/api/users/u", {"password": SECRET, "tags": {"a": 1}}),
        ("PUT", "/api/users/u", f'{{"password": "{SECRET}", "tags": '),
        ("PUT", "/api/users/u", f'{{"password": {SECRET}, "tags": ""}}'),
        ("PUT", "/api/users/u", {"password": SECRET, "tags": ""}),
        ("POST", "/api/definitions", {"users": [{"name": "u", "password": SECRET, "tags": 3}]}),
        ("POST", "/api/definitions", {"users": [{"name": "u", "password_hash": SECRET, "hashing_algorithm": "x"}]}),
        (
            "PUT",
            "/api/parameters/shovel/%2F/s",
            {"value": {"src-uri": URI + "/%zz?password=" + SECRET, "src-queue": "q"}},
        ),
        ("PUT", "/api/parameters/shovel/%2F/s", {"value": {"src-uri": f"amqpx://u:{SECRET}@h", "dest-uri": URI}}),
        ("POST", "/_broker/authenticate", {"user": "admin", "password": SECRET}),
        ("POST", "/api/auth/hash_password", {"password": [SECRET]}),
    ],
)
def test_a_refused_request_shows_no_password(broker: AmqpBroker, method: str, path: str, body: Any) -> None:
    assert SECRET not in ask(broker, method, path, body)


def test_a_shovel_that_cannot_connect_shows_no_password(broker: AmqpBroker) -> None:
    value = {"src-uri": URI, "src-queue": "q", "dest-uri": URI, "dest-queue": "r", "reconnect-delay": 1}
    assert ask(broker, "PUT", "/api/parameters/shovel/%2F/failing", {"value": value}).startswith("201")
    assert SECRET not in ask(broker, "GET", "/api/shovels")
    assert SECRET not in broker.run("ctl", "shovel_status").stdout


def test_a_new_secret_of_a_connection_is_shown_nowhere(broker: AmqpBroker) -> None:
    with Client(broker.port).open("admin", SECRET + "default") as client:
        client.call(commands.Connection.UpdateSecret(SECRET, SECRET + "reason"), channel=0)
        assert SECRET not in ask(broker, "GET", "/api/connections")


@pytest.mark.parametrize("words", [("environment",), ("status",), ("report",), ("list_users",)])
def test_no_report_shows_the_settings_passwords(broker: AmqpBroker, words: tuple[str, ...]) -> None:
    done = broker.run("ctl", *words)
    assert done.returncode == 0
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("clock", "show", "--url", f"http://admin:{SECRET}@127.0.0.1:1"),
        ("clock", "show", "--url", f"nonsense://admin:{SECRET}@127.0.0.1"),
        ("clock", "show", "--url", f"http://admin:{SECRET}@[::1"),
        ("compare", "--upstream", f"amqp://admin:{SECRET}@127.0.0.1:1"),
        ("compare", "--upstream", f"nonsense://admin:{SECRET}@127.0.0.1:1"),
        ("replay", "missing.jsonl", "--uri", f"amqp://admin:{SECRET}@127.0.0.1:1"),
        ("admin", "-U", f"http://admin:{SECRET}@127.0.0.1:1", "list", "queues"),
        ("admin", "-U", f"nonsense://admin:{SECRET}@127.0.0.1:x", "list", "queues"),
        ("admin", "--port", "1", "-p", SECRET, "list", "queues"),
    ],
)
def test_an_error_of_a_command_shows_no_password(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode != 0
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("line", [f"default_pass = {SECRET}\nbogus", f"ssl_options.password = {SECRET}\nx = y"])
def test_an_error_in_the_configuration_shows_no_password(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rabbitmq.conf"
    path.write_text(line, "utf-8")
    done = run("check-config", str(path))
    assert SECRET not in done.stdout + done.stderr


def test_the_list_of_processes_has_no_password(broker: AmqpBroker) -> None:
    assert SECRET.encode() not in Path(f"/proc/{broker.pid}/cmdline").read_bytes()
    assert SECRET.encode() not in Path(f"/proc/{broker.pid}/comm").read_bytes()
