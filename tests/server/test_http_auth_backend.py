"""Logins and permissions by a real HTTP service, with real clients."""

from __future__ import annotations

import json
import logging
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.server.server import Server
from compat.brokers import free_port
from compat.certificates import Issuer
from compat.waiting import wait_until
from tests.auth_service import AuthService
from tests.running import RunningServer


@pytest.fixture
def service() -> Iterator[AuthService]:
    with AuthService() as service:
        yield service


@pytest.fixture
def running(service: AuthService) -> Iterator[RunningServer]:
    with RunningServer(**service.settings()) as running:
        yield running


def connect(running: RunningServer, name: str = "anna", password: str = "secret") -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(name, password)
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", running.port, "/", credentials))


def channel_of(running: RunningServer) -> BlockingChannel:
    return connect(running).channel()


def test_the_service_is_asked_what_rabbitmq_asks(service: AuthService, running: RunningServer) -> None:
    channel = channel_of(running)
    channel.queue_declare("orders")
    channel.basic_publish("amq.topic", "a.b c", b"one")
    channel.queue_bind("orders", "amq.topic", "a.#")
    assert service.asked == [
        ("user", {"username": "anna", "password": "secret"}),
        ("vhost", {"username": "anna", "vhost": "/", "ip": "127.0.0.1", "tags": "administrator"}),
        ("resource", resource("queue", "orders", "configure")),
        ("resource", resource("exchange", "amq.topic", "write")),
        ("topic", topic("write", "a.b c")),
        ("resource", resource("queue", "orders", "write")),
        ("resource", resource("exchange", "amq.topic", "read")),
        ("topic", topic("read", "a.#")),
    ]
    assert service.lines[0] == "GET /auth/user?username=anna&password=secret"
    assert service.lines[4].endswith(
        "&permission=write&tags=administrator&routing_key=a.b+c&variable_map.username=anna&variable_map.vhost=%2F"
    )


def resource(kind: str, name: str, permission: str) -> dict[str, str]:
    named = {"username": "anna", "vhost": "/", "resource": kind, "name": name}
    return {**named, "permission": permission, "tags": "administrator"}


def topic(permission: str, key: str) -> dict[str, str]:
    variables = {"routing_key": key, "variable_map.username": "anna", "variable_map.vhost": "/"}
    return {**resource("topic", "amq.topic", permission), **variables}


def test_a_form_is_posted(service: AuthService) -> None:
    with RunningServer(**service.settings(auth_http_method="post")) as running:
        connect(running, "änne & co", "p=w+d %").close()
    assert service.asked[0] == ("user", {"username": "änne & co", "password": "p=w+d %"})
    assert service.lines[0].startswith("POST /auth/user?username=%C3%A4nne+%26+co&password=p%3Dw%2Bd+%25")


def test_permissions_are_asked_once_for_a_channel(service: AuthService, running: RunningServer) -> None:
    connection = connect(running)
    channel = connection.channel()
    for _ in range(3):
        channel.queue_declare("one")
        channel.basic_publish("", "one", b"hello")
    assert service.kinds().count("resource") == 2
    connection.channel().queue_declare("one")
    assert service.kinds().count("resource") == 3


def test_twelve_permissions_are_kept(service: AuthService, running: RunningServer) -> None:
    channel = channel_of(running)
    for number in (*range(13), 12, 1, 0):
        channel.queue_declare(f"q{number}")
    assert service.kinds().count("resource") == 14


def test_a_denied_login_is_refused(
    service: AuthService, running: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    service.rule = lambda kind, query: "deny"
    with caplog.at_level(logging.ERROR), pytest.raises(pika.exceptions.ProbableAuthenticationError) as refused:
        connect(running)
    assert "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN" in str(refused.value)
    assert "Denied by the backing HTTP service" in caplog.text
    assert "secret" not in caplog.text


def test_a_denied_vhost_is_refused(service: AuthService, running: RunningServer) -> None:
    service.rule = lambda kind, query: "deny" if kind == "vhost" else "allow"
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError) as refused:
        connect(running)
    assert "NOT_ALLOWED - access to vhost '/' refused for user 'anna'" in str(refused.value)


def test_a_denied_resource_closes_the_channel_and_is_asked_again(service: AuthService, running: RunningServer) -> None:
    service.rule = lambda kind, query: "deny" if query.get("name") == "secret" else "allow"
    connection = connect(running)
    for _ in range(2):
        channel = connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.queue_declare("secret")
        assert refused.value.args == (
            403,
            "ACCESS_REFUSED - configure access to queue 'secret' in vhost '/' refused for user 'anna'",
        )
    assert service.kinds().count("resource") == 2
    connection.channel().queue_declare("")


def test_a_passive_declare_needs_one_permission(service: AuthService, running: RunningServer) -> None:
    channel = channel_of(running)
    channel.queue_declare("one")
    service.rule = lambda kind, query: "deny" if query["permission"] == "read" else "allow"
    channel.queue_declare("one", passive=True)


