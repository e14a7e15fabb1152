"""The RabbitMQ modules of Testcontainers start the image, wait for it, run commands in it and log in.

Facts from: modules/rabbitmq of testcontainers-java, -go and -python, packages/modules/rabbitmq of testcontainers-node,
src/Testcontainers.RabbitMq of testcontainers-dotnet, src/rabbitmq of testcontainers-rs-modules-community, and
lib/container/rabbitmq_container.ex of testcontainers-elixir; and from their strategies that wait for ports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest

from compat.certificates import Issued, Issuer
from compat.waiting import wait_until
from tests.container.image import ADDRESS, Container, Image

COMPLETE = "Server startup complete"
GUEST = {"RABBITMQ_DEFAULT_USER": "guest", "RABBITMQ_DEFAULT_PASS": "guest"}

LOGIN = """
import pika
connection = pika.BlockingConnection(pika.URLParameters({url!r}))
name = connection.channel().queue_declare("", exclusive=True).method.queue
print(bool(name), connection._impl.params.heartbeat)
"""
# Python's module accepts these two errors while it waits, and no others.
OPEN = """
import errno
import pika
from compat.waiting import wait_until
def is_open():
    try: return pika.BlockingConnection(pika.URLParameters({url!r})).is_open
    except (pika.exceptions.IncompatibleProtocolError, pika.exceptions.AMQPConnectionError): return False
    # pika's loop connects to itself, and the container's loopback comes up a moment after its first process.
    except OSError as error:
        if error.errno != errno.ENETUNREACH: raise
        return False
