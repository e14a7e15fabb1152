"""The terms on which scenarios are played: login, vhost, TLS, and missing features of the broker."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.conformance.api_client import HttpApi
from amqp_broker.conformance.wire import Field, Method

# Longer than RabbitMQ's silence of 3 s after a refused login or a broken frame.
SILENCE_S = 20.0
# The user and the vhost that scenarios name, and that transcripts show.
USER, VHOST = "guest", "/"

METHOD_FEATURES: dict[Method, str] = {
    Exchange.Bind: "bindings between exchanges",
    Exchange.Unbind: "bindings between exchanges",
    Confirm.Select: "publisher confirms",
    Basic.Nack: "basic.nack",
    Tx.Select: "transactions",
}
REPLY_TO = "amq.rabbitmq.reply-to"
DIRECT_REPLY_TO = "direct reply-to"
TOO_SLOW = "the steps took longer than a time to live or a lease in this program"
NO_API = "the URL of the HTTP API is not given"


class Skipped(Exception):
    """The broker lacks a feature that the scenario needs; the text says which."""


@dataclass(frozen=True)
class Terms:
    """A user and a vhost other than `guest` and `/` replace these in all that scenarios send."""

    user: str = USER
    password: str = USER
    vhost: str = VHOST
    # The context, and the name that the certificate must have.
    tls: tuple[ssl.SSLContext, str] | None = None
    # All names of a run begin with it.
    prefix: str = ""
    # A scenario stops after this silence of the broker.
    silence_s: float = SILENCE_S
    # Features that the broker lacks, with the reason to skip their scenarios.
    lacks: Mapping[str, str] = field(default_factory=dict)
    # The HTTP API, where it is to be asked.
    api: HttpApi | None = None

    def own(self, text: str) -> str:
        """Return a text of a scenario with the user in place of guest."""
        return text.replace(USER, self.user)

    def mask(self, line: str) -> str:
        """Return a line of a transcript with guest and / in place of user and vhost."""
        if self.user != USER:
            for before in ("user '", "user_id='", "user was '"):
                line = line.replace(f"{before}{self.user}'", f"{before}{USER}'")
        if self.vhost != VHOST:
            for before, after in (
                *(("vhost '", "'"), ("vhost \\'", "\\'"), ("virtual_host='", "'")),
                # A queue as an Erlang term.
                ('{resource,<<"', '">>'),
            ):
                line = line.replace(f"{before}{self.vhost}{after}", f"{before}{VHOST}{after}")
        return line

    def check(self, method: Method, fields: Mapping[str, Any]) -> None:
        """Raise Skipped if the broker lacks a feature that a method needs."""
        if self.lacks:
            for feature in features_of(method, fields):
                if feature in self.lacks:
                    raise Skipped(self.lacks[feature])


def features_of(method: Method, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the features that a method needs, beyond those of any broker."""
    if method in METHOD_FEATURES:
        yield METHOD_FEATURES[method]
    elif method is Queue.Declare:
        kind = dict(fields.get("arguments", ())).get("x-queue-type")
        kind = kind.value if isinstance(kind, Field) else kind
        yield f"queues of type {kind}"
    elif method is Exchange.Declare:
        yield f"exchanges of type {fields.get('exchange_type')}"
    elif method is Basic.Consume and fields.get("queue") == REPLY_TO:
        yield DIRECT_REPLY_TO
