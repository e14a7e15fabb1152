"""A client of a play: its channels collect their input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.duel.windows import Ledger, Window
from amqp_broker.conformance.lab import Broker, Lab
from amqp_broker.conformance.received import END, Received, Stopped
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.scenario_connection import Connection
from amqp_broker.conformance.terms import SILENCE_S, Terms
from amqp_broker.conformance.transcript import Transcript
from amqp_broker.conformance.wire import Method

# The last message that an observer reads of a stream, and the number of unacked messages meanwhile.
_LAST, _READ_AHEAD = b"the last one", 1000
_FLOW = wire.method_payload(commands.Channel.Flow, {"active": True})


class Refused(Stopped):
    """The broker refuses a connection."""


class WatchedChannel(Channel):
    """A channel with its current window."""

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__(connection, number)
        self.window = Window()
        self.ledger = Ledger()
        # The consumes and gets of this window settle nothing.
        self.is_no_ack = False

    def _record_received(self, received: Received) -> None:
        if received is not END:
            self.window.add(received)
        elif isinstance(self.connection, WatchedConnection):
            # The end is that of the whole connection; this client's own end is not noted.
            self.connection.note_end()
        super()._record_received(received)

    def answer_close(self, close: Received) -> None:
        """Answer at once: RabbitMQ keeps the consumers of a channel until then."""
        super().answer_close(close)
        if isinstance(self.connection, WatchedConnection):
            self.connection.send_unsent()

    def ask_flow(self) -> None:
        self.send_frame(wire.METHOD, _FLOW)

    def await_flow(self) -> None:
        """Collect what was received until the answer to `ask_flow`, or a close."""
        while self.is_open:
            received = self._next()
            if received.method is commands.Channel.FlowOk:
                return
            self._record_received(received)
            if received is END:
                self.is_open = False

    def take_waiting(self) -> None:
        """Collect what has arrived already."""
        while self.inbox:
            self._record_received(self.inbox.popleft())

    def next_window(self) -> None:
        """Note the effects of the window, and begin another one."""
        self.ledger.note(self.window, self.is_no_ack)
        self.window, self.is_no_ack = Window(), False


class WatchedConnection(Connection):
    """A connection of watched channels."""

    def __init__(
        self,
        address: tuple[str, int],
        label: str,
        transcript: Transcript,
        silence_s: float = SILENCE_S,
        terms: Terms | None = None,
    ) -> None:
        super().__init__(address, label, transcript, silence_s=silence_s, terms=terms)
        self.control = self.first = WatchedChannel(self, 0)
        self._unsent = bytearray()

    def write(self, data: bytes) -> None:
        """Keep octets until the next read, so that a step and the question after it are one write."""
        self._unsent += data

    def read_some(self) -> None:
        self.send_unsent()
        super().read_some()

    def hang_up(self) -> None:
        self.send_unsent()
        super().hang_up()

    def send_unsent(self) -> None:
        if self._unsent:
            super().write(bytes(self._unsent))
            self._unsent.clear()

    def use_channel(self, number: int) -> WatchedChannel:
        return WatchedChannel(self, number)

    def note_end(self) -> None:
        if not self._end_is_recorded:
            self.first.window.add(END)

    @property
    def watched(self) -> list[WatchedChannel]:
        """Its channels in order, channel 0 among them."""
        return [channel for _, channel in sorted(self.channels.items()) if isinstance(channel, WatchedChannel)]

    @property
    def opened(self) -> list[WatchedChannel]:
        return [channel for channel in self.watched if channel.number and channel.is_open]


class WatchedLab(Lab):
    """The lab of a play."""

    def __init__(self, broker: Broker, terms: Terms | None = None, prefix: str = "") -> None:
        super().__init__(broker, terms)
        if prefix:
            self.prefix = prefix
            self.transcript = Transcript(prefix, self.terms)

    def connect_as(self, user: str = "") -> WatchedConnection:
        """Open a connection, not recorded. The password of another user is the name. Raise Refused."""
        with self.transcript.muted():
            connection = self.dial()
            connection.send_header()
            connection.start_ok(f"\0{user}\0{user}".encode() if user else None)
            connection.tune_ok()
            if connection.open().method is not commands.Connection.OpenOk:
                raise Refused("a connection is refused")
        assert isinstance(connection, WatchedConnection)
        return connection

    def _connect(self, label: str) -> WatchedConnection:
        address = (self.broker.host, self.broker.port)
        return WatchedConnection(address, label, self.transcript, self.silence_s, self.terms)


class Observer:
    """A connection beside the programs, which asks queues for their counts, empties and deletes them."""

    def __init__(self, broker: Broker, terms: Terms) -> None:
        self.broker = broker
        self.terms = terms
        self._channel: Channel | None = None

    @property
    def channel(self) -> Channel:
        if self._channel is None or self._channel.connection.is_ended:
            lab = Lab(self.broker, self.terms)
            lab.transcript.is_muted = True
            self._channel = lab.connect().channel()
        elif not self._channel.is_open:
            connection = self._channel.connection
            self._channel = connection.channel()
        return self._channel

    def counts(self, queues: Iterable[str]) -> dict[str, tuple[int, int] | int]:
        """Return the number of ready messages and of consumers of each queue, or the code of the refusal."""
        found: dict[str, tuple[int, int] | int] = {}
        waiting = list(queues)
        while waiting:
            channel = self.channel
            asked = [wire.method_payload(Queue.Declare, {"queue": queue, "passive": True}) for queue in waiting]
            channel.connection.write(b"".join(wire.frame(wire.METHOD, channel.number, payload) for payload in asked))
            while waiting:
                answer = channel.expect(Queue.DeclareOk)
                queue = waiting.pop(0)
                if answer.method is Queue.DeclareOk:
                    found[queue] = answer.fields["message_count"], answer.fields["consumer_count"]
                else:
                    found[queue] = answer.fields.get("reply_code", 0)
                    break
        return found

    def call(self, method: Method, **fields: Any) -> Received:
        return self.channel.call(method, **fields)

    def read(self, stream: str) -> list[str]:
        """Return the messages of a stream as lines, up to one that is published now, or the refusal."""
        channel = self.channel
        channel.publish(_LAST, routing_key=stream)
        channel.call(Basic.Qos, prefetch_count=_READ_AHEAD)
        fields = {"queue": stream, "consumer_tag": "reader", "arguments": {"x-stream-offset": "first"}}
        answer = channel.call(Basic.Consume, **fields)
        if answer.method is not Basic.ConsumeOk:
            return list(answer.lines())
        lines: list[str] = []
        while (received := channel.expect(Basic.Deliver)).body != _LAST and received.method is Basic.Deliver:
            received.fields["delivery_tag"] = 0  # the observer's channel is older than the play
            lines += received.lines()
        channel.call(Basic.Cancel, consumer_tag="reader")
        return lines

    def delete(self, queues: Iterable[str], exchanges: Iterable[str]) -> None:
        """Delete objects whether they exist or not."""
        channel = self.channel
        for queue in queues:
            channel.send(Queue.Delete, queue=queue, nowait=True)
        for exchange in exchanges:
            channel.send(commands.Exchange.Delete, exchange=exchange, nowait=True)
        try:
            channel.sync()
        except Stopped:
            # A refusal, as of another connection's exclusive queue, which ends with that connection.
            return

    def close(self) -> None:
        if self._channel is not None:
            self._channel.connection.finish()