wait_until(is_open)
"""
TLS_LOGIN = """
import pika, ssl
context = ssl.create_default_context(cafile={authority!r})
{more}
options = pika.ConnectionParameters({address!r}, 5671, ssl_options=pika.SSLOptions(context, "localhost"))
try: print(pika.BlockingConnection(options).is_open)
except pika.exceptions.AMQPConnectionError: print("refused")
"""


def by_log(container: Container, url: str) -> None:
    container.until(COMPLETE)


def by_connection(container: Container, url: str) -> None:
    container.python(OPEN.format(url=url))


def by_command(container: Container, url: str) -> None:
    wait_until(lambda: container.execute("rabbitmq-diagnostics", "check_running").returncode == 0)


class Module(NamedTuple):
    """Variables and the command of the container, how the module waits, and where its clients log in."""

    environment: Mapping[str, str]
    wait: Callable[[Container, str], None]
    # A client of Java or Node logs in as guest, as no login is in their addresses.
    url: str = f"amqp://guest:guest@{ADDRESS}:5672"
    command: tuple[str, ...] = ()
    files: Mapping[str, str] = {}


def python_variables(port: str, user: str, password: str, vhost: str) -> dict[str, str]:
    """Return what the modules of Python and Elixir always set."""
    login = {"RABBITMQ_DEFAULT_USER": user, "RABBITMQ_DEFAULT_PASS": password}
    return {"RABBITMQ_NODE_PORT": port, **login, "RABBITMQ_DEFAULT_VHOST": vhost}


GO_FILE = "/etc/rabbitmq/rabbitmq-testcontainers.conf"
GO_LOGIN = "# Injected by testcontainers\ndefault_user = guest\ndefault_pass = guest"
MODULES = {
    "Java": Module(GUEST, by_log),
    # Older versions of the module set no user.
    "Java with a password": Module({"RABBITMQ_DEFAULT_PASS": "secret"}, by_log, f"amqp://guest:secret@{ADDRESS}:5672"),
    "Go": Module({**GUEST, "RABBITMQ_CONFIG_FILE": GO_FILE}, by_log, files={GO_FILE: f"{GO_LOGIN}\n"}),
    # RabbitMQ 3.10, 4.0 and 4.3 prefer the variables, too.
    "Go with another login in its file": Module(
        {**GUEST, "RABBITMQ_CONFIG_FILE": GO_FILE},
        by_log,
        files={GO_FILE: "default_user = ann\ndefault_pass = secret\n"},
    ),
    "Node": Module(GUEST, by_log),
    ".NET": Module(
        {"RABBITMQ_DEFAULT_USER": "rabbitmq", "RABBITMQ_DEFAULT_PASS": "rabbitmq"},
        by_log,
        f"amqp://rabbitmq:rabbitmq@{ADDRESS}:5672/",
    ),
    "Python": Module(python_variables("5672", "guest", "guest", "/"), by_connection),
    "Python with its own port and login": Module(
        python_variables("5999", "ann", "secret", "shop"), by_connection, f"amqp://ann:secret@{ADDRESS}:5999/shop"
    ),
    "Rust": Module({}, by_log),
    "Elixir": Module(
        python_variables("5672", "guest", "guest", "/"),
        by_command,
        command=("sh", "-c", "chmod 400 /var/lib/rabbitmq/.erlang.cookie; rabbitmq-server"),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_module_of_a_language_starts_the_image_and_logs_in(image: Image, name: str) -> None:
    module = MODULES[name]
    container = image.container(*module.command, environment=module.environment, files=module.files)
    try:
        module.wait(container, module.url)
        assert container.python(LOGIN.format(url=module.url)).startswith("True ")
        container.until(COMPLETE)
    finally:
        container.kill()
    lines = [line for line in container.log.read_text("utf-8").splitlines() if COMPLETE in line]
    # Rust's module reads the standard output only, and older versions wait for the number of plugins.
    assert len(lines) == 1
    assert re.search(r"Server startup complete; 4 plugins started\.$", lines[0])
    assert COMPLETE not in container.errors.read_text("utf-8")


@pytest.fixture(scope="module")
def running(image: Image) -> Iterator[Container]:
    with image.container(environment=GUEST) as container:
        yield container


# The modules of Java and Go run these commands of rabbitmqadmin in the container.
DECLARED = (
    ("declare", "vhost", "name=vhost1"),
    ("declare", "vhost_limit", "vhost=vhost1", "name=max-connections", "value=1"),
    ("declare", "vhost", "name=vhost2", "tracing=true"),
    ("declare", "exchange", "name=direct-exchange", "type=direct"),
    ("--vhost=vhost1", "declare", "exchange", "name=own", "type=topic", "auto_delete=false", "durable=true"),
    ("declare", "queue", "name=queue1"),
    ("declare", "queue", "name=queue2", "auto_delete=true", "durable=false", 'arguments={"x-message-ttl":1000}'),
    ("--vhost=vhost1", "declare", "queue", "name=queue3"),
    ("declare", "binding", "source=direct-exchange", "destination=queue1"),
    (
        *("--vhost=vhost1", "declare", "binding", "source=own", "destination=queue3", "routing_key=ss7"),
        *("destination_type=queue", "arguments={}"),
    ),
    ("declare", "user", "name=user1", "password=password1", "tags="),
    ("declare", "user", "name=user2", "password=password2", "tags=administrator"),
    ("declare", "permission", "vhost=vhost1", "user=user1", "configure=.*", "write=.*", "read=.*"),
    (
        *("declare", "policy", "name=max length policy", "pattern=^dog", "priority=1", "apply-to=queues"),
        'definition={"max-length":1}',
    ),
    ("declare", "policy", "--vhost=vhost2", "name=limit", "pattern=.*", 'definition={"max-length":2}'),
    (
        *("declare", "operator_policy", "name=operator policy 1", "pattern=^queue1", "priority=1", "apply-to=queues"),
        'definition={"message-ttl":1000}',
    ),
    ("declare", "parameter", "component=federation-upstream", "name=up", 'value={"uri":"amqp://elsewhere"}'),
)
DEFINITIONS = '{"queues": [{"name": "imported", "vhost": "/", "durable": true, "arguments": {}}]}'
# Then they look at what there is.
SHOWN = {
    "rabbitmqctl list_queues name": "imported",
    "rabbitmqadmin list queues": "(?s)queue1 .*queue2 .*queue3 ",
    "rabbitmqadmin list exchanges": "(?s)direct-exchange .*own ",
    "rabbitmqadmin list bindings": "direct-exchange",
    "rabbitmqadmin list users": "(?s)user1 .*user2 ",
    "rabbitmqadmin list policies": r"vhost2 \| limit ",
    "rabbitmqadmin list operator_policies": "operator policy 1",
    "rabbitmqadmin list vhost_limits": "max-connections",
    "rabbitmqctl list_exchanges -p vhost1": r"own\s+topic",
    "rabbitmqctl list_queues name arguments": r"queue2\s.*x-message-ttl",
    "rabbitmq-plugins is_enabled rabbitmq_shovel --quiet": "rabbitmq_shovel is enabled",
    "rabbitmq-plugins is_enabled rabbitmq_random_exchange": "rabbitmq_random_exchange is enabled",
}


def test_the_commands_that_modules_run_in_the_container_succeed(running: Container) -> None:
    for words in DECLARED:
        done = running.execute("rabbitmqadmin", *words)
        assert (done.returncode, done.stderr) == (0, ""), words
    done = running.execute("rabbitmq-plugins", "enable", "rabbitmq_shovel", "rabbitmq_random_exchange")
    assert done.returncode == 0, done.stderr
    running.write("/tmp/definitions.json", DEFINITIONS)
    for command in ("rabbitmqctl import_definitions", "rabbitmqadmin import"):
        done = running.execute(*command.split(), "/tmp/definitions.json")
        assert done.returncode == 0, done.stderr
    for command, pattern in SHOWN.items():
        done = running.execute(*command.split())
        assert re.search(pattern, done.stdout), (command, done.stdout, done.stderr)


def test_a_policy_that_mirrors_queues_needs_the_image_to_be_as_rabbitmq_3(image: Image, running: Container) -> None:
    policy = (
        "declare",
        "policy",
        "name=ha-all",
        "pattern=.*",
        'definition={"ha-mode":"all","ha-sync-mode":"automatic"}',
    )
    done = running.execute("rabbitmqadmin", *policy)
    assert (done.returncode, "are not recognised policy settings" in done.stderr) == (1, True)
    with image.container(environment={**GUEST, "AMQP_BROKER_COMPAT": "3.13"}) as container:
        assert container.execute("rabbitmqadmin", *policy).returncode == 0


@pytest.mark.parametrize("port", [5672, 15672, 15692])
def test_each_way_to_look_for_a_listening_port_finds_it(running: Container, port: int) -> None:
    for command in (
        f"cat /proc/net/tcp* | awk '{{print $2}}' | grep -i :{port:04x}",
        f"grep -i ':0*{port:X}' /proc/net/tcp*",
        f"nc -vz -w 1 localhost {port}",
        f"bash -c '</dev/tcp/localhost/{port}'",
    ):
        done = running.execute("/bin/sh", "-c", command)
        assert done.returncode == 0, (command, done.stderr)


def test_each_way_to_look_for_a_listening_port_misses_a_closed_one(running: Container) -> None:
    for command in (
        "cat /proc/net/tcp* | awk '{print $2}' | grep -i :1627",
        "nc -vz -w 1 localhost 5671",
        "bash -c '</dev/tcp/localhost/5671'",
    ):
        assert running.execute("/bin/sh", "-c", command).returncode != 0, command


def test_the_paths_that_strategies_for_http_wait_for_answer(running: Container) -> None:
    script = f"""
