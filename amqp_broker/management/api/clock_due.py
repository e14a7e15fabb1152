"""The events that an advance of the broker's clock will bring."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from msgspec import Meta, Struct

from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.lab.durations import duration_ms
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.scheduling.timers import LATEST_MS
from amqp_broker.management.attention.finding import counted
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.auth import MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Count, one_of

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_connection import Connection, ConsumerTimeout
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue

endpoints = Endpoints()

ROWS_DEFAULT: Final = 20
ROWS_MAX: Final = 200

MESSAGE_EXPIRES: Final = "message_expires"
DELAYED_MESSAGE: Final = "delayed_message"
RETRY: Final = "retry"
QUEUE_EXPIRES: Final = "queue_expires"
RETENTION: Final = "retention"
CONSUMER_CANCELLED: Final = "consumer_cancelled"
CHANNEL_CLOSED: Final = "channel_closed"
KINDS: Final = (
    MESSAGE_EXPIRES,
    DELAYED_MESSAGE,
    RETRY,
    QUEUE_EXPIRES,
    RETENTION,
    CONSUMER_CANCELLED,
    CHANNEL_CLOSED,
)


class Due(NamedTuple):
    """An event at a time of the clock (ms since the epoch); `name` is that of a queue, an exchange or a connection."""

    at_ms: int
    kind: str
    name: str
    vhost: str
    sentence: str


class DueQuery(Struct, forbid_unknown_fields=True):
    """The number of events to list, their kind, and the duration within which they happen, such as 30m."""

    limit: Count = ROWS_DEFAULT
    kind: Annotated[str, one_of(*KINDS)] | None = None
    within: Annotated[str, Meta(description="a string")] | None = None


class Coming:
    """The first events of a kind (None: of all) until a time (ms since the epoch), and their number."""

    def __init__(self, until_ms: int, kind: str | None, rows_max: int) -> None:
        self._until_ms = until_ms
        self._kind = kind
        self._rows_max = rows_max
        self.total = 0
        # The last of them first: (-time, -number, event).
        self._first: list[tuple[int, int, Due]] = []

    def add(self, event: Due) -> None:
        """Count an event, and keep it if it is one of the first."""
        if event.at_ms > self._until_ms or self._kind not in (None, event.kind):
            return
        self.total += 1
        heapq.heappush(self._first, (-event.at_ms, -self.total, event))
        if len(self._first) > self._rows_max:
            heapq.heappop(self._first)

    def first(self) -> list[Due]:
        """Return the first events in the order of their times."""
        return [event for _, _, event in sorted(self._first, reverse=True)]


@endpoints.on("GET /_broker/clock/due", tag=MONITORING, query=DueQuery)
def due(request: Request) -> Steps[dict[str, Any]]:
    """List the events that the [clock](clock.md#coming-events) brings next, the first one first, and count them.

    There is one event for each queue whose messages expire, are retried or are too old, for each unused queue that
    expires, for each exchange with delayed messages, and for each channel and consumer with a consumer timeout.
    """
    query, broker = request.read_query(DueQuery), request.broker
    now_ms = broker.now
    until_ms = LATEST_MS if query.within is None else min(now_ms + _duration_ms(query.within), LATEST_MS)
    coming = Coming(until_ms, query.kind, min(query.limit, ROWS_MAX))
    for vhost in list(broker.vhosts.values()):
        for exchange in list(vhost.exchanges.values()):
            _add_delayed(exchange, vhost.name, coming)
            yield
        for queue in list(vhost.queues.values()):
            # It may have been deleted since the list was made.
            if not queue.is_deleted:
                _add_those_of_queue(queue, coming)
            yield
        for connection in list(vhost.connections):
            for timeout in (yield from connection.next_timeouts()):
                _add_timeout(timeout, connection, coming)
            yield
    events = [
        {**event._asdict(), "name": text_of(event.name), "sentence": text_of(event.sentence)}
        for event in coming.first()
    ]
    return {"now_ms": now_ms, "total": coming.total, "events": events}


def _duration_ms(given: str) -> int:
    try:
        return duration_ms(given)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _add_delayed(exchange: Exchange, vhost: str, coming: Coming) -> None:
    if isinstance(exchange, DelayedExchange) and exchange.next_due_ms is not None:
        sentence = f"The first of {counted(exchange.messages_delayed, 'message')} of {exchange} is routed."
        coming.add(Due(exchange.next_due_ms, DELAYED_MESSAGE, exchange.name, vhost, sentence))


def _add_those_of_queue(queue: Queue, coming: Coming) -> None:
    def add(at_ms: int, kind: str, sentence: str) -> None:
        coming.add(Due(at_ms, kind, queue.name, queue.vhost.name, sentence))

    # While a message is not settled, a quorum queue is in use.
    if queue.unused.due_ms is not None and not (isinstance(queue, QuorumQueue) and queue.unacked_count):
        sentence = f"The unused {queue} is deleted, with {counted(queue.message_count, 'message')}."
        add(queue.unused.due_ms, QUEUE_EXPIRES, sentence)
    if isinstance(queue, BacklogQueue) and queue.deadlines:
        deadlines = [queue.deadlines[place] for place in queue.backlog.expiring_next() if place in queue.deadlines]
        if deadlines:
            add(min(deadlines), MESSAGE_EXPIRES, f"A message of {queue} expires.")
    if isinstance(queue, QuorumQueue) and queue.retries.next_ms is not None:
        add(queue.retries.next_ms, RETRY, f"A message of {queue} is ready again.")
    if isinstance(queue, StreamQueue) and (at_ms := queue.next_retention_ms) is not None:
        add(at_ms, RETENTION, f"The {queue} drops its oldest messages.")


def _add_timeout(timeout: ConsumerTimeout, connection: Connection, coming: Coming) -> None:
    place = f"{timeout.channel} of {connection.name}"
    reason = f"a message of {timeout.queue} is not settled in time."
    if timeout.consumer_tag is None:
        sentence, kind = f"Channel {place} is closed: {reason}", CHANNEL_CLOSED
    else:
        sentence, kind = (
            f"Consumer '{timeout.consumer_tag}' of channel {place} is cancelled: {reason}",
            CONSUMER_CANCELLED,
        )
    coming.add(Due(timeout.at_ms, kind, connection.name, timeout.queue.vhost.name, sentence))
