"""One shovel: a consumer at one end, a publisher at the other, and messages in flight between them.

With `ack-mode` on-confirm, a message is acked at its source once its destination has confirmed it. So no failure loses
messages, but those in flight are moved again. The shell connects the two ends (`Links`), and calls `tick` at
`next_tick_ms`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from pamqp import commands

from amqp_broker.amqp.message import Address, Message
from amqp_broker.shovel.amqp_client import Client, Lost, Procedure, call, check, ensure_queue
from amqp_broker.shovel.forwarding import changed, forward_header
from amqp_broker.shovel.shovel_definition import (
    LOCAL,
    NO_ACK,
    ON_CONFIRM,
    ON_PUBLISH,
    QUEUE_LENGTH,
    Definition,
    End,
    Static,
    Uri,
)

STARTING: Final = "starting"
RUNNING: Final = "running"
TERMINATED: Final = "terminated"

# The queue that a local shovel binds to its source exchange.
LOCAL_QUEUE_PREFIX: Final = "local.shovel.src.exchange."


class Link(Protocol):
    """A connection to one end, open or opening."""

    def flush(self) -> None:
        """Write the client's outbox."""
        ...

    def pause(self, is_paused: bool) -> None:
        """Pause or resume reading the socket."""
        ...

    def close(self) -> None: ...

    def put(self, address: Address, message: Message, queue: str | None) -> None:
        """Publish without a method frame, to a queue or (None) to the exchange of the address.

        Only a link to this broker can do so. Raise Lost if the queue or the exchange does not exist.
        """
        ...


class Links(Protocol):
    """Opens connections, and has the time."""

    def now(self) -> int:
        """Return the real time in ms since the epoch."""
        ...

    def open(self, uri: Uri, client: Client, shovel: Shovel) -> Link:
        """Connect; the client receives the octets, and `on_lost` of the shovel is called on failure or end."""
        ...


