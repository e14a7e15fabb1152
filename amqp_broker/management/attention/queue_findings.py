"""Findings about queues that grow, that their consumers hold up, or that lose messages.

A queue is compared with the samples of its charts (management/node/rates.py), so nothing is counted for this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.counting.incident import RECENT_MS
from amqp_broker.broker.queues.dead_letter_reasons import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED
from amqp_broker.management.attention.finding import Finding, counted, number
from amqp_broker.management.node.rates import NOTHING, Rates
from amqp_broker.management.node.totals import lengths_of

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Destination, Exchange
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

# Messages by which a queue must have grown, and the time in which a queue with consumers must have done so (ms).
GROWTH_MIN: Final = 10
GROWTH_MS: Final = 60_000
# A queue with consumers must still grow: it is compared with what it was then (ms ago).
STILL_MS: Final = 10_000
# Consumers that are compared, to name the slowest, and bindings that are followed.
COMPARED_MAX: Final = 100
# Time without any settlement after which a consumer is idle (ms).
IDLE_MS: Final = 30_000
# Redeliveries in a minute that make a loop, and how many of them there are at least for each ack.
REDELIVERIES_MIN: Final = 20
REDELIVERIES_PER_ACK: Final = 10
REASONS: Final = {
    REJECTED: "rejected",
    DELIVERY_LIMIT: "beyond the delivery limit",
    MAXLEN: "beyond the maximum length",
    EXPIRED: "expired",
}


def findings_of(queue: Queue, rates: Rates, now: int) -> Iterator[Finding]:
    """Yield the findings about a queue; `now` is in real time, and counts have been collected."""
    statistics = queue.statistics
    if queue.message_count and queue.type != "stream":
        yield from _View(queue, rates, now).findings()
    if statistics.incidents is not None:
        if statistics.incidents.circling.is_recent(now):
            yield _circling(queue)
        yield from _deaths(queue, now)


class _View:
    """A queue now, and its past."""

    def __init__(self, queue: Queue, rates: Rates, now: int) -> None:
        self.queue = queue
        self.rates = rates
        self.now = now
        self.history = queue.statistics.history or NOTHING
        self.counts = {**lengths_of(queue), **queue.statistics.message_stats()}
        self.ready, self.unacked = queue.ready_count, queue.unacked_count

    def findings(self) -> Iterator[Finding]:
        loop = self._retry_loop()
        if loop is not None:
            yield loop
        elif not self.queue.consumers:
            yield from self._without_consumer()
        else:
            found = self._idle_consumer() or self._slow_consumer()
            if found is not None:
                yield found

    def _past(self, age_ms: int) -> Mapping[str, float]:
        return self.rates.past(self.queue.statistics, self.counts, age_ms)

    def _growth(self, age_ms: int) -> tuple[float, int]:
        """Return by how much the ready messages have grown since they were fewest, and since when."""
        since = self.now - age_ms
        fewest = self._past(age_ms)["messages_ready"]
        for time_ms, (ready,) in self.history.backwards("messages_ready"):
            if time_ms < self.now - age_ms:
                break
            if ready <= fewest and (ready < fewest or since == self.now - age_ms):
                since, fewest = time_ms, float(ready)
        return self.ready - fewest, since

    def _without_consumer(self) -> Iterator[Finding]:
        queue, settings = self.queue, self.queue.settings
        is_waiting_room = settings.message_ttl_ms is not None and settings.dead_letter_exchange is not None
        # Dead letters that come in are a finding about the queue that they come from.
        if is_waiting_room or not queue.statistics.published:
            return
        grown, since = self._growth(RECENT_MS)
        if grown >= GROWTH_MIN:
            yield Finding(
                "no-consumer",
                f"Queue '{queue.name}' has no consumer, and has grown by {number(grown)} to "
                f"{counted(self.ready, 'message')}.",
                "Start its consumer, move its messages to a queue with one, or purge it if they are not needed.",
                since,
                _place(queue),
            )

    def _idle_consumer(self) -> Finding | None:
        """Return a finding if nothing is settled although messages wait or become unacked."""
        past = self._past(IDLE_MS)
        unacked = past["messages_unacknowledged"]
        is_waited_for = self.ready > 0 and past["messages_ready"] > 0
        if not unacked or not (is_waited_for or self.unacked - unacked >= GROWTH_MIN):
            return None
        since = self._unsettled_since()
        if since > self.now - IDLE_MS:
            return None
        holder = max(self.queue.consumers, key=_held)
        if not holder.in_flight:
            # Others hold the messages: cancelled consumers, or clients that got them one by one.
            return None
        waiting = f", and {counted(self.ready, 'message waits', 'messages wait')}" if self.ready else ""
        return Finding(
            "idle-consumer",
            f"{_named(holder)} settles nothing of queue '{self.queue.name}': it holds {number(holder.in_flight)} of "
            f"{counted(self.unacked, 'unacked message')}{waiting}.",
            "Let the consumer ack or reject its messages, or close its connection, which returns them to the queue.",
            since,
            {**_place(self.queue), **_place_of_consumer(holder)},
        )

    def _unsettled_since(self) -> int:
        """Return the time since which there were unacked messages, and none was settled."""
        settled = self.counts.get("deliver", 0) + self.counts.get("get", 0) - self.unacked
        since = self.now
        for time_ms, (delivered, got, unacked) in self.history.backwards("deliver", "get", "messages_unacknowledged"):
            if not unacked or delivered + got - unacked != settled:
                break
            since = time_ms
        return since

    def _slow_consumer(self) -> Finding | None:
        """Return a finding if the queue grows although messages are delivered."""
        grown, since = self._growth(GROWTH_MS)
        if grown < GROWTH_MIN or self.ready <= self._past(STILL_MS)["messages_ready"]:
            return None
        taken = self._taken(self.queue.statistics, self.counts)
        consumers = list(islice(self.queue.consumers, COMPARED_MAX))
        slowest = min(consumers, key=self._taken_by)
        count = len(self.queue.consumers)
        which = "its consumer" if count == 1 else f"its {count} consumers"
        name = _named(slowest) if count == 1 else f"The slowest: {_named(slowest)}"
        return Finding(
            "slow-consumer",
            f"Queue '{self.queue.name}' has grown by {number(grown)} to {counted(self.ready, 'message')}: "
            f"{which} {'takes' if count == 1 else 'take'} {taken:,.1f} a second. {name}.",
            "Start more consumers, make them faster, or raise the prefetch of those that wait for their own acks.",
            since,
            {**_place(self.queue), **_place_of_consumer(slowest)},
        )

    def _taken(self, holder: Any, counts: dict[str, int]) -> float:
        """Return deliveries a second within a minute."""
        past = self.rates.past(holder, counts, GROWTH_MS)
        return (counts.get("deliver_get", 0) - past.get("deliver_get", 0.0)) * 1000 / GROWTH_MS

    def _taken_by(self, consumer: Consumer) -> float:
        # A channel has a history, a consumer has none.
        channel = _channel(consumer)
        return 0.0 if channel is None else self._taken(channel.counts, channel.counts.message_stats())

    def _retry_loop(self) -> Finding | None:
        past = self._past(GROWTH_MS)
        again = self.counts.get("redeliver", 0) - past.get("redeliver", 0.0)
        acked = self.counts.get("ack", 0) - past.get("ack", 0.0)
        if again < REDELIVERIES_MIN or again < acked * REDELIVERIES_PER_ACK:
            return None
        delivered = self.counts.get("deliver_get", 0) - past.get("deliver_get", 0.0)
        holder = max(self.queue.consumers, key=_held, default=None)
        return Finding(
            "retry-loop",
            f"Messages of queue '{self.queue.name}' return and are delivered again: {number(again)} of the "
            f"{counted(delivered, 'delivery', 'deliveries')} of the last minute were redeliveries, and "
            f"{counted(acked, 'was', 'were')} acked.",
            "Reject what cannot be processed without requeue=true, to a dead-letter exchange.",
            None,
            {**_place(self.queue), **({} if holder is None else _place_of_consumer(holder))},
        )


def _circling(queue: Queue) -> Finding:
    incidents = queue.statistics.incidents
    assert incidents is not None
    circling = incidents.circling
    return Finding(
        "retry-loop",
        f"Rejected messages return to queue '{queue.name}' by way of their dead-letter exchange: one has been rejected "
        f"{incidents.rounds} times.",
        "Let the consumer read the count in x-death, and give up after some attempts.",
        circling.first_ms,
        _place(queue),
    )


def _deaths(queue: Queue, now: int) -> Iterator[Finding]:
    incidents, settings = queue.statistics.incidents, queue.settings
    assert incidents is not None
    has_exchange = settings.dead_letter_exchange is not None
    # Without a dead-letter exchange, time and length are a way to keep what is new. Expiry of what has no consumer is
    # a way to wait.
    expected = {EXPIRED} if has_exchange and not queue.consumers else set()
    if not has_exchange:
        expected = {EXPIRED, MAXLEN}
    recent = {reason: one for reason, one in incidents.deaths.items() if one.is_recent(now) and reason not in expected}
    if not recent:
        return
    total = sum(one.count for one in recent.values())
    count, verb = counted(total, "message"), "was" if total == 1 else "were"
    why = ", ".join(f"{number(one.count)} {REASONS.get(reason, reason)}" for reason, one in recent.items())
    since = min(one.first_ms for one in recent.values())
    when = f"in the last {_minutes(now - since)}"
    where, home = _destination(queue)
    place = _place(queue)
    if where.startswith("to "):
        sentence = f"{count} of queue '{queue.name}' {verb} dead-lettered ({why}) {where} {when}."
        remedy = "Look at the messages and their x-death, and at the log of the consumer that rejects them."
        if REJECTED not in recent:
            remedy = "Look at the messages and their x-death, and at the consumers, which are too slow."
        if home is not None:
            place["dead_letter_queue"] = home.name
    else:
        sentence = f"{count} of queue '{queue.name}' {verb} lost ({why}) {when}: {where}."
        remedy = "Give it a dead-letter exchange, by the argument x-dead-letter-exchange or a policy."
        if has_exchange:
            remedy = "Declare what is missing, and bind a queue for dead letters."
    yield Finding("dead-letters", sentence, remedy, since, place)


def _minutes(ms: int) -> str:
    minutes = -(-ms // 60_000)
    return "minute" if minutes <= 1 else f"{number(minutes)} minutes"


def _destination(queue: Queue) -> tuple[str, Queue | None]:
    """Return in words where dead letters go ("to …"), or why they are lost; and the queue that has them."""
    settings, vhost = queue.settings, queue.vhost
    name, key = settings.dead_letter_exchange, settings.dead_letter_routing_key
    if name is None:
        return "it has no dead-letter exchange", None
    exchange = vhost.exchanges.get(name)
    if exchange is None:
        return f"there is no exchange '{name}'", None
    if not name and key is None:
        return "to the queues that their routing keys name", None
    if not name:
        home = vhost.queues.get(key or "")
        return (f"there is no queue '{key}'", None) if home is None else (f"to queue '{key}'", home)
    if not exchange.bindings and exchange.alternate is None:
        return f"the dead-letter exchange '{name}' has no bindings", None
    home = _home(vhost, exchange, key)
    return (f"to exchange '{name}'", None) if home is None else (f"to queue '{home.name}' by exchange '{name}'", home)


def _home(vhost: VHost, exchange: Exchange, key: str | None) -> Queue | None:
    """Return the only queue that an exchange has for dead letters; None if there are others, or it is not known."""
    ends: Collection[Destination] = ()
    if exchange.type == "fanout" or (key is not None and exchange.type in {"direct", "topic"}):
        ends = exchange.destinations((key or "",), {}, None)
    elif len(exchange.bindings) <= COMPARED_MAX:
        ends = {binding.destination for binding in exchange.bindings.values()}
    [name] = [end.name for end in ends] if len(ends) == 1 else [""]
    queue = vhost.queues.get(name)
    return queue if queue in ends else None


def _held(consumer: Consumer) -> int:
    return consumer.in_flight


def _named(consumer: Consumer) -> str:
    connection = consumer.connection
    return f"Consumer '{consumer.tag}' (connection '{connection.given_name or connection.name}')"


def _channel(consumer: Consumer) -> Any:
    channels = getattr(consumer.connection, "channels", {})
    return channels.get(consumer.number)


def _place(queue: Queue) -> dict[str, Any]:
    return {"vhost": queue.vhost.name, "queue": queue.name}


def _place_of_consumer(consumer: Consumer) -> dict[str, Any]:
    return {"connection": consumer.connection.name, "consumer_tag": consumer.tag}
