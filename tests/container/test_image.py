"""The image takes the place of RabbitMQ's: run without an engine, with the real entrypoint (image.py)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from compat.waiting import wait_until
from tests.container.image import ADDRESS, Container, Image

# Clients come from an address that is not loopback.
LOGIN = f"""
import pika
def connect(user="guest", password="guest", vhost="/"):
    login = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(pika.ConnectionParameters("{ADDRESS}", 5672, vhost, login))
channel = connect({{}}).channel()
"""
GUEST = LOGIN.format("")
PUBLISH = (
    GUEST
    + """
channel.confirm_delivery()
channel.queue_declare("q", durable=True)
channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
"""
)
USER_SCRIPT = "rabbitmqctl add_user ann secret\nuntil [ -e /tmp/go ]; do sleep 0.01; done\n"
GET = GUEST + 'print(channel.basic_get("q", auto_ack=True)[2].decode())'


def test_it_starts_as_rabbitmq_and_serves_guest_from_other_machines(image: Image) -> None:
    with image.container() as container:
        assert container.python(PUBLISH + 'print(channel.basic_get("q", auto_ack=True)[2])') == "b'kept'\n"
        assert container.execute("stat", "-c", "%u", "/proc/1").stdout == "999\n"
        assert container.execute("stat", "-c", "%U", "/var/lib/rabbitmq/amqp-broker").stdout == "rabbitmq\n"
        assert "started TCP listener on [::]:5672" in container.text()
        # No file is missed, none of the image's own is wrong.
        [line] = [line for line in container.text().splitlines() if "/etc/rabbitmq" in line]
        assert line.endswith(" config file(s) : /etc/rabbitmq/conf.d/10-defaults.conf")


def test_the_variables_of_rabbitmq_make_the_first_user(image: Image) -> None:
    settings = {"RABBITMQ_DEFAULT_USER": "ann", "RABBITMQ_DEFAULT_PASS": "secret", "RABBITMQ_DEFAULT_VHOST": "shop"}
    with image.container(environment=settings) as container:
        container.python(LOGIN.format('"ann", "secret", "shop"'))


def test_files_in_etc_rabbitmq_count_and_conf_d_wins(image: Image) -> None:
    files = {
        "/etc/rabbitmq/rabbitmq.conf": "default_user = ann\ndefault_pass = first\nheartbeat = 17\n",
        "/etc/rabbitmq/conf.d/20-mine.conf": "default_pass = second\n",
        "/etc/rabbitmq/advanced.config": "[{rabbit, [{channel_max, 33}]}].\n",
    }
    with image.container(files=files) as container:
        script = LOGIN.format('"ann", "second"') + "print(channel.connection._impl.params.channel_max)"
        container.python(script)
        shown = container.execute("amqp-broker", "check-config").stdout
        assert "33" in next(line for line in shown.splitlines() if "channel_max " in line)
        assert "17" in next(line for line in shown.splitlines() if "heartbeat_s" in line)


def test_a_users_file_can_take_back_that_guest_comes_from_anywhere(image: Image) -> None:
    files = {"/etc/rabbitmq/conf.d/20-mine.conf": "loopback_users.guest = true\n"}
    with image.container(files=files) as container:
        script = GUEST.rsplit("channel =", 1)[0] + "try:\n    connect()\nexcept Exception as e: print(type(e).__name__)"
        assert container.python(script) == "ProbableAuthenticationError\n"


def test_a_rabbitmq_config_of_old_is_read(image: Image) -> None:
    files = {"/etc/rabbitmq/rabbitmq.config": '[{rabbit, [{default_user, <<"old">>}, {default_pass, <<"pw">>}]}].\n'}
    with image.container(files=files) as container:
        container.python(LOGIN.format('"old", "pw"'))


def test_definitions_of_the_init_folder_are_there_when_the_port_opens(image: Image) -> None:
    definitions = {
        "vhosts": [{"name": "/"}],
        "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
        "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
        "queues": [{"name": "orders", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}],
    }
    text = json.dumps(definitions)
    passive = GUEST + 'channel.queue_declare("orders", passive=True)'
    with image.container(files={"/docker-entrypoint-init.d/a.json": text}) as container:
        container.python(passive)
    with image.container(environment={"AMQP_BROKER_DEFINITIONS": text}) as container:
        container.python(passive)


def test_the_broker_imports_the_init_folder(image: Image) -> None:
    files = {"/docker-entrypoint-init.d/a.json": "{}"}
    container = image.container("rabbitmq-server", "--check-config", files=files)
    assert container.wait() == 0
    line = next(line for line in container.text().splitlines() if line.startswith("definitions"))
    assert "/docker-entrypoint-init.d" in line


def test_enabled_plugins_without_management_has_no_http_api(image: Image) -> None:
    files = {"/etc/rabbitmq/enabled_plugins": "[rabbitmq_prometheus].\n"}
    with image.container(files=files) as container:
        assert container.execute("curl", "-s", "http://localhost:15672/").returncode == 7


@pytest.fixture(scope="module")
def running(image: Image) -> Iterator[Container]:
    with image.container() as container:
        yield container


@pytest.mark.parametrize(
    "command",
    [
        "docker-healthcheck.sh",
        "rabbitmq-diagnostics -q ping",
        "rabbitmq-diagnostics ping",
        "rabbitmq-diagnostics -q check_running",
        "rabbitmq-diagnostics -q check_port_connectivity",
        "rabbitmq-diagnostics check_port_connectivity",
        "rabbitmq-diagnostics -q check_local_alarms",
        "rabbitmq-diagnostics -q alarms",
        "rabbitmq-diagnostics -q status",
        "rabbitmq-diagnostics -q check_virtual_hosts",
        "/opt/rabbitmq/sbin/rabbitmq-diagnostics -q ping",
        "rabbitmqctl status",
        "rabbitmqctl cluster_status",
        "rabbitmqctl node_health_check",
        "rabbitmqctl ping",
        "rabbitmqctl await_startup",
        "rabbitmqctl wait --pid 1 --timeout 10",
        "nc -z localhost 5672",
        "nc -w 1 -v 127.0.0.1 15672",
        "curl -f http://localhost:15672",
        "curl -f -u guest:guest http://localhost:15672/api/overview",
        "wget -q -O - http://guest:guest@localhost:15672/api/overview",
        "bash -c </dev/tcp/127.0.0.1/5672",
    ],
)
@pytest.mark.parametrize("user", ["", "999:999"], ids=["root", "rabbitmq"])
def test_every_health_check_in_use_succeeds(running: Container, command: str, user: str) -> None:
    words = command.split(maxsplit=2) if command.startswith("bash") else command.split()
    done = running.execute(*words, user=user)
    assert done.returncode == 0, done.stdout + done.stderr


def test_health_checks_fail_without_a_broker(image: Image) -> None:
    container = image.container("sleep", "60")
    wait_until(lambda: "sleep" in container.execute("cat", "/proc/1/comm").stdout)
    assert container.execute("docker-healthcheck.sh").returncode == 1
    assert container.execute("rabbitmq-diagnostics", "-q", "ping").returncode == 69
    container.kill()


def test_the_health_check_follows_the_port(image: Image) -> None:
    files = {"/etc/rabbitmq/rabbitmq.conf": f"listeners.tcp.default = {ADDRESS}:5999\n"}
    with image.container(files=files, environment={"HOSTNAME": ADDRESS}) as container:
        done = container.execute("docker-healthcheck.sh")
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_at_once_with_exit_code_0(image: Image, number: int) -> None:
    with image.container() as container:
        code, seconds = container.stop(number)
        assert (code, seconds < 0.5) == (0, True), (code, seconds, container.text())


def test_the_volume_keeps_messages_whatever_the_host_name(image: Image) -> None:
    with image.container(volume="kept") as container:
        container.python(PUBLISH)
        container.stop()
    with image.container(volume="kept") as container:
        assert container.python(GET) == "kept\n"


def test_a_volume_of_another_user_becomes_rabbitmqs(image: Image) -> None:
    volume = image.volume("foreign")
    image.inside(["chown", "-R", "0:0", str(volume)])
    image.inside(["chmod", "700", str(volume)])
    with image.container(volume="foreign") as container:
        container.python(PUBLISH)


def test_ephemeral_keeps_no_data_in_the_volume(image: Image) -> None:
    # RabbitMQ's image has a cookie and a PID file there, for scripts.
    with image.container(environment={"AMQP_BROKER_EPHEMERAL": "true"}) as container:
        container.python(PUBLISH)
        kept = container.execute("find", "/var/lib/rabbitmq", "-mindepth", "1", "-type", "f").stdout.split()
    assert [file for file in kept if not file.endswith((".erlang.cookie", ".pid"))] == []


def test_any_user_will_do(image: Image) -> None:
    with image.container(user="12345") as container:
        container.python(PUBLISH)
        assert container.execute("stat", "-c", "%u", "/proc/1").stdout == "12345\n"
        assert container.execute("rabbitmq-diagnostics", "-q", "ping", user="0").returncode == 0
        assert container.stop()[0] == 0


def test_the_file_system_may_be_read_only(image: Image) -> None:
    with image.container(is_read_only=True) as container:
        assert container.execute("touch", "/etc/x").returncode == 1
        container.python(PUBLISH)
        assert container.execute("rabbitmq-diagnostics", "-q", "ping").returncode == 0


def test_a_folder_for_the_control_socket_that_cannot_be_is_a_sentence(image: Image) -> None:
    container = image.container(environment={"AMQP_BROKER_RUNTIME_DIR": "/proc/x"})
    assert container.wait() == 73
    assert "give the container --tmpfs /tmp" in container.text()


def test_an_invalid_line_of_a_file_is_a_warning_or_a_refusal(image: Image) -> None:
    files = {"/etc/rabbitmq/rabbitmq.conf": "heartbeat = often\n"}
    with image.container(files=files) as container:
        assert "[warning] <0.1.0> /etc/rabbitmq/rabbitmq.conf:1" in container.text()
    container = image.container(files=files, environment={"AMQP_BROKER_STRICT_CONFIG": "true"})
    assert container.wait() == 78


def test_the_entrypoint_runs_other_programs(image: Image) -> None:
    for command, text in (
        (("rabbitmqctl", "version"), "4.2"),
        (("rabbitmq-diagnostics", "--help"), "Usage"),
        (("bash", "-c", "id -u"), "0"),
        (("rabbitmqctl", "hash_password", "x"), ""),
        (("--help",), "Run the broker"),
        (("sh", "-c", "command -v rabbitmqctl"), "/opt/rabbitmq/sbin/rabbitmqctl"),
    ):
        container = image.container(*command)
        assert container.wait() == 0, container.text()
        assert text in container.text()


def test_an_image_made_from_it_may_enable_plugins(image: Image) -> None:
    names = ("rabbitmq_management", "rabbitmq_delayed_message_exchange", "rabbitmq_shovel", "rabbitmq_mqtt")
    before = image.run("cat", "/etc/rabbitmq/enabled_plugins")
    image.run("rabbitmq-plugins", "enable", "--offline", *names)
    enabled = image.run("cat", "/etc/rabbitmq/enabled_plugins")
    assert all(name in enabled for name in names)
    with image.container() as container:
        assert container.execute("curl", "-s", "http://localhost:15672/").returncode == 0
    (image.seen(image.root) / "etc/rabbitmq/enabled_plugins").write_text(before, "utf-8")


def test_the_log_says_that_plugins_for_erlang_have_no_effect(image: Image) -> None:
    with image.container(files={"/opt/rabbitmq/plugins/rabbitmq_delayed_message_exchange-3.13.0.ez": ""}) as container:
        assert "not loaded: rabbitmq_delayed_message_exchange-3.13.0.ez" in container.text()


def test_scripts_of_the_init_folder_run_before_it_is_healthy(image: Image) -> None:
    files = {
        "/docker-entrypoint-init.d/1-user.sh": USER_SCRIPT,
        "/docker-entrypoint-init.d/2-vhost.sh": "#!/bin/sh\nrabbitmqctl add_vhost shop && rabbitmqctl list_users -q\n",
    }
    with image.container(files=files) as container:
        container.until("1-user.sh")
        assert container.execute("docker-healthcheck.sh").returncode == 1
        container.execute("touch", "/tmp/go")
        wait_until(lambda: container.execute("docker-healthcheck.sh").returncode == 0)
        assert "shop" in container.execute("rabbitmqctl", "list_vhosts", "-q").stdout
        assert "ann" in container.text().split("2-vhost.sh")[1]
        code, seconds = container.stop()
        assert (code, seconds < 0.5) == (0, True), (code, seconds, container.text())


def test_a_script_that_is_interrupted_does_not_hold_up_the_stop(image: Image) -> None:
    with image.container(files={"/docker-entrypoint-init.d/1.sh": "sleep 60\n"}) as container:
        container.until("running")
        code, seconds = container.stop()
        assert (code, seconds < 0.5) == (0, True), (code, seconds, container.text())


def test_a_script_that_fails_stops_the_container(image: Image) -> None:
    container = image.container(files={"/docker-entrypoint-init.d/1.sh": "exit 5\n"})
    assert container.wait() == 1
    assert "1.sh failed with exit code 5" in container.text()


def test_it_is_healthy_as_soon_as_it_serves(image: Image) -> None:
    with image.container() as container:
        assert container.execute("docker-healthcheck.sh").returncode == 0
