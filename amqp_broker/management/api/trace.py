"""Tracing the messages of a vhost (broker/observe/recorder.py, broker/observe/trace.py)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from amqp_broker.broker.admin.globs import exchange_name
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


class TraceOptions(Struct, forbid_unknown_fields=True):
    """Where the trace goes, and what it selects."""

    queue: Annotated[str, Meta(description="stream queue for all events")]
    exchanges: Annotated[list[str], Meta(description="only messages published to these exchanges")] = []
    queues: Annotated[list[str], Meta(description="only messages routed to one of these queues")] = []
    one_in: Annotated[int, Meta(ge=1, description="select one of this number of messages")] = 1


@endpoints.on("GET /_broker/trace/{vhost}", tag=ADMINISTRATOR)
def trace(request: Request) -> dict[str, Any]:
    """Return the state of the firehose, and queue, number of events and selection of the trace."""
    tracing = request.vhost.tracing
    recorder = tracing.recorder
    if recorder is None:
        return {"is_on": tracing.is_on, "queue": None}
    selection = recorder.selection
    return {
        "is_on": tracing.is_on,
        "queue": text_of(recorder.queue.name),
        "events": recorder.events,
        "exchanges": [text_of(name) for name in sorted(selection.exchanges)],
        "queues": [text_of(name) for name in sorted(selection.queues)],
        "one_in": selection.one_in,
    }


@endpoints.on("PUT /_broker/trace/{vhost}", tag=ADMINISTRATOR, body=TraceOptions, statuses=(204,))
def start_trace(request: Request) -> Answer:
    """Write all events of messages to the stream `queue`."""
    vhost, options = request.vhost, request.read(TraceOptions)
    selection = Selection(frozenset(map(exchange_name, options.exchanges)), frozenset(options.queues), options.one_in)
    _check(vhost, selection)
    vhost.tracing.record(_stream(vhost, options.queue), selection)
    return NO_CONTENT


@endpoints.on("DELETE /_broker/trace/{vhost}", tag=ADMINISTRATOR)
def stop_trace(request: Request) -> Answer:
    """Stop the trace of a vhost; the firehose goes on."""
    request.vhost.tracing.stop_recording()
    return NO_CONTENT


@endpoints.on("PUT /_broker/firehose/{vhost}", tag=ADMINISTRATOR, statuses=(204,))
def start_firehose(request: Request) -> Answer:
    """Start RabbitMQ's firehose (`trace_on`)."""
    request.vhost.tracing.start()
    return NO_CONTENT


@endpoints.on("DELETE /_broker/firehose/{vhost}", tag=ADMINISTRATOR)
def stop_firehose(request: Request) -> Answer:
    """Stop RabbitMQ's firehose (`trace_off`); the trace goes on."""
    request.vhost.tracing.stop()
    return NO_CONTENT


def _stream(vhost: VHost, name: str) -> Queue:
    queue = vhost.queues.get(name)
    if queue is None:
        raise bad_request(f"there is no queue '{name}' in vhost '{vhost.name}'")
    if queue.type != "stream":
        raise bad_request(f"queue '{name}' is not a stream")
    return queue


def _check(vhost: VHost, selection: Selection) -> None:
    """Refuse names that do not exist: a typing error would select nothing."""
    for name in sorted(selection.exchanges):
        if name not in vhost.exchanges:
            raise bad_request(f"there is no exchange '{name}' in vhost '{vhost.name}'")
    for name in sorted(selection.queues):
        if name not in vhost.queues:
            raise bad_request(f"there is no queue '{name}' in vhost '{vhost.name}'")
