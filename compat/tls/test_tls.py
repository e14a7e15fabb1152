"""The same certificates, clients and questions to both brokers: what each says of TLS must be the same."""

from __future__ import annotations

import contextlib
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.credentials import ExternalCredentials, PlainCredentials

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ, free_port
from compat.certificates import Issuer

MECHANISMS = ("PLAIN", "AMQPLAIN", "EXTERNAL")
EVENTS = ("user.authentication.#", "connection.created")
# What an event tells of TLS, of its peer's certificate, and of who logged in.
TOLD = re.compile(r"ssl.*|peer_cert_.*|auth_mechanism|name|user|error")


def ours(folder: Path, issuer: Issuer, tls_port: int, login_from: str) -> BrokerProcess:
    served = issuer.server()
    options = ("--tls-port", str(tls_port), "--tls-verify-peer", "--tls-ca-file", str(served.authority))
    broker = OurBroker(
        folder, options=(*options, "--tls-cert-file", str(served.certificate), "--tls-key-file", str(served.key))
    )
    broker.variables = {
        "AMQP_BROKER_AUTH_MECHANISMS": " ".join(MECHANISMS),
        "AMQP_BROKER_TLS_LOGIN_FROM": login_from,
    }
    return broker


def rabbitmq(folder: Path, issuer: Issuer, tls_port: int, login_from: str) -> BrokerProcess:
    served = issuer.server()
    return RabbitMQ(
        folder,
        plugins=("rabbitmq_auth_mechanism_ssl", "rabbitmq_event_exchange"),
        settings=(
            f"listeners.ssl.default = 127.0.0.1:{tls_port}",
            f"ssl_options.cacertfile = {served.authority}",
            f"ssl_options.certfile = {served.certificate}",
            f"ssl_options.keyfile = {served.key}",
            "ssl_options.verify = verify_peer",
            "ssl_options.fail_if_no_peer_cert = false",
            f"ssl_cert_login_from = {login_from}",
            *(f"auth_mechanisms.{number} = {name}" for number, name in enumerate(MECHANISMS, 1)),
        ),
    )


def connect(tls_port: int, context: ssl.SSLContext, credentials: Any) -> pika.BlockingConnection:
    options = pika.SSLOptions(context, "localhost")
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", tls_port, ssl_options=options, credentials=credentials)
    )


def shown(headers: dict[str, Any]) -> dict[str, Any]:
    """The facts of an event that both brokers must agree upon. RabbitMQ sends some texts as lists of letters."""
    facts = {key: value for key, value in headers.items() if TOLD.fullmatch(key)}
    if isinstance(facts.get("error"), list):
        facts["error"] = "".join(map(chr, facts["error"]))
    if "pid" in headers:
        del facts["name"]  # a connection's, which has its ports
    return facts


def story(broker: BrokerProcess, tls_port: int, issuer: Issuer) -> list[tuple[str, dict[str, Any]]]:
    """What the event exchange tells while clients of all kinds come in over TLS."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as plain:
        channel = plain.channel()
        channel.queue_declare("events")
        for key in EVENTS:
            channel.queue_bind("events", "amq.rabbitmq.event", key)
        old = issuer.client("anna").context()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.set_ciphers("ECDHE-ECDSA-AES128-SHA256")
        clients = [
            (issuer.context(), PlainCredentials("guest", "guest")),
            (issuer.client("anna").context(), PlainCredentials("guest", "wrong")),
            (old, PlainCredentials("guest", "guest")),
            (issuer.context(), ExternalCredentials()),
            (issuer.client("nobody", "nobody.example.com").context(), ExternalCredentials()),
            (issuer.client("guest", "guest").context(), ExternalCredentials()),
            (issuer.client("without alternative names").context(), ExternalCredentials()),
        ]
        for context, credentials in clients:
            with contextlib.suppress(pika.exceptions.AMQPConnectionError):
                connect(tls_port, context, credentials).close()
        told, quiet_since = [], time.monotonic()
        while time.monotonic() < quiet_since + 1:
            method, properties, _ = channel.basic_get("events", auto_ack=True)
            if method is not None:
                told.append((method.routing_key, dict(sorted(shown(properties.headers).items()))))
                quiet_since = time.monotonic()
        # In RabbitMQ events of different connections may overtake each other.
        return sorted(told, key=repr)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("certificates"))


@contextlib.contextmanager
def running(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@pytest.mark.skipif(not RabbitMQ.is_installed(), reason="RabbitMQ is not installed")
@pytest.mark.parametrize("login_from", ["distinguished_name", "common_name", "subject_alternative_name"])
def test_both_brokers_tell_the_same_of_the_same_clients(tmp_path: Path, issuer: Issuer, login_from: str) -> None:
    stories = []
    for make in (rabbitmq, ours):
        tls_port = free_port()
        with running(make(tmp_path / make.__name__, issuer, tls_port, login_from)) as broker:
            stories.append(story(broker, tls_port, issuer))
    assert stories[0] == stories[1]
    success = "user.authentication.success" if login_from != "distinguished_name" else "user.authentication.failure"
    assert [key for key, facts in stories[1] if facts["auth_mechanism"] == "EXTERNAL"].count(success) >= 1
