"""RabbitMQ's events about TLS clients as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker, free_port
from compat.certificates import Issued, Issuer
from compat.oracle.comparing import fields
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ
from compat.tls.story import LOGINS_FROM, MECHANISMS, Event, story

# RabbitMQ's events lag.
LAG_S = 1.0


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    issuer, tls_port = Issuer(broker.folder / "certificates"), free_port()
    told = {}
    for login_from in LOGINS_FROM:
        # The certificates are generated here, so the settings depend on them.
        broker.settings = _settings(issuer.server(), tls_port, login_from)
        broker.restart()
        told[login_from] = story(broker.url, tls_port, issuer, LAG_S)
    yield told


def _settings(served: Issued, tls_port: int, login_from: str) -> tuple[str, ...]:
    return (
        f"listeners.ssl.default = 127.0.0.1:{tls_port}",
        f"ssl_options.cacertfile = {served.authority}",
        f"ssl_options.certfile = {served.certificate}",
        f"ssl_options.keyfile = {served.key}",
        "ssl_options.verify = verify_peer",
        "ssl_options.fail_if_no_peer_cert = false",
        f"ssl_cert_login_from = {login_from}",
        *(f"auth_mechanisms.{number} = {name}" for number, name in enumerate(MECHANISMS, 1)),
    )


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    issuer = Issuer(broker.folder / "certificates")
    yield {login_from: own_story(broker, issuer, login_from) for login_from in LOGINS_FROM}


def own_story(broker: AmqpBroker, issuer: Issuer, login_from: str) -> list[Event]:
    """Return amqp-broker's events with logins from this part of a certificate."""
    served, tls_port, options = issuer.server(), free_port(), broker.options
    broker.options += ("--tls-port", str(tls_port), "--tls-verify-peer", "--tls-ca-file", str(served.authority))
    broker.options += ("--tls-cert-file", str(served.certificate), "--tls-key-file", str(served.key))
    broker.variables = {"AMQP_BROKER_AUTH_MECHANISMS": " ".join(MECHANISMS), "AMQP_BROKER_TLS_LOGIN_FROM": login_from}
    try:
        with broker.running():
            return story(broker.url, tls_port, issuer)
    finally:
        broker.options = options


TLS = Suite("tls", _answers, _own_answers, fields, plugins=("rabbitmq_auth_mechanism_ssl", "rabbitmq_event_exchange"))