import urllib.request
from compat.monitoring.playing import ask
assert urllib.request.urlopen("http://{ADDRESS}:15672/").status == 200
checks = ("alarms", "local-alarms", "port-listener/5672", "protocol-listener/amqp", "virtual-hosts")
for path in ("overview", "aliveness-test/%2F", *(f"health/checks/{{check}}" for check in checks)):
    assert ask("http://guest:guest@{ADDRESS}:15672", f"/api/{{path}}")
"""
    running.python(script)


@pytest.mark.parametrize(
    ("variable", "file", "text"),
    [
        ("rabbitmq-custom", "rabbitmq-custom.conf", "heartbeat = 13\n"),
        ("rabbitmq-custom.conf", "rabbitmq-custom.conf", "heartbeat = 13\n"),
        ("rabbitmq-custom.config", "rabbitmq-custom.config", "[{rabbit, [{heartbeat, 13}]}].\n"),
    ],
)
def test_a_configuration_file_of_the_module_for_java_counts(image: Image, variable: str, file: str, text: str) -> None:
    environment = {**GUEST, "RABBITMQ_CONFIG_FILE": f"/etc/rabbitmq/{variable}"}
    with image.container(environment=environment, files={f"/etc/rabbitmq/{file}": text}) as container:
        assert container.python(LOGIN.format(url=MODULES["Java"].url)) == "True 13\n"
        assert f"config file(s) : /etc/rabbitmq/{file}" in container.text()
        assert " (not found)" not in container.text()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return Issuer(tmp_path_factory.mktemp("certificates")).server()


def certificates(served: Issued) -> dict[str, str]:
    """Return the files of the modules for Java and Go, by path."""
    return {
        "/etc/rabbitmq/ca_cert.pem": served.authority.read_text("utf-8"),
        "/etc/rabbitmq/rabbitmq_cert.pem": served.certificate.read_text("utf-8"),
        "/etc/rabbitmq/rabbitmq_key.pem": served.key.read_text("utf-8"),
    }


def test_the_module_for_go_finds_the_listener_of_tls(image: Image, served: Issued) -> None:
    lines = (
        *(GO_LOGIN, "listeners.tcp = none", "listeners.ssl.default = 5671"),
        *(
            "ssl_options.cacertfile = /etc/rabbitmq/ca_cert.pem",
            "ssl_options.certfile = /etc/rabbitmq/rabbitmq_cert.pem",
        ),
        *("ssl_options.keyfile = /etc/rabbitmq/rabbitmq_key.pem", "ssl_options.depth = 1"),
        *("ssl_options.verify = verify_peer", "ssl_options.fail_if_no_peer_cert = false"),
    )
    files = {GO_FILE: "\n".join(lines) + "\n", **certificates(served)}
    with image.container(environment=MODULES["Go"].environment, files=files) as container:
        assert "started TLS (SSL) listener on [::]:5671\n" in container.text()
        script = TLS_LOGIN.format(authority=str(served.authority), address=ADDRESS, more="")
        assert container.python(script) == "True\n"
        assert container.execute("rabbitmqadmin", "list", "queues").returncode == 0


def test_the_variables_of_the_module_for_java_demand_a_certificate(image: Image, served: Issued) -> None:
    names = {"CACERTFILE": "ca_cert.pem", "CERTFILE": "rabbitmq_cert.pem", "KEYFILE": "rabbitmq_key.pem"}
    environment = {
        **{f"RABBITMQ_SSL_{name}": f"/etc/rabbitmq/{file}" for name, file in names.items()},
        "RABBITMQ_SSL_VERIFY": "verify_peer",
        "RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT": "true",
        "RABBITMQ_SSL_DEPTH": "1",
    }
    own = f"context.load_cert_chain({str(served.certificate)!r}, {str(served.key)!r})"
    with image.container(environment={**GUEST, **environment}, files=certificates(served)) as container:
        for more, answer in ((own, "True\n"), ("", "refused\n")):
            script = TLS_LOGIN.format(authority=str(served.authority), address=ADDRESS, more=more)
            assert container.python(script) == answer
