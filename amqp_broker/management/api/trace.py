"""Tracing the messages of a vhost (broker/observe/trace.py)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from amqp_broker.management.http.answers import NO_CONTENT, Answer
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


class TraceOptions(Struct, forbid_unknown_fields=True):
    """The kind of the trace."""

    extended: Annotated[bool, Meta(description="true or false")] = False


@endpoints.on("GET /_broker/trace/{vhost}", tag=ADMINISTRATOR)
def trace(request: Request) -> dict[str, Any]:
    """Return whether a vhost is traced, and whether its trace is extended."""
    vhost = request.vhost
    return {"is_on": vhost.tracing.is_on, "extended": vhost.tracing.is_extended}


@endpoints.on("PUT /_broker/trace/{vhost}", tag=ADMINISTRATOR, body=TraceOptions, statuses=(204,))
def start_trace(request: Request) -> Answer:
    """Start RabbitMQ's firehose, or with `{"extended": true}` a trace with more events."""
    vhost = request.vhost
    vhost.tracing.start(request.read(TraceOptions).extended)
    return NO_CONTENT


@endpoints.on("DELETE /_broker/trace/{vhost}", tag=ADMINISTRATOR)
def stop_trace(request: Request) -> Answer:
    """Stop the trace of a vhost."""
    request.vhost.tracing.stop()
    return NO_CONTENT
