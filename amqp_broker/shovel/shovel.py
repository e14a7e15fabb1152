"""One shovel: a consumer at one end, a publisher at the other, and which messages are on their way between them.

A message is acked at its source when it is confirmed at its destination (`ack-mode` on-confirm), so none is lost,
whatever fails in between; what was on its way then comes again. The shell connects the two ends (`Links`), and calls
`tick` when `next_tick_ms` has come.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from pamqp import commands

from amqp_broker import fields
from amqp_broker.message import Address, Message, Properties
from amqp_broker.shovel.client import Client, Lost, Procedure, call, check, ensure_queue
from amqp_broker.shovel.definition import NO_ACK, ON_CONFIRM, ON_PUBLISH, QUEUE_LENGTH, Definition, End, Uri

STARTING: Final = "starting"
RUNNING: Final = "running"
TERMINATED: Final = "terminated"

FORWARD_HEADER: Final = "x-shovelled"
TIMESTAMP_HEADER: Final = "x-shovelled-timestamp"


class Link(Protocol):
    """A connection to one end that the shell has opened, or is opening."""

    def flush(self) -> None:
        """Write what the client has in its outbox."""
        ...

    def pause(self, is_paused: bool) -> None:
        """Do not read the socket, or do so again."""
        ...

    def close(self) -> None: ...


class Links(Protocol):
    """What opens connections."""

    def open(self, uri: Uri, client: Client, shovel: Shovel) -> Link:
        """Connect; the client receives what comes, and the shovel hears `on_lost` if it fails or ends."""
        ...


class Shovel:
    """Moves messages until it is stopped. `state` is what RabbitMQ calls it; `reason` why it is not running."""

    kind = "shovel"

    def __init__(
        self, name: str, vhost: str, definition: Definition, links: Links, node: str, on_done: Any, now: int
    ) -> None:
        """`on_done(shovel)` is called when the shovel has moved all that it should (`delete-after`)."""
        self.name = name
        self.vhost = vhost
        self.definition = definition
        self.node = node
        self.state = STARTING
        self.reason = ""
        self.changed_at_ms = now
        self.forwarded_count = 0
        # How many messages are still to be moved, and to be sent; None: all that come.
        self.remaining: int | None = None
        self.remaining_unsent: int | None = None
        if isinstance(definition.delete_after, int):
            self.remaining = self.remaining_unsent = definition.delete_after
        self.is_blocked = False
        self._is_full = False
        self._links = links
        self._on_done = on_done
        self._is_done = False
        self._attempts = 0
        self._now = now
        self.next_tick_ms: int | None = None
        self._source: Client | None = None
        self._destination: Client | None = None
        self._open_links: dict[Client, Link] = {}
        self._ready: set[Client] = set()
        self._queue = definition.source.queue or ""
        # Delivery tags by publish number, and what cannot be published just now.
        self._unconfirmed: dict[int, int] = {}
        self._waiting: deque[tuple[int, Message]] = deque()

    # Beginning and end

    def start(self, now: int) -> None:
        """Connect both ends."""
        self._now, self.next_tick_ms = now, None
        self._set_state(STARTING)
        if self.remaining == 0:
            self._end()
            return
        source = self._connect(self.definition.source, "source")
        if source is not None:
            self._source = source
            self._destination = self._connect(self.definition.destination, "destination")

    def _connect(self, end: End, side: str) -> Client | None:
        # Another one each time, so that a broker that is down does not keep the others from being tried.
        uri = end.uris[self._attempts % len(end.uris)]
        vhost = self.vhost if uri.is_local and uri.vhost is None else (uri.vhost if uri.vhost is not None else "/")
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
        """Leave both ends; what was on its way goes back to the source."""
        self.next_tick_ms = None
        self._set_state(TERMINATED)
        self._close_links()

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

    def on_lost(self, client: Client, reason: str, now: int) -> None:
        """An end was not reached, or is gone: both are left, and tried again after a while."""
        if client not in (self._source, self._destination):
            return
        self._now = now
        self._close_links()
        self._attempts += 1
        self.reason = reason
        self._set_state(TERMINATED)
        # A delay of 0 is "never" (rabbit_shovel_dyn_worker_sup.erl).
        if self.definition.reconnect_delay_s:
            self.next_tick_ms = now + self.definition.reconnect_delay_s * 1000

    def tick(self, now: int) -> None:
        """What `next_tick_ms` was set for."""
        if self.state == TERMINATED:
            self.start(now)

    def _set_state(self, state: str) -> None:
        self.state, self.changed_at_ms = state, self._now

    # The ends tell

    def set_up(self, client: Client) -> Procedure:
        definition = self.definition
        if client is self._source:
            yield from self._set_up_source(client)
            return
        if definition.destination.queue is not None:
            yield from ensure_queue(client, definition.destination.queue, definition.destination.arguments)
        elif definition.destination.exchange:
            check((yield call(commands.Exchange.Declare, exchange=definition.destination.exchange, passive=True)))
        if definition.ack_mode == ON_CONFIRM:
            yield call(commands.Confirm.Select)

    def _set_up_source(self, client: Client) -> Procedure:
        definition, source = self.definition, self.definition.source
        if source.queue is not None:
            yield from ensure_queue(client, source.queue, source.arguments)
        else:
            answer = yield call(commands.Queue.Declare, exclusive=True, arguments=source.arguments)
            check(answer)
            self._queue = answer.queue
            bind = call(
                commands.Queue.Bind,
                queue=self._queue,
                exchange=source.exchange,
                routing_key=source.routing_key or "",
            )
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
            return  # both ends were left while this was being read
        if self.is_blocked or self._is_full or self._waiting:
            self._waiting.append((tag, message))
        else:
            self._forward(tag, message)

    def on_settled(self, client: Client, tag: int, multiple: bool, is_taken: bool) -> None:
        if client is not self._destination:
            return
        if not is_taken:
            # It would come again at once, and be refused again at once.
            raise Lost("the destination refused a message (basic.nack)")
        unconfirmed, source = self._unconfirmed, self._source
        assert source is not None
        if multiple:
            numbers = []
            for number in unconfirmed:
                if number > tag:
                    break
                numbers.append(number)
            if not numbers:
                return
            tags = [unconfirmed.pop(number) for number in numbers]
            # Numbers and tags rise together, so what is older than these is confirmed already.
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
        """The socket of the destination takes no more just now, or does so again."""
        if client is self._destination:
            self._is_full = is_full
            self._hold_source()
            self._go_on()

    def _hold_source(self) -> None:
        """Read no more from the source than the destination takes: without acks, no prefetch would limit it."""
        link = self._open_links.get(self._source) if self._source is not None else None
        if link is not None:
            link.pause(self._is_full or self.is_blocked)

    def flush(self) -> None:
        """Write what both ends have to say."""
        for link in list(self._open_links.values()):
            link.flush()

    def told(self) -> dict[str, Any]:
        """What there is to say of it beside its name and state, in RabbitMQ's words."""
        changed_at = datetime.fromtimestamp(self.changed_at_ms / 1000, UTC)
        told: dict[str, Any] = {
            "timestamp": f"{changed_at:%Y-%m-%d %H:%M:%S}",
            "src_protocol": "amqp091",
            "dest_protocol": "amqp091",
            "forwarded": self.forwarded_count,
            "pending": len(self._waiting),
            "remaining": "unlimited" if self.remaining is None else self.remaining,
            "remaining_unacked": "unlimited" if self.remaining_unsent is None else self.remaining_unsent,
        }
        for name, value in self._told().items():
            if name.startswith(("src-", "dest-")):
                told[name.replace("-", "_")] = value
        if self.state == RUNNING:
            told["blocked_status"] = "blocked" if self.is_blocked else "flow" if self._is_full else "running"
        if self.reason:
            told["reason"] = self.reason
        return told

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
                return  # it stays with the source, which gets it back in the end
            self.remaining_unsent -= 1
        number = destination.publish(self._address(message), self._changed(message))
        self.forwarded_count += 1
        if definition.ack_mode == ON_CONFIRM:
            self._unconfirmed[number] = tag
            return
        if definition.ack_mode == ON_PUBLISH:
            source.ack(tag, False)
        self._count_moved(1)

    def _count_moved(self, count: int) -> None:
        if self.remaining is not None:
            self.remaining -= count
            if self.remaining <= 0:
                self._end()

    def _end(self) -> None:
        """All is moved."""
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

    def _changed(self, message: Message) -> Message:
        """The message as the definition wants it to arrive: with other properties, or as it is to the octet."""
        definition = self.definition
        is_told = definition.adds_forward_headers or definition.adds_timestamp_header
        if not definition.publish_properties and not is_told:
            return message
        properties: Properties = message.properties()
        for name, value in definition.publish_properties.items():
            setattr(properties, name, value)
        if is_told:
            properties.headers = dict(properties.headers or {})
        if definition.adds_timestamp_header:
            assert properties.headers is not None
            properties.headers[TIMESTAMP_HEADER] = fields.Long(self._now // 1000)
        if definition.adds_forward_headers:
            assert properties.headers is not None
            before = properties.headers.get(FORWARD_HEADER)
            tables = before if isinstance(before, list) else []
            properties.headers[FORWARD_HEADER] = [self._told(), *tables]
        return message.with_properties(properties)

    def _told(self) -> dict[str, str]:
        source, destination = self.definition.source, self.definition.destination
        told = {
            "shovelled-by": self.node,
            "shovel-type": "dynamic",
            "shovel-name": self.name,
            "shovel-vhost": self.vhost,
            "src-uri": str(source.uris[0]),
            "dest-uri": str(destination.uris[0]),
            "src-queue": source.queue,
            "src-exchange": source.exchange,
            "src-exchange-key": source.routing_key,
            "dest-queue": destination.queue,
            "dest-exchange": destination.exchange,
            "dest-exchange-key": destination.routing_key,
        }
        return {key: value for key, value in told.items() if value is not None}