def test_a_denied_topic_closes_the_channel(service: AuthService, running: RunningServer) -> None:
    service.rule = lambda kind, query: "deny" if query.get("routing_key") == "b" else "allow"
    channel = channel_of(running)
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", "a", b"")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        channel.basic_publish("amq.topic", "b", b"")
    assert "topic 'b' in exchange 'amq.topic' in vhost '/' refused for user 'anna'" in str(refused.value)


def test_the_same_name_may_have_other_permissions(service: AuthService, running: RunningServer) -> None:
    """The service may know more than the name, so one connection's routes are not another's."""
    first, second = channel_of(running), channel_of(running)
    first.basic_publish("", "one", b"")
    first.queue_declare("one")
    service.rule = lambda kind, query: "deny"
    second.basic_publish("", "one", b"")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        second.basic_get("one")


def test_a_waiting_client_stalls_no_other(service: AuthService, running: RunningServer) -> None:
    held = connect(running)
    channel, other = held.channel(), channel_of(running)
    other.queue_declare("one")
    service.answers.clear()
    declares = threading.Thread(target=channel.queue_declare, args=("two",))
    declares.start()
    wait_until(lambda: service.kinds().count("resource") == 2)
    for _ in range(20):
        other.queue_declare("one")
    assert declares.is_alive()
    service.answers.set()
    declares.join(10)
    assert not declares.is_alive()
    assert running.ask(lambda server: "two" in server.broker.vhosts["/"].queues)


def test_methods_stay_in_order_while_one_waits(service: AuthService, running: RunningServer) -> None:
    channel = channel_of(running)
    channel.queue_declare("one")
    service.answers.clear()
    for number in range(50):
        channel.basic_publish("", "one", b"%d" % number)
    service.answers.set()
    assert channel.queue_declare("one", passive=True).method.message_count == 50
    bodies = [channel.basic_get("one", auto_ack=True)[2] for _ in range(50)]
    assert bodies == [b"%d" % number for number in range(50)]


def test_a_client_that_leaves_while_it_waits_harms_nothing(service: AuthService, running: RunningServer) -> None:
    service.answers.clear()
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        client.recv(4096)
        start_ok = bytes.fromhex("000a000b 00000000 05") + b"PLAIN" + b"\x00\x00\x00\x04\x00a\x00b" + b"\x05en_US"
        client.sendall(b"\x01\x00\x00" + len(start_ok).to_bytes(4, "big") + start_ok + b"\xce")
        wait_until(lambda: service.kinds() == ["user"])
    service.answers.set()
    running.until(lambda server: not server.transports)
    connect(running).close()


def test_a_client_cannot_send_much_while_its_login_waits(service: AuthService, running: RunningServer) -> None:
    service.answers.clear()
    with socket.create_connection(("127.0.0.1", running.port), timeout=0.3) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        client.recv(4096)
        start_ok = bytes.fromhex("000a000b 00000000 05") + b"PLAIN" + b"\x00\x00\x00\x04\x00a\x00b" + b"\x05en_US"
        client.sendall(b"\x01\x00\x00" + len(start_ok).to_bytes(4, "big") + start_ok + b"\xce")
        wait_until(lambda: service.kinds() == ["user"])
        with pytest.raises(TimeoutError):
            client.sendall(bytes(256 * 1024 * 1024))
        pending = running.ask(lambda server: [one.reader.pending_bytes for one in server.transports])
        assert max(pending) < 1024 * 1024
        service.answers.set()


def away(caplog: pytest.LogCaptureFixture, **settings: Any) -> str:
    refused = pytest.raises(pika.exceptions.ProbableAuthenticationError)
    with RunningServer(**settings) as running, caplog.at_level(logging.ERROR), refused:
        connect(running)
    return caplog.text


def test_a_service_that_is_away_refuses_and_the_log_says_so(
    service: AuthService, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    text = away(caplog, **{**service.settings(), "auth_http_user_path": f"http://127.0.0.1:{port}/user"})
    assert (
        "rabbit_auth_backend_http failed authenticating anna: "
        f'{{failed_connect,[{{to_address,{{"127.0.0.1",{port}}}}},{{inet,[inet],econnrefused}}]}}' in text
    )


def test_a_slow_service_is_given_up(service: AuthService, caplog: pytest.LogCaptureFixture) -> None:
    service.answers.clear()
    text = away(caplog, **service.settings(auth_http_request_timeout_ms=50))
    assert "rabbit_auth_backend_http failed authenticating anna: timeout" in text


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        ("maybe\n\x1b[1m", 200, '{bad_response,"maybe??[1m"}'),
        ("allow", 403, '{403,"allow"}'),
        ("", 200, '{bad_response,""}'),
        ("allow " + "x" * 20_000, 200, "the answer is larger than 16384 bytes"),
        ("allowed", 200, '{bad_response,"allowed"}'),
    ],
)
def test_other_answers_are_errors(
    service: AuthService, caplog: pytest.LogCaptureFixture, answer: str, status: int, error: str
) -> None:
    service.rule, service.status = (lambda kind, query: answer), status
    assert error in away(caplog, **service.settings())


