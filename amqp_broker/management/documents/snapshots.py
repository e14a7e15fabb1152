"""Snapshots of a vhost: its definitions and messages in one JSON document that can be restored.

Messages keep their order, properties, deadlines (as the remaining time), delivery counts and stream offsets;
unacknowledged messages count as requeued. Exclusive queues and the history of x-recent-history exchanges are left
out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import (
    CONTENT,
    Address,
    MalformedProperties,
    Message,
    Properties,
    SpecialMessage,
    content_frames,
)
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.exchanges.delayed import DELAY_MS_MAX, DelayedExchange
from amqp_broker.broker.operations.resetting import resetting_vhost
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.quorum_order import LEVELS, PRIORITY_DEFAULT
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.broker.snapshot import (
    FrozenQueue,
    FrozenStream,
    FrozenVHost,
    Kept,
    frozen_streams,
    refilling,
)
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.exporting import exporting
from amqp_broker.management.documents.importing import RESERVED, Import
from amqp_broker.management.documents.values import SHORTSTR_BYTES_MAX, text_of

FORMAT: Final = 1
FRAME_MAX: Final = 131_072

Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Level = Annotated[int, Meta(ge=0, lt=LEVELS)]


class SnapshotError(ValueError):
    """A document is not a snapshot, or cannot be restored here; the text states the reason."""


class NotEmpty(SnapshotError):
    """The vhost is not empty, and clearing it was not requested."""


class SavedMessage(Struct, omit_defaults=True):
    """A message: `properties` are flags and list as on the wire. Octets are base64 in JSON."""

    exchange: str
    routing_key: str
    properties: bytes
    body: bytes
    # Remaining time in the queue, or of the delay.
    expires_in_ms: Count | None = None
    due_in_ms: Count | None = None
    # Of quorum queues (broker/snapshot.py: Kept).
    returns: Count = 0
    failures: Count = 0
    level: Level = PRIORITY_DEFAULT
    # Values outside of the content (message.py: SpecialMessage).
    expiration_ms: Count | None = None
    blind_keys: list[str] = []
    has_died: bool = False
    had_empty_table: bool = False
    carried_failures: Count = 0
    is_rerouted: bool = False


class SavedQueue(Struct, omit_defaults=True):
    """`returned` are messages that were delivered before; `turn` is for quorum queues with two levels of priority."""

    name: str
    returned: list[SavedMessage] = []
    messages: list[SavedMessage] = []
    turn: Level = 0


class SavedChunk(Struct):
    age_ms: Count
    messages: list[SavedMessage]


class SavedStream(Struct):
    name: str
    first_offset: Count
    chunks: list[SavedChunk]


class SavedExchange(Struct):
    name: str
    delayed: list[SavedMessage]


class Snapshot(Struct):
    format: int
    definitions: dict[str, Any]
    queues: list[SavedQueue]
    streams: list[SavedStream]
    exchanges: list[SavedExchange]


# Taking a snapshot


def take_snapshot(broker: Broker, vhost_name: str) -> dict[str, Any]:
    """Return a snapshot of a vhost. Raise DoesNotExist."""
    built: dict[str, Any] = msgspec.to_builtins(finished(taking(broker, vhost_name)))
    return built


def taking(broker: Broker, vhost_name: str) -> Steps[dict[str, Any]]:
    """Do `take_snapshot` in steps; the messages are structs. It has everything as it is at the first step, unless
    messages are leaving their queues or returning to them in portions.
    """
    vhost = broker.vhost(vhost_name)
    while any(queue.holds for queue in vhost.queues.values()):
        yield
    now = broker.now
    with broker.journal.frozen() as journal:
        messages = FrozenVHost(vhost, journal)
        streams = frozen_streams(vhost, journal)
        delayed = [
            (text_of(exchange.name), exchange.delayed())
            for exchange in vhost.exchanges.values()
            if isinstance(exchange, DelayedExchange)
        ]
        document = {"format": FORMAT, "definitions": (yield from exporting(broker, vhost_name))}
        document["queues"] = yield from _queues((yield from messages.queues()), now)
        document["streams"] = yield from _streams(streams, now)
        document["exchanges"] = yield from _exchanges(delayed, now)
    return document


def _message(message: Message, **more: Any) -> SavedMessage:
    if isinstance(message, SpecialMessage):
        blind_keys = [text_of(key) for key in message.blind_keys]
        more.update(expiration_ms=message.expiration_ms, blind_keys=blind_keys, has_died=message.has_died)
        more.update(carried_failures=message.failures, is_rerouted=message.is_rerouted)
        more.update(had_empty_table=message.had_empty_table)
    names = text_of(message.exchange), text_of(message.routing_key)
    return SavedMessage(*names, message.property_list, message.body, **more)


def _queues(queues: list[FrozenQueue], now: int) -> Steps[list[dict[str, Any]]]:
    rows = []
    for queue in queues:
        kept = yield from queue.kept()
        row: dict[str, Any] = {"name": text_of(queue.name)}
        for key, listed in ("returned", kept.returned), ("messages", kept.others):
            if listed:
                row[key] = yield from _saved(listed, now)
        if kept.turn:
            row["turn"] = kept.turn
        rows.append(row)
        yield
    return rows


def _saved(kept: Iterable[Kept], now: int) -> Steps[list[SavedMessage]]:
    saved = []
    for message, deadline_ms, returns, failures, level in kept:
        left_ms = None if deadline_ms is None else max(0, deadline_ms - now)
        saved.append(_message(message, expires_in_ms=left_ms, returns=returns, failures=failures, level=level))
        yield
    return saved


def _streams(streams: list[FrozenStream], now: int) -> Steps[list[dict[str, Any]]]:
    rows = []
    for stream in streams:
        chunks = []
        for chunk in stream.chunks:
            messages = []
            for message in chunk.messages:
                messages.append(_message(message))
                yield
            chunks.append({"age_ms": max(0, now - chunk.head.timestamp_ms), "messages": messages})
            yield
        rows.append({"name": text_of(stream.name), "first_offset": stream.first, "chunks": chunks})
        yield
    return rows


def _exchanges(delayed: list[tuple[str, Iterator[tuple[int, Message]]]], now: int) -> Steps[list[dict[str, Any]]]:
    rows = []
    for name, messages in delayed:
        saved = []
        for due_ms, message in messages:
            saved.append(_message(message, due_in_ms=max(0, due_ms - now)))
            yield
        rows.append({"name": name, "delayed": saved})
    return rows


# Restoring a snapshot


def restore(broker: Broker, document: Any, vhost_name: str, *, clear: bool = False) -> bool:
    """Restore a snapshot in a vhost; return whether the vhost is new.

    Raise SnapshotError; nothing is changed then, unless only the declaration of an object shows the error.
    """
    return finished(restoring(broker, document, vhost_name, clear=clear))


def restoring(broker: Broker, document: Any, vhost_name: str, *, clear: bool = False) -> Steps[bool]:
    """Do `restore` in steps. The connections to the vhost are closed, and no others are let in."""
    # It has just been parsed, which takes long enough.
    yield
    snapshot = read_snapshot(document)
    yield
    built = yield from _building(snapshot)
    vhost = broker.vhosts.get(vhost_name)
    is_new = vhost is None
    if vhost is not None and vhost.is_down:
        raise SnapshotError(f"vhost '{vhost_name}' is being deleted or restored")
    if vhost is not None and not clear:
        _check_empty(vhost)
    vhost = broker.add_vhost(vhost_name)
    try:
        with vhost.down():
            # RabbitMQ's text (rabbit_connection_tracking.erl, handle_cast: vhost_down).
            yield from broker.closing(vhost.connections, f"{vhost} is down")
            if not clear:
                # A client may have declared something meanwhile.
                _check_empty(vhost)
            yield from _replacing(vhost, snapshot, built, clear=clear and not is_new)
    except NotEmpty:
        raise
    except (DefinitionsError, SnapshotError) as error:
        text = str(error)
        if is_new and broker.vhosts.get(vhost_name) is vhost:
            yield from broker.deleting_vhost(vhost_name)
        elif vhost.is_partial:
            text += f"; vhost '{vhost_name}' has only a part of the snapshot"
        raise SnapshotError(text) from None
    return is_new


def _check_empty(vhost: VHost) -> None:
    if not is_empty(vhost):
        raise NotEmpty(f"vhost '{vhost.name}' is not empty")


def _replacing(vhost: VHost, snapshot: Snapshot, built: Iterator[Message], *, clear: bool) -> Steps[None]:
    """Declare and fill the objects of a snapshot. Raise DefinitionsError and SnapshotError."""
    broker = vhost.broker
    checked = Import(broker, snapshot.definitions, vhost.name, reads=False)
    yield from checked.reading()
    for (_, name), reason in checked.refused.items():
        raise SnapshotError(f"queue '{name}' {reason}, which is not permitted here")
    if clear:
        yield from resetting_vhost(vhost)
    work = Import(broker, snapshot.definitions, vhost.name, reads=False)
    yield from work.reading()
    # A restart says that a part is missing.
    vhost.is_partial = True
    vhost.remember()
    for _ in work.run():
        yield
    yield from _filling(vhost, snapshot, built)
    vhost.is_partial = False
    vhost.remember()


def is_empty(vhost: VHost) -> bool:
    """Return whether a vhost has only the objects of a new one."""
    own = any(name and not name.startswith(RESERVED) for name in vhost.exchanges)
    bound = any(one.is_in_force for exchange in vhost.exchanges.values() for one in exchange.bindings.values())
    # Limits that were set and cleared are a parameter without content.
    has_parameters = any(parameter.value != [] for parameter in vhost.parameters)
    return not (vhost.queues or own or bound or any(vhost.policies) or has_parameters)


def read_snapshot(document: Any) -> Snapshot:
    """Return a snapshot, checked as far as possible without declaring it. Raise SnapshotError."""
    try:
        snapshot = msgspec.convert(document, Snapshot)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"this is not a snapshot: {error}") from None
    if snapshot.format != FORMAT:
        raise SnapshotError(f"this snapshot has format {snapshot.format}; only format {FORMAT} is supported")
    filled = {
        "queues": [queue.name for queue in snapshot.queues] + [stream.name for stream in snapshot.streams],
        "exchanges": [exchange.name for exchange in snapshot.exchanges],
    }
    for kind, wanted in filled.items():
        defined = snapshot.definitions.get(kind)
        names = [one.get("name") for one in defined if isinstance(one, dict)] if isinstance(defined, list) else []
        for name in wanted:
            if name not in names:
                raise SnapshotError(f"this is not a snapshot: '{name}' is not among the {kind} of its definitions")
    return snapshot


def _building(snapshot: Snapshot) -> Steps[Iterator[Message]]:
    """Return all messages, in the order in which `_filling` takes them. Raise SnapshotError for an invalid one."""
    saved = [message for queue in snapshot.queues for message in (*queue.returned, *queue.messages)]
    saved += [message for stream in snapshot.streams for chunk in stream.chunks for message in chunk.messages]
    saved += [message for exchange in snapshot.exchanges for message in exchange.delayed]
    built = deque[Message]()
    for message in saved:
        built.append(_built(message))
        yield
    return iter(built.popleft, None)


def _built(saved: SavedMessage) -> Message:
    """Return the message. Raise SnapshotError for an invalid one."""
    if any(len(name.encode("utf-8", "replace")) > SHORTSTR_BYTES_MAX for name in (saved.exchange, saved.routing_key)):
        raise SnapshotError(f"a name of a message is longer than {SHORTSTR_BYTES_MAX} octets")
    try:
        properties = Properties.decode(saved.properties)
    except (MalformedProperties, fields.MalformedTable) as error:
        raise SnapshotError(f"the properties of a message are malformed: {error}") from None
    header = CONTENT.pack(60, 0, len(saved.body)) + saved.properties
    if len(header) > FRAME_MAX - 8:
        raise SnapshotError("the properties of a message do not fit into a frame")
    return SpecialMessage(
        Address(saved.exchange, saved.routing_key),
        content_frames(1, header, saved.body, FRAME_MAX),
        1,
        properties.delivery_mode == 2,
        expiration_ms=saved.expiration_ms,
        blind_keys=saved.blind_keys,
        has_died=saved.has_died,
        failures=saved.carried_failures,
        is_rerouted=saved.is_rerouted,
        had_empty_table=saved.had_empty_table,
    )


def _filling(vhost: VHost, snapshot: Snapshot, built: Iterator[Message]) -> Steps[None]:
    """Put the messages into the declared queues and exchanges. Raise SnapshotError if these do not fit or are gone."""
    now = vhost.broker.now

    def kept(listed: list[SavedMessage]) -> Iterator[Kept]:
        for saved in listed:
            deadline_ms = None if saved.expires_in_ms is None else now + saved.expires_in_ms
            yield Kept(next(built), deadline_ms, saved.returns, saved.failures, saved.level)

    for one in snapshot.queues:
        queue = _queue(vhost, one.name)
        if not isinstance(queue, BacklogQueue):
            raise SnapshotError(f"{queue} is a stream, but its messages are among those of queues")
        yield from refilling(queue, kept(one.returned), kept(one.messages), one.turn)
        _require(not queue.is_deleted, queue)
        yield
    for stream in snapshot.streams:
        log = _queue(vhost, stream.name)
        if not isinstance(log, StreamQueue):
            raise SnapshotError(f"{log} is not a stream, but its messages are among those of streams")
        chunks = ((max(0, now - chunk.age_ms), [next(built) for _ in chunk.messages]) for chunk in stream.chunks)
        yield from log.refilling_from(stream.first_offset, chunks)
        _require(not log.is_deleted, log)
    for delaying in snapshot.exchanges:
        exchange = vhost.exchanges.get(delaying.name)
        if not isinstance(exchange, DelayedExchange):
            raise SnapshotError(f"exchange '{delaying.name}' in {vhost} cannot hold delayed messages")
        for saved in delaying.delayed:
            exchange.keep_back(next(built), now + min(saved.due_in_ms or 0, DELAY_MS_MAX))
            yield
            _require(vhost.exchanges.get(delaying.name) is exchange, exchange)


def _queue(vhost: VHost, name: str) -> Queue:
    queue = vhost.queues.get(name)
    _require(queue is not None, f"queue '{name}' in {vhost}")
    assert queue is not None
    return queue


def _require(is_there: bool, what: object) -> None:
    if not is_there:
        raise SnapshotError(f"{what} was deleted while the snapshot was restored")
