"""A client of the simulation: what it has said, what it must hear, and a check of every frame that it gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pamqp import base, body, frame, header
from pamqp.commands import Basic, Channel, Connection
from pamqp.heartbeat import Heartbeat

from tests.peer import Lab, Peer
from tests.simulation.model import Number, QueueModel, demand

PLAIN, CONFIRMING, TRANSACTIONAL = "plain", "confirming", "transactional"


@dataclass(eq=False)
class ConsumerModel:
    tag: str
    queue: QueueModel
    no_ack: bool
    prefetch: int


@dataclass
class Publish:
    """A message on its way: `queues` is where it was routed when it was published."""

    number: Number
    queues: set[QueueModel]
    mandatory: bool


@dataclass(eq=False)
class ChannelModel:
    """An open channel. `held` is what it has to settle, `settled` what it has settled and not committed."""

    number: int
    mode: str = PLAIN
    prefetch: int = 0
    prefetch_total: int = 0
    in_flight_before: int = 0
    consumers: dict[str, ConsumerModel] = field(default_factory=dict)
    held: dict[int, tuple[QueueModel, Number]] = field(default_factory=dict)
    settled: dict[int, tuple[QueueModel, Number, bool]] = field(default_factory=dict)
    publishes: list[Publish] = field(default_factory=list)
    published: int = 0
    unconfirmed: dict[int, Publish] = field(default_factory=dict)
    returns: list[tuple[Number, int]] = field(default_factory=list)
    last_tag: int = 0
    pulls_from: QueueModel | None = None
    pulls_no_ack: bool = False


class Client:
    """One connection. `answers` are the methods it got that are no deliveries, confirms or returns."""

    def __init__(self, lab: Lab, name: str, *, heartbeat_s: int, frame_max: int, capabilities: dict[str, bool]) -> None:
        self.peer = Peer(lab)
        self.name = name
        self.lab = lab
        self.capabilities = capabilities
        self.peer.open(heartbeat=heartbeat_s, frame_max=frame_max, capabilities=capabilities)
        self.heartbeat_s = heartbeat_s
        self.channels: dict[int, ChannelModel] = {}
        # Channels that the broker has closed, and whose close this client has not answered yet.
        self.closing: set[int] = set()
        # Consumers that the broker must cancel: their queues were deleted.
        self.bereft: list[tuple[int, ConsumerModel]] = []
        self.answers: list[tuple[int, base.Frame]] = []
        self.last_places: dict[QueueModel, int] = {}
        self.is_paused = False
        self.spoke_at = lab.now

    def __str__(self) -> str:
        return self.name

    def send(self, *frames: bytes) -> None:
        self.spoke_at = self.lab.now
        self.peer.send_bytes(b"".join(frames))

    # What it hears

    def listen(self) -> None:
        """Read everything that the broker has written, and check it."""
        data = b"".join(self.peer.session.take_output())
        content: list[Any] = []
        while len(data) >= 8:
            size, number, value = frame.unmarshal(data)
            data = data[size:]
            if isinstance(value, Heartbeat):
                continue
            if content and content[0][0] == number:
                content.append(value)
            elif isinstance(value, (Basic.Deliver, Basic.GetOk, Basic.Return)):
                demand(not content, f"{self}: a content is not whole")
                content = [(number, value)]
            else:
                demand(not content, f"{self}: a content is not whole")
                demand(isinstance(value, base.Frame), f"{self}: {value} stands alone")
                self._on_method(number, value)
            if len(content) > 1:
                content_header = content[1]
                demand(isinstance(content_header, header.ContentHeader), f"{self}: {content_header} is no header")
                pieces = content[2:]
                demand(all(isinstance(piece, body.ContentBody) for piece in pieces), f"{self}: body is missing")
                text = b"".join(piece.value for piece in pieces)
                if len(text) >= content_header.body_size:
                    demand(len(text) == content_header.body_size, f"{self}: a body is too long")
                    self._on_content(number, content[0][1], int(text.partition(b" ")[0]))
                    content = []
        demand(not content, f"{self}: the end of a content is missing")
        demand(not data, f"{self}: {data!r} is no frame")

    def _on_method(self, number: int, method: base.Frame) -> None:
        channel = self.channels.get(number)
        if isinstance(method, (Basic.Ack, Basic.Nack)):
            demand(channel is not None, f"{self}: {method.name} on the closed channel {number}")
            assert channel is not None
            self._on_confirm(channel, method)
        elif isinstance(method, Basic.Cancel):
            cancelled = [
                (at, consumer) for at, consumer in self.bereft if at == number and consumer.tag == method.consumer_tag
            ]
            demand(cancelled, f"{self}: {method.consumer_tag} on {number} is cancelled for no reason")
            demand(self.capabilities.get("consumer_cancel_notify"), f"{self}: gets a cancel it does not know")
            self.bereft.remove(cancelled[0])
        else:
            self.answers.append((number, method))

    def _on_confirm(self, channel: ChannelModel, confirm: Basic.Ack | Basic.Nack) -> None:
        assert confirm.delivery_tag is not None
        last = confirm.delivery_tag
        numbers = [n for n in channel.unconfirmed if n <= last] if confirm.multiple else [last]
        demand(numbers, f"{self}: {confirm.name} {last} confirms nothing")
        for number in numbers:
            demand(number in channel.unconfirmed, f"{self}: {confirm.name} {number} is confirmed twice or too early")
            publish = channel.unconfirmed.pop(number)
            demand(
                all(publish.number != returned for returned, _ in channel.returns),
                f"{self}: {number} is confirmed before it is returned",
            )
            if isinstance(confirm, Basic.Nack):
                demand(any(queue.rejects_publish for queue in publish.queues), f"{self}: {number} is nacked")

    def _on_content(self, at: int, method: base.Frame, number: Number) -> None:
        channel = self.channels.get(at)
        demand(channel is not None, f"{self}: {method.name} on the closed channel {at}")
        assert channel is not None
        if isinstance(method, Basic.Return):
            demand(channel.returns and channel.returns.pop(0)[0] == number, f"{self}: {number} is returned")
            return
        assert isinstance(method, (Basic.Deliver, Basic.GetOk))
        tag = method.delivery_tag
        demand(tag == channel.last_tag + 1, f"{self}: the tag {tag} follows {channel.last_tag}")
        assert tag is not None
        channel.last_tag = tag
        if isinstance(method, Basic.GetOk):
            assert channel.pulls_from is not None
            queue, needs_ack = channel.pulls_from, not channel.pulls_no_ack
            queue.deliver(number, bool(method.redelivered), needs_ack)
            demand(
                queue.is_limited or method.message_count == queue.ready_count,
                f"{self}: get-ok says {method.message_count}, but {queue.name} has {queue.ready_count}",
            )
            self.answers.append((at, method))
        else:
            consumer = channel.consumers.get(str(method.consumer_tag))
            demand(consumer is not None, f"{self}: {method.consumer_tag} gets {number}, but is no consumer")
            demand(not self.is_paused, f"{self}: gets {number} though it is paused")
            assert consumer is not None
            queue, needs_ack = consumer.queue, not consumer.no_ack
            place = queue.deliver(number, bool(method.redelivered), needs_ack)
            if not method.redelivered:
                demand(place > self.last_places.get(queue, -1), f"{self}: {number} comes out of order")
                self.last_places[queue] = place
        if needs_ack:
            channel.held[tag] = (queue, number)

    def answer(self, number: int, kind: type[base.Frame]) -> Any:
        """The answer to what was asked last, which must be of that kind and the only one."""
        demand(self.answers, f"{self}: {kind.name} is missing")
        at, method = self.answers.pop(0)
        text = getattr(method, "reply_text", "")
        demand(isinstance(method, kind) and at == number, f"{self}: {method.name} {text} on {at}, not {kind.name}")
        return method

    # What it loses

    def lose_channel(self, channel: ChannelModel) -> list[QueueModel]:
        """The channel is gone: what it held is ready again; returns the queues that it no longer consumes from."""
        del self.channels[channel.number]
        for queue, number in channel.held.values():
            queue.settle(number, requeue=True)
        for queue, number, _ in channel.settled.values():
            queue.settle(number, requeue=True)
        return [consumer.queue for consumer in channel.consumers.values()]

    def settle(self, channel: ChannelModel, tag: int, *, multiple: bool, requeue: bool) -> None:
        """The client settles something that it holds."""
        tags = [other for other in channel.held if tag in (0, other) or other < tag] if multiple else [tag]
        for other in tags:
            queue, number = channel.held.pop(other)
            if channel.mode == TRANSACTIONAL:
                channel.settled[other] = (queue, number, requeue)
            else:
                queue.settle(number, requeue)


CLOSE_CHANNEL = Channel.Close(200, "bye", 0, 0)
CLOSE_CONNECTION = Connection.Close(200, "bye", 0, 0)
