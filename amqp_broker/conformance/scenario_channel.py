"""A channel of the scenarios' client.

Each channel has an inbox. Input is recorded when the scenario waits on that channel, not on arrival. So frames of
different channels, whose order is undefined, cannot change a transcript.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pamqp import commands
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.received import CLOSES, END, HAVE_CONTENT, Received, Stopped
from amqp_broker.conformance.terms import USER
from amqp_broker.conformance.transcript import show_content, show_fields, show_method
from amqp_broker.conformance.wire import Method, Table

if TYPE_CHECKING:
    from amqp_broker.conformance.scenario_connection import Connection


PREDECLARED = {f"amq.{name}" for name in ("direct", "fanout", "topic", "headers", "match", "rabbitmq.trace")}


class Channel:
    """A channel number of a connection, whether it is open or not."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self.inbox: deque[Received] = deque()
        self.is_open = False
        self.answers_closes = True
        self.shows_frame_sizes = False
        self._partial: Received | None = None
        # The object that the last declaration named, unless it was passive.
        self._declaring: str | None = None
        connection.channels[number] = self

    def record(self, direction: str, line: str) -> None:
        self.connection.transcript.record(f"{self.connection.label}{self.number}{direction} {line}")

    # --- Send

    def send(self, method: Method, **fields: Any) -> None:
        """Send a method in any state; missing fields are zero, empty or false, and not shown."""
        self.connection.terms.check(method, fields)
        if method in (Queue.Declare, Exchange.Declare):
            name = fields.get("queue" if method is Queue.Declare else "exchange", "")
            self._declaring = None if fields.get("passive") or name in PREDECLARED else name
        is_any_queue = method is Queue.Declare and not fields.keys() & {"durable", "exclusive", "passive"}
        if is_any_queue and self.connection.declares_durable:
            fields = {**fields, "durable": True}
        payload = wire.method_payload(method, fields)
        decoded = wire.read_method(payload)[1]
        shown = {name: decoded[name] for name in fields if decoded[name] != wire.Pairs()}
        self.record(">", show_method(method) + show_fields(shown))
        self.send_frame(wire.METHOD, payload)

    def send_frame(self, kind: int, payload: bytes, note: str = "") -> None:
        """Send a frame; the transcript shows `note`, or nothing."""
        if note:
            self.record(">", f"({note})")
        self.connection.write(wire.frame(kind, self.number, payload))

    def publish(
        self,
        body: bytes = b"",
        *,
        exchange: str = "",
        routing_key: str | bytes = "",
        mandatory: bool = False,
        immediate: bool = False,
        frame_sizes: tuple[int, ...] = (),
        **properties: Any,
    ) -> None:
        """Publish; `frame_sizes` are the sizes of the first body frames, the others are as large as allowed."""
        if properties.get("user_id") == USER:
            properties["user_id"] = self.connection.terms.user
        flags = {"mandatory": mandatory, "immediate": immediate}
        header = wire.header_payload(len(body), properties)
        self.send(
            Basic.Publish,
            exchange=exchange,
            routing_key=routing_key,
            **{name: True for name, is_set in flags.items() if is_set},
        )
        self.record(">", "   " + show_content(wire.read_header(header)[1], body))
        self.send_frame(wire.HEADER, header)
        for piece in self._cut(body, frame_sizes):
            self.send_frame(wire.BODY, piece)

    def _cut(self, body: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
        for size in sizes:
            yield body[:size]
            body = body[size:]
        piece_max = self.connection.frame_max - 8
        for offset in range(0, len(body), piece_max):
            yield body[offset : offset + piece_max]

    # --- Receive

    def call(self, method: Method, **fields: Any) -> Received:
        """Send a method and wait for its answer, or for a close."""
        self.send(method, **fields)
        return self.expect(*_answers(method))

    def expect(self, *methods: Method) -> Received:
        """Record input until one of these methods (or any, if none is given), a close, or the end."""
        while True:
            received = self._next()
            self._record_received(received)
            if received is END or not methods or received.method in (*methods, *CLOSES):
                return received

    def sync(self, *queues: str) -> None:
        """Wait until these queues and this channel have processed all requests; not recorded.

        Each queue is asked twice: RabbitMQ's queues answer a passive declare before the work that waits for them.
        """
        for queue in queues * 2:
            self.ask(Queue.Declare, queue=queue, passive=True)
        self.ask(commands.Channel.Flow, active=True)

    def collect(self) -> None:
        """Read until the broker has processed this channel's requests, or closed it. The input stays in the inbox."""
        self.send_frame(wire.METHOD, wire.method_payload(commands.Channel.Flow, {"active": True}))
        while not self.connection.is_ended:
            for received in self.inbox:
                if received.method is commands.Channel.FlowOk:
                    self.inbox.remove(received)
                    return
                if received.method in CLOSES:
                    return
            if self.connection.control.inbox:
                return
            self.connection.read_some()

    def ask(self, method: Method, **fields: Any) -> None:
        """Send a method and wait for its answer; record neither."""
        self.send_frame(wire.METHOD, wire.method_payload(method, fields))
        while (received := self._next()).method not in _answers(method):
            self._record_received(received)
            if received is END or received.method in CLOSES:
                raise Stopped(f"{show_method(method)} is not answered")

    def ask_until_returned(self, queue: str) -> None:
        """Publish to a queue, unrecorded, until the queue is gone and the message is returned."""
        # Without confirms: RabbitMQ 4.3 may confirm nothing that reaches a queue as it is deleted.
        answer: Method | None = commands.Channel.FlowOk
        while answer is commands.Channel.FlowOk:
            self.publish(b"", routing_key=queue, mandatory=True)
            self.send(commands.Channel.Flow, active=True)
            answer = self.expect(Basic.Return, commands.Channel.FlowOk).method
        self.expect(commands.Channel.FlowOk)

    def flush(self) -> None:
        """Record the received input."""
        while self.inbox:
            self._record_received(self.inbox.popleft())

    def _next(self) -> Received:
        connection = self.connection
        while not self.inbox:
            if any(item.method in CLOSES for item in connection.control.inbox):
                connection.expect(commands.Connection.Close)
            elif connection.is_ended:
                return END
            else:
                connection.read_some()
        return self.inbox.popleft()

    def _record_received(self, received: Received) -> None:
        if received is END:
            self.connection.record_end()
            return
        for line in received.lines():
            self.record("<", line)
        if received.method in (commands.Channel.OpenOk, commands.Connection.OpenOk):
            self.is_open = True
        elif received.method in (commands.Channel.Close, commands.Channel.CloseOk):
            self.is_open = False
        elif received.method in (commands.Connection.Close, commands.Connection.CloseOk):
            for channel in self.connection.channels.values():
                channel.is_open = False
        if self.shows_frame_sizes and received.properties is not None:
            self.record("<", f"    frames {received.frame_sizes}")
        if received.method in CLOSES and self.answers_closes:
            self.answer_close(received)

    def answer_close(self, close: Received) -> None:
        """Send close-ok. After connection.close only the end may follow."""
        if close.method is commands.Channel.Close:
            self.send_frame(wire.METHOD, wire.method_payload(commands.Channel.CloseOk, {}))
        else:
            self.send_frame(wire.METHOD, wire.method_payload(commands.Connection.CloseOk, {}))
            self.connection.expect_end()

    def take_frame(self, kind: int, payload: bytes) -> None:
        """Add a received frame."""
        frame_max = self.connection.frame_max
        if len(payload) + 8 > frame_max:
            self.inbox.append(Received(note=f"A FRAME LARGER THAN {frame_max}"))
        if kind == wire.HEARTBEAT:
            self.inbox.append(Received(note="heartbeat"))
            return
        if kind == wire.METHOD:
            assert self._partial is None, "a method amid a content"
            self._partial = Received(*wire.read_method(payload))
            self._note(self._partial)
        else:
            assert self._partial is not None, "a content without its method"
        partial = self._partial
        if kind == wire.HEADER:
            partial.body_size, partial.properties = wire.read_header(payload)
        if kind == wire.BODY:
            partial.body += payload
            partial.frame_sizes.append(len(payload))
        if partial.method not in HAVE_CONTENT or partial.is_whole:
            self.inbox.append(partial)
            self._partial = None

    def _note(self, received: Received) -> None:
        """Note limits, and the names of objects that exist from now on."""
        if received.method is commands.Connection.Tune:
            self.connection.offer = received.fields
        elif received.method in (Queue.DeclareOk, Exchange.DeclareOk) and self._declaring is not None:
            self.connection.declared.add(self._declaring or received.fields.get("queue", ""))
            self._declaring = None

    # --- Common steps

    def declare(self, queue: str = "", *, arguments: Table = (), **flags: bool) -> str:
        """Declare a queue and return its name."""
        name: str = self.call(Queue.Declare, queue=queue, **flags, arguments=arguments)["queue"]
        return name

    def exchange(self, exchange: str, kind: str = "direct", *, arguments: Table = (), **flags: bool) -> Received:
        return self.call(Exchange.Declare, exchange=exchange, exchange_type=kind, **flags, arguments=arguments)

    def bind(self, queue: str, exchange: str, routing_key: str = "", arguments: Table = ()) -> Received:
        return self.call(Queue.Bind, queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments)

    def consume(self, queue: str, tag: str = "c", *, arguments: Table = (), **flags: bool) -> str:
        """Consume and return the consumer tag."""
        consumer_tag: str = self.call(Basic.Consume, queue=queue, consumer_tag=tag, **flags, arguments=arguments)[
            "consumer_tag"
        ]
        return consumer_tag

    def get(self, queue: str, **flags: bool) -> Received:
        return self.call(Basic.Get, queue=queue, **flags)

    def drain(self, queue: str) -> None:
        """Get messages until the queue is empty."""
        self.record(">", f"(pulls {queue} empty)")
        payload = wire.method_payload(Basic.Get, {"queue": queue, "no_ack": True})
        self.send_frame(wire.METHOD, payload)
        while self.expect(Basic.GetOk, Basic.GetEmpty).method is Basic.GetOk:
            self.send_frame(wire.METHOD, payload)

    def echo(self, queue: str, body: bytes, **options: Any) -> None:
        """Publish to a queue and get the message back."""
        self.publish(body, routing_key=queue, **options)
        self.sync(queue)
        self.get(queue, no_ack=True)

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self.send(Basic.Ack, delivery_tag=tag, multiple=multiple)

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        self.send(Basic.Nack, delivery_tag=tag, multiple=multiple, requeue=requeue)

    def reject(self, tag: int, *, requeue: bool = True) -> None:
        self.send(Basic.Reject, delivery_tag=tag, requeue=requeue)

    def deliveries(self, count: int) -> list[int]:
        """Wait for this number of deliveries and return their tags."""
        return [self.expect(Basic.Deliver)["delivery_tag"] for _ in range(count)]

    def confirms(self, first: int, last: int) -> None:
        """Wait until these publishes are confirmed; the grouping of confirms is not recorded."""
        verdicts: dict[int, str] = {}
        while len(verdicts) <= last - first:
            received = self._next()
            if received.method not in (Basic.Ack, Basic.Nack):
                self._record_received(received)
                if received is END or received.method in CLOSES:
                    return
                continue
            tag = received["delivery_tag"]
            for number in range(first, tag + 1) if received["multiple"] else [tag]:
                verdicts.setdefault(number, show_method(received.method))
        for verdict, numbers in groupby(sorted(verdicts), verdicts.__getitem__):
            self.record("<", f"{verdict} for {', '.join(map(str, numbers))}")


def _answers(method: Method) -> list[Method]:
    return [wire.METHOD_BY_NAME[name] for name in method.valid_responses]