class Shovel:
    """Moves messages until it is stopped. `state` is RabbitMQ's word; `reason` says why it is not running."""

    kind = "shovel"

    def __init__(
        self,
        name: str,
        vhost: str,
        definition: Definition,
        links: Links,
        cluster_name: str,
        on_done: Callable[[Shovel], None],
        now: int,
    ) -> None:
        """`on_done(shovel)` is called once all messages of `delete-after` are moved."""
        self.name = name
        self.vhost = vhost
        self.definition = definition
        self.cluster_name = cluster_name
        self.state = STARTING
        self.reason = ""
        self.changed_at_ms = now
        self.forwarded_count = 0
        # Messages still to be moved, and still to be sent; None means no limit.
        self.remaining = self.remaining_unsent = self._first_remaining()
        self.is_blocked = False
        self._is_full = False
        self._links = links
        self._on_done = on_done
        self._is_done = self._was_renewed = False
        self._attempts = 0
        self._now = now
        self.next_tick_ms: int | None = None
        self._source: Client | None = None
        self._destination: Client | None = None
        self._open_links: dict[Client, Link] = {}
        self._ready: set[Client] = set()
        self._queue = definition.source.queue or ""
        # Delivery tags by publish number, and messages that cannot be published yet.
        self._unconfirmed: dict[int, int] = {}
        self._waiting: deque[tuple[int, Message]] = deque()

    @property
    def own_vhost(self) -> str | None:
        """The vhost that the shovel belongs to; a static shovel belongs to none."""
        return self.vhost if self.definition.static is None else None

    def _first_remaining(self) -> int | None:
        # The length of the queue is asked for at the source.
        count = self.definition.delete_after
        return count if isinstance(count, int) else None

    # Start and stop

    def start(self, now: int) -> None:
        """Connect both ends, unless they are connected or connecting."""
        if self._open_links:
            return
        self._now, self.next_tick_ms, self.forwarded_count = now, None, 0
        self._set_state(STARTING)
        # Even a shovel that has nothing to move declares its queues.
        if self.remaining == 0 and self.definition.delete_after != 0:
            self._end()
            return
        if not (self.definition.source.uris and self.definition.destination.uris):
            self.reason = "an end has no valid URI"
            self._set_state(TERMINATED)
            return
        source = self._connect(self.definition.source, "source")
        if source is not None:
            self._source = source
            self._destination = self._connect(self.definition.destination, "destination")

    def _connect(self, end: End, side: str) -> Client | None:
        # Another URI at each attempt, so that an unreachable broker does not block the others.
        uri = end.uris[self._attempts % len(end.uris)]
        own = self.vhost if uri.is_local and not uri.is_loopback else "/"
        vhost = own if uri.vhost is None else uri.vhost
        client = Client(self, uri.user, uri.password, vhost, uri.heartbeat_s, f"Shovel {self.name} ({side})")
        self._source = client if side == "source" else self._source
        self._destination = client if side == "destination" else self._destination
        try:
            self._open_links[client] = self._links.open(uri, client, self)
        except OSError as error:
            self.on_lost(client, str(error), self._now)
            return None
        return client

    def stop(self) -> None:
        """Disconnect both ends; messages in flight return to the source."""
        self.next_tick_ms = None
        self._set_state(TERMINATED)
        self._close_links()

    def renew(self, now: int) -> None:
        """Start a static shovel again that is done.

        It starts at once, later after the delay, and never without one (rabbit_shovel_worker_sup.erl).
        """
        self._now, self.reason = now, "autodelete"
        self.stop()
        delay_s = self.definition.reconnect_delay_s
        if isinstance(delay_s, int) and delay_s:
            self.remaining = self.remaining_unsent = self._first_remaining()
            self.next_tick_ms = now + (delay_s * 1000 if self._was_renewed else 0)
            self._is_done, self._was_renewed = False, True

    def _close_links(self) -> None:
        links, self._open_links = self._open_links, {}
        self._ready.clear()
        self._source = self._destination = None
        self._unconfirmed.clear()
        self._waiting.clear()
        self.is_blocked = self._is_full = False
        if self.remaining is not None:
            self.remaining_unsent = self.remaining
        for client, link in links.items():
            client.close()
            link.flush()
            link.close()

    def now(self) -> int:
        """Return the real time in ms since the epoch."""
        return self._links.now()

    def on_lost(self, client: Client, reason: str, now: int) -> None:
        """A connection failed or ended: disconnect both ends, and reconnect after the delay."""
        if client not in (self._source, self._destination):
            return
        self._now = now
        self._close_links()
        self._attempts += 1
        self.reason = reason
        self._set_state(TERMINATED)
        # A delay of 0 is "never" (rabbit_shovel_dyn_worker_sup.erl).
        if self.definition.reconnect_delay_s:
            self.next_tick_ms = now + int(self.definition.reconnect_delay_s * 1000)

    def tick(self, now: int) -> None:
        """Reconnect; called at `next_tick_ms`."""
        if self.state == TERMINATED:
            self.start(now)

    def _set_state(self, state: str) -> None:
        self.state, self.changed_at_ms = state, self._now

    # amqp_client.Peer

    def set_up(self, client: Client) -> Procedure:
        definition = self.definition
        if definition.static is not None:
            yield from self._declare(client, definition.static)
        if client is self._source:
            yield from self._set_up_source(client)
            return
        if definition.destination.queue is not None:
            target = definition.destination
            yield from ensure_queue(client, definition.destination.queue, target.arguments, target.is_predeclared)
        if definition.ack_mode == ON_CONFIRM:
            yield call(commands.Confirm.Select)

    def _declare(self, client: Client, static: Static) -> Procedure:
        for method in static.at_source if client is self._source else static.at_destination:
            check((yield method))

    def _set_up_source(self, client: Client) -> Procedure:
        definition, source = self.definition, self.definition.source
        if definition.static is not None:
            if source.queue:
                check((yield call(commands.Queue.Declare, queue=source.queue, passive=True)))
        elif source.queue is not None:
            yield from ensure_queue(client, source.queue, source.arguments, source.is_predeclared)
        else:
            # A queue of the connection, or one of the broker that outlives the shovel. Arguments are for named queues.
            is_local = source.protocol == LOCAL
            name = f"{LOCAL_QUEUE_PREFIX}{self.name}" if is_local else ""
            answer = yield call(
                commands.Queue.Declare, queue=name, durable=is_local, exclusive=not is_local, arguments={}
            )
            check(answer)
            self._queue = answer.queue
            # Without a queue it is the last declared one, and its name is the default of the key.
            bind = call(commands.Queue.Bind, queue="", exchange=source.exchange, routing_key=source.routing_key)
            check((yield bind))
        if definition.delete_after == QUEUE_LENGTH and self.remaining is None:
            answer = yield call(commands.Queue.Declare, queue=self._queue, passive=True)
            check(answer)
            self.remaining = self.remaining_unsent = answer.message_count
        if definition.ack_mode != NO_ACK:
            yield call(commands.Basic.Qos, prefetch_count=min(definition.prefetch, 65535))

    def on_ready(self, client: Client) -> None:
        self._ready.add(client)
        if self._source not in self._ready or self._destination not in self._ready:
            return
        assert self._source is not None
        if self.remaining == 0:
            self._end()
            return
        self.reason, self._attempts = "", 0
        self._set_state(RUNNING)
        self._source.consume(self._queue, self.definition.ack_mode == NO_ACK, self.definition.consumer_arguments)
        self._open_links[self._source].flush()

    def on_delivery(self, client: Client, tag: int, message: Message) -> None:
        if client is not self._source:
            return  # both ends were disconnected during this read
        if self.is_blocked or self._is_full or self._waiting:
            self._waiting.append((tag, message))
        else:
            self._forward(tag, message)

    def on_settled(self, client: Client, tag: int, multiple: bool, is_taken: bool) -> None:
        if client is not self._destination:
            return
        if not is_taken:
            # The source would redeliver it at once, and the destination refuse it at once.
            raise Lost("the destination refused a message (basic.nack)")
        unconfirmed, source = self._unconfirmed, self._source
        assert source is not None
        if multiple:
            numbers = []
            for number in unconfirmed:
                # Tag 0 stands for all.
                if tag and number > tag:
                    break
                numbers.append(number)
            if not numbers:
                return
            tags = [unconfirmed.pop(number) for number in numbers]
            # Numbers and tags ascend together, so all older ones are confirmed already.
            source.ack(tags[-1], True)
            self._count_moved(len(tags))
        elif tag in unconfirmed:
            source.ack(unconfirmed.pop(tag), False)
            self._count_moved(1)

    def on_blocked(self, client: Client, is_blocked: bool) -> None:
        if client is self._destination:
            self.is_blocked = is_blocked
            self._hold_source()
            self._go_on()

    def on_returned(self, client: Client, address: Address, reason: str) -> None:
        pass  # nothing is published as mandatory

    def on_cancel(self, client: Client) -> None:
        raise Lost("the source has cancelled the consumer")

    def on_full(self, client: Client, is_full: bool) -> None:
        """The destination's socket is full, or writable again."""
        if client is self._destination:
            self._is_full = is_full
            self._hold_source()
            self._go_on()

    def _hold_source(self) -> None:
        """Pause the source while the destination accepts nothing: without acks, no prefetch limits it."""
        link = self._open_links.get(self._source) if self._source is not None else None
        if link is not None:
            link.pause(self._is_full or self.is_blocked)

    def flush(self) -> None:
        """Write the outboxes of both ends."""
        for link in list(self._open_links.values()):
            link.flush()

    def details(self) -> dict[str, Any]:
        """Return all but name and state, with RabbitMQ's keys."""
        changed_at = datetime.fromtimestamp(self.changed_at_ms / 1000, UTC)
        details: dict[str, Any] = {
            "timestamp": f"{changed_at:%Y-%m-%d} {changed_at.hour}:{changed_at:%M:%S}",
            "src_protocol": self.definition.source.protocol,
            "dest_protocol": self.definition.destination.protocol,
            "forwarded": self.forwarded_count,
            "pending": len(self._waiting),
            "remaining": "unlimited" if self.remaining is None else self.remaining,
            "remaining_unacked": "unlimited" if self.remaining_unsent is None else self.remaining_unsent,
        }
        for name, value in forward_header(self).items():
            if name.startswith(("src-", "dest-")):
                details[name.replace("-", "_")] = value
        if self.definition.static is not None:
            details["src_queue"] = self.definition.source.queue
        if self.state == RUNNING:
            details["blocked_status"] = "blocked" if self.is_blocked else "flow" if self._is_full else "running"
        if self.reason:
            details["reason"] = self.reason
        return details

    # Messages

    def _go_on(self) -> None:
        while self._waiting and not self.is_blocked and not self._is_full:
            self._forward(*self._waiting.popleft())

    def _forward(self, tag: int, message: Message) -> None:
        source, destination, definition = self._source, self._destination, self.definition
        assert source is not None
        assert destination is not None
        if self.remaining_unsent is not None:
            if self.remaining_unsent == 0:
                return  # unacked, it returns to the source when the shovel ends
            self.remaining_unsent -= 1
        if definition.destination.protocol == LOCAL:
            self._put(destination, changed(self, message))
            number = destination.publish_count = destination.publish_count + 1
        else:
            number = destination.publish(self._address(message), changed(self, message))
        self.forwarded_count += 1
        if definition.ack_mode == ON_CONFIRM:
            self._unconfirmed[number] = tag
            return
        if definition.ack_mode == ON_PUBLISH:
            source.ack(tag, False)
        self._count_moved(1)

    def _put(self, destination: Client, message: Message) -> None:
        end = self.definition.destination
        address = message.address if end.queue is not None else self._address(message)
        self._open_links[destination].put(address, message, end.queue)

    def _count_moved(self, count: int) -> None:
        if self.remaining is not None:
            self.remaining -= count
            if self.remaining <= 0:
                self._end()

    def _end(self) -> None:
        """Finish: all messages are moved."""
        self.flush()
        if not self._is_done:
            self._is_done = True
            self._on_done(self)

    def _address(self, message: Message) -> Address:
        end, address = self.definition.destination, message.address
        if end.queue is not None:
            return Address("", end.queue)
        if end.exchange is None and end.routing_key is None:
            return address
        return Address(
            address.exchange if end.exchange is None else end.exchange,
            address.routing_key if end.routing_key is None else end.routing_key,
        )
