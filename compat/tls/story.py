"""Clients connect over TLS in several ways, and the event exchange reports them."""

from __future__ import annotations

import contextlib
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
from cryptography import x509
from pika.adapters.blocking_connection import BlockingChannel
from pika.credentials import ExternalCredentials, PlainCredentials

from compat.certificates import Issued, Issuer

# Parts of a certificate that identify its owner.
LOGINS_FROM = ("distinguished_name", "common_name", "subject_alternative_name")
MECHANISMS = ("PLAIN", "AMQPLAIN", "EXTERNAL")
EVENTS = ("user.authentication.#", "connection.created")
# Facts of an event about TLS, the peer's certificate and the login.
TOLD = re.compile(r"ssl.*|peer_cert_.*|auth_mechanism|name|user|error")

# Routing key and facts of an event.
Event = tuple[str, dict[str, Any]]


def story(url: str, tls_port: int, issuer: Issuer, lag_s: float = 0.0) -> list[Event]:
    """Return the events until none follows within `lag_s`; those of different connections may be reordered."""
    with pika.BlockingConnection(pika.URLParameters(url)) as plain:
        channel = plain.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for key in EVENTS:
            channel.queue_bind(queue, "amq.rabbitmq.event", key)
        old = issuer.client("anna").context()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
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
        validity = validity_of(issuer.server())
        return sorted(
            ((key, shown(headers, validity)) for key, headers in taken(channel, queue, lag_s)),
            key=repr,
        )


def taken(channel: BlockingChannel, queue: str, lag_s: float) -> Iterator[Event]:
    """Return all events that arrive."""
    quiet_since, is_empty = time.monotonic(), False
    while not is_empty or time.monotonic() < quiet_since + lag_s:
        method, properties, _ = channel.basic_get(queue, auto_ack=True)
        is_empty = method is None
        if method is not None:
            yield method.routing_key, properties.headers
            quiet_since = time.monotonic()


def connect(tls_port: int, context: ssl.SSLContext, credentials: Any) -> pika.BlockingConnection:
    options = pika.SSLOptions(context, "localhost")
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", tls_port, ssl_options=options, credentials=credentials)
    )


def validity_of(issued: Issued) -> str:
    """Return a certificate's validity in the format of events; an issuer's certificates have the same."""
    certificate = x509.load_pem_x509_certificate(Path(issued.certificate).read_bytes())
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return " - ".join(time.strftime("%Y-%m-%dT%H:%M:%SZ", moment.utctimetuple()) for moment in (begin, end))


def shown(headers: dict[str, Any], validity: str) -> dict[str, Any]:
    """Return the facts of an event that do not depend on the run; RabbitMQ sends some texts as lists of letters."""
    facts = {key: value for key, value in sorted(headers.items()) if TOLD.fullmatch(key)}
    if isinstance(facts.get("error"), list):
        facts["error"] = "".join(map(chr, facts["error"]))
    if "pid" in headers:
        del facts["name"]  # a connection's name, which has its ports
    # Certificates are generated for each run.
    if facts.get("peer_cert_serial_number"):
        facts["peer_cert_serial_number"] = "<the serial number>"
    return {key: "<the validity>" if value == validity else value for key, value in facts.items()}
