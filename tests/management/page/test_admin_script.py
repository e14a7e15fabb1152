"""rabbitmqadmin as scripts use it: downloaded from a running broker, and run in an empty folder."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.management.page.admin_script import script
from compat.certificates import Issued, Issuer
from tests.client import Client
from tests.running import RunningServer

Admin = Callable[..., str]
PYTHONS = [f"python3.{minor}" for minor in range(8, 15)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return Issuer(tmp_path_factory.mktemp("certificates")).server()


@pytest.fixture(scope="module")
def ports(served: Issued) -> Iterator[dict[str, int]]:
    files: dict[str, Any] = {
        "management_tls_cert_file": str(served.certificate),
        "management_tls_key_file": str(served.key),
    }
    with RunningServer(management=True, **files) as running:
        yield running.server.ports


@pytest.fixture(scope="module")
def port(ports: dict[str, int]) -> int:
    return ports["management"]


@pytest.fixture
def file(port: int, tmp_path: Path) -> Path:
    urllib.request.urlretrieve(f"http://127.0.0.1:{port}/cli/rabbitmqadmin", tmp_path / "rabbitmqadmin")
    return tmp_path / "rabbitmqadmin"


def started(python: str, file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-I", file.name, *words]
    return subprocess.run(
        command, cwd=file.parent, env={"HOME": str(file.parent)}, capture_output=True, encoding="utf-8"
    )


def run(python: str, file: Path, *words: str) -> str:
    done = started(python, file, *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.fixture
def admin(file: Path, port: int) -> Admin:
    def call(*words: str) -> str:
        return run(sys.executable, file, "-H", "127.0.0.1", "-P", str(port), "-u", "guest", "-p", "guest", *words)

    return call


def test_the_file_declares_lists_publishes_gets_purges_and_deletes(admin: Admin) -> None:
    assert admin("declare", "queue", "name=q", "durable=true", 'arguments={"x-max-length": 9}') == "queue declared\n"
    assert admin("declare", "exchange", "name=x", "type=topic") == "exchange declared\n"
    assert admin("declare", "binding", "source=x", "destination=q", "routing_key=a.#") == "binding declared\n"
    assert admin("publish", "exchange=x", "routing_key=a.b", "payload=hello") == "Message published\n"
    assert admin("-f", "tsv", "-q", "list", "queues", "name", "durable") == "q\tTrue\n"
    got = json.loads(admin("-f", "raw_json", "get", "queue=q", "ackmode=ack_requeue_true"))
    assert [message["payload"] for message in got] == ["hello"]
    assert admin("purge", "queue", "name=q") == "queue purged\n"
    assert admin("delete", "queue", "name=q") == "queue deleted\n"
    assert admin("delete", "exchange", "name=x") == "exchange deleted\n"


def test_the_file_declares_vhosts_users_permissions_and_policies(admin: Admin) -> None:
    admin("declare", "vhost", "name=shop")
    admin("declare", "user", "name=bob", "password=secret", "tags=monitoring")
    admin("declare", "permission", "vhost=shop", "user=bob", "configure=.*", "write=.*", "read=.*")
    admin("-V", "shop", "declare", "policy", "name=p", "pattern=.*", 'definition={"max-length": 3}', "apply-to=queues")
    assert admin("-f", "bash", "list", "policies") == "p\n"
    assert "bob\tshop" in admin("-f", "tsv", "-q", "list", "permissions", "user", "vhost").splitlines()
    admin("delete", "user", "name=bob")
    admin("delete", "vhost", "name=shop")


def test_the_file_declares_what_testcontainers_for_go_declares(admin: Admin) -> None:
    admin("declare", "vhost", "name=traced", "tracing=true")
    admin("declare", "vhost_limit", "vhost=traced", "name=max-connections", "value=1")
    admin("--vhost=traced", "declare", "exchange", "name=x", "type=topic", "durable=true", 'arguments={"a":1}')
    admin("--vhost=traced", "declare", "queue", "name=q", "auto_delete=true", 'arguments={"x-message-ttl":1000}')
    admin("--vhost=traced", "declare", "binding", "source=x", "destination=q", "destination_type=queue")
    admin(
        *("declare", "operator_policy", "name=an operator policy", "pattern=^q", "priority=1", "apply-to=queues"),
        'definition={"message-ttl":1000}',
    )
    assert "an operator policy" in admin("list", "operator_policies")
    assert "x" in admin("-f", "bash", "list", "exchanges", "--vhost=traced").split()
    assert "True" in admin("-f", "tsv", "-q", "list", "vhosts", "name", "tracing").partition("traced\t")[2]
    assert "max-connections" in admin("-f", "raw_json", "list", "vhost_limits")
    admin("delete", "vhost", "name=traced")
    admin("delete", "operator_policy", "name=an operator policy")


def test_the_file_exports_and_imports_definitions(admin: Admin, file: Path) -> None:
    admin("declare", "queue", "name=kept")
    assert admin("export", "all.json") == 'Exported definitions for 127.0.0.1 to "all.json"\n'
    assert [queue["name"] for queue in json.loads((file.parent / "all.json").read_text("utf-8"))["queues"]] == ["kept"]
    admin("delete", "queue", "name=kept")
    assert admin("import", "all.json").startswith('Uploaded definitions from "all.json"')
    assert admin("-f", "bash", "list", "queues") == "kept\n"
    admin("delete", "queue", "name=kept")


def test_the_file_closes_a_connection(admin: Admin, ports: dict[str, int]) -> None:
    client = Client(ports["amqp"]).open()
    [name] = admin("-f", "tsv", "-q", "list", "connections", "name").splitlines()
    assert admin("close", "connection", f"name={name}") == "connection closed\n"
    closed = client.expect(commands.Connection.Close, 0)
    assert (closed.reply_code, closed.reply_text) == (320, "CONNECTION_FORCED - Closed via management plugin")


def test_the_file_speaks_tls_and_checks_the_certificate(file: Path, ports: dict[str, int], served: Issued) -> None:
    at = ("-H", "localhost", "-P", str(ports["management-tls"]), "-f", "bash", "--ssl")
    assert "/" in run(sys.executable, file, *at, "--ssl-ca-cert-file", str(served.authority), "list", "vhosts").split()
    assert "/" in run(sys.executable, file, *at, "--ssl-insecure", "list", "vhosts").split()
    done = started(sys.executable, file, *at, "list", "vhosts")
    assert done.returncode == 1
    assert "certificate verify failed" in done.stderr


def test_a_section_of_a_configuration_file_has_the_address(file: Path, port: int) -> None:
    (file.parent / "conf").write_text(f"[here]\nhostname = 127.0.0.1\nport = {port}\n", "utf-8")
    assert "/" in run(sys.executable, file, "-c", "conf", "-N", "here", "-f", "bash", "list", "vhosts").split()


@pytest.mark.parametrize("words", [["help"], ["help", "subcommands"], ["--help"], ["--version"], ["--bash-completion"]])
def test_the_file_explains_itself(admin: Admin, words: list[str]) -> None:
    assert "rabbitmqadmin" in admin(*words)


def test_the_file_shows_the_overview(admin: Admin) -> None:
    assert "rabbitmq_version" in admin("show", "overview")


@pytest.mark.parametrize("python", PYTHONS)
def test_the_file_runs_with_every_python_from_3_8_on(python: str, file: Path, port: int) -> None:
    found = shutil.which(python)
    if not found or subprocess.run([found, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"no {python}")
    at = ("--host", "127.0.0.1", "--port", str(port))
    for style in ("table", "tsv", "kvp", "long", "bash", "raw_json", "pretty_json"):
        assert "/" in run(found, file, *at, "-f", style, "list", "vhosts", "name")
    run(found, file, "-U", f"http://guest:guest@127.0.0.1:{port}/", "declare", "queue", "name=old", "queue_type=quorum")
    assert run(found, file, *at, "delete", "queue", "name=old") == "queue deleted\n"


def test_the_file_has_the_syntax_of_python_3_8() -> None:
    calls = [node.value for node in ast.parse(script(), feature_version=(3, 8)).body if isinstance(node, ast.Expr)]
    sources = [ast.literal_eval(call.args[1]) for call in calls if isinstance(call, ast.Call)]
    for source in sources:
        ast.parse(source, feature_version=(3, 8))
    assert len(sources) > 5