def test_an_error_about_a_resource_has_rabbitmqs_text(
    service: AuthService, running: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    channel = channel_of(running)
    service.status = 500
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        channel.queue_declare("one")
    text = "configure access to queue 'one' in vhost '/' refused for user 'anna'"
    assert refused.value.args[1] == (
        f'ACCESS_REFUSED - {text}, backend rabbit_auth_backend_http returned an error: {{500,"allow"}}'
    )
    assert "backend rabbit_auth_backend_http returned an error" in caplog.text


def test_the_next_backend_is_tried(service: AuthService) -> None:
    service.rule = lambda kind, query: "deny"
    with RunningServer(**service.settings("http internal")) as running:
        connect(running, "guest", "guest").channel().queue_declare("one")
        assert service.kinds() == ["user"]
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(running, "guest", "wrong")


def test_one_backend_knows_the_users_and_another_the_permissions(service: AuthService) -> None:
    service.rule = lambda kind, query: "deny" if query.get("name") == "secret" else "allow"
    with RunningServer(**service.settings("internal|http")) as running:
        channel = connect(running, "guest", "guest").channel()
        channel.queue_declare("one")
        assert service.asked[1][1]["tags"] == "administrator"
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("secret")
    with RunningServer(**service.settings("http|internal")) as running:
        connect(running, "guest", "any password").channel().queue_declare("secret")
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(running, "anna", "any password")


def test_a_capture_of_a_user_of_the_service_goes_on(service: AuthService) -> None:
    with RunningServer(**service.settings(), management=True) as running:
        url = f"http://127.0.0.1:{running.management_url.rpartition(':')[2]}/_broker/capture/%2F"
        authorization = b64encode(b"anna:secret").decode()
        with urlopen(Request(url, headers={"Authorization": f"Basic {authorization}"}), timeout=10) as answer:
            answer.readline()
            channel = channel_of(running)
            for number in range(2):
                channel.basic_publish("amq.topic", f"key{number}", b"1")
                assert f"key{number}".encode() in answer.readline()


def test_the_page_of_a_user_of_the_service_is_kept_up_to_date(service: AuthService) -> None:
    service.rule = lambda kind, query: "allow management" if kind == "user" else "allow"
    with RunningServer(**service.settings(), management=True) as running:
        url = f"http://127.0.0.1:{running.management_url.rpartition(':')[2]}/_broker/events?streams=overview"
        authorization = b64encode(b"anna:secret").decode()
        with urlopen(Request(url, headers={"Authorization": f"Basic {authorization}"}), timeout=10) as answer:
            lines = iter(answer.readline, b"")
            assert next(line for line in lines if line.startswith(b"event: ov"))
            assert next(line for line in lines if line.startswith(b"event: ov"))


def add_vhost(name: str, server: Server) -> None:
    server.broker.add_vhost(name)


def test_a_service_with_tls_is_verified(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "certificates")
    served = issuer.server()
    with AuthService(certificate=(str(served.certificate), str(served.key))) as service:
        settings = service.settings(auth_http_cacertfile=str(served.authority))
        with RunningServer(**settings) as running:
            connect(running).close()
        with RunningServer(**service.settings(auth_http_verify=False)) as running:
            connect(running).close()
        refused = pytest.raises(pika.exceptions.ProbableAuthenticationError)
        with RunningServer(**service.settings()) as running, refused:
            connect(running)


def test_a_file_that_cannot_be_read_is_named(
    service: AuthService, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    text = away(caplog, **service.settings(auth_http_cacertfile=str(tmp_path / "missing.pem")))
    assert "rabbit_auth_backend_http failed authenticating anna: FileNotFoundError" in text


def test_a_service_that_closes_its_connections_is_asked_again(service: AuthService, running: RunningServer) -> None:
    channel = channel_of(running)
    for number in range(3):
        service.close_kept()
        channel.queue_declare(f"q{number}")


def get(running: RunningServer, path: str, name: str = "anna") -> object:
    authorization = b64encode(f"{name}:secret".encode()).decode()
    url = f"http://127.0.0.1:{running.management_url.rpartition(':')[2]}{path}"
    request = Request(url, headers={"Authorization": f"Basic {authorization}"})
    with urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_http_requests_are_decided_by_the_service_as_well(service: AuthService) -> None:
    def rule(kind: str, query: dict[str, str]) -> str:
        if kind == "user":
            return "deny" if query["username"] == "berta" else "Allow management"
        return "deny" if query.get("vhost") == "closed" else "allow"

    service.rule = rule
    with RunningServer(**service.settings("http"), management=True) as running:
        for name in ("closed", "open"):
            running.ask(partial(add_vhost, name))
        assert get(running, "/api/whoami") == {"name": "anna", "tags": ["management"], "is_internal_user": False}
        vhosts = get(running, "/api/vhosts")
        assert isinstance(vhosts, list)
        assert [vhost["name"] for vhost in vhosts] == ["/", "open"]
        assert get(running, "/api/queues/open") == []
        for path, name in (("/api/queues/closed", "anna"), ("/api/whoami", "berta"), ("/api/users", "anna")):
            with pytest.raises(HTTPError) as refused:
                get(running, path, name)
            assert refused.value.code == 401
