"""A client of the simulation: its requests, the answers that it expects, and a check of each frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from pamqp import base, body, frame, header
from pamqp.commands import Basic, Channel, Connection
from pamqp.heartbeat import Heartbeat

from tests.peer import Lab, Peer
from tests.present import present
from tests.simulation.ledger import Broken, Copy, Heard, Message, demand, heard_in

if TYPE_CHECKING:
    from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
    from tests.simulation.delivery_faults import LateModel
    from tests.simulation.faults import RuleModel
    from tests.simulation.queues import QueueModel

PLAIN, CONFIRMING, TRANSACTIONAL = "plain", "confirming", "transactional"


@dataclass(eq=False)
class ConsumerModel:
    client: Client
    channel: ChannelModel
    tag: str
    queue: QueueModel
    no_ack: bool
    prefetch: int
    priority: int
    # Between becoming free and being seen to.
    is_asleep: bool = False
    # Later ones have higher numbers.
    number: int = field(default_factory=count().__next__)

    def can_take(self) -> bool:
        """Return whether it may get a message of its queue now."""
        if not self._is_attentive or self._is_held_back:
            return False
        return self.no_ack or not self.prefetch or self.in_flight < self.prefetch

    def may_have_taken(self) -> bool:
        """Return whether a message that came in this step may be its own.

        The broker chooses which queue it serves first, so one without acks may have had its turn before the channel
        reached its limit again.
        """
        return self.can_take() or (self.no_ack and self.channel.was_freed and self._is_attentive)

    @property
    def _is_attentive(self) -> bool:
        if self.is_asleep or self.client.is_paused or self.channel.consumers.get(self.tag) is not self:
            return False
        return not self.queue.is_single_active or (self.queue.active is self and not self.queue.is_quiescing)

    @property
    def _is_held_back(self) -> bool:
        """Return whether the limit of its channel is reached."""
        total = self.channel.prefetch_total
        return total > 0 and not self.queue.is_quorum and self.channel.in_flight >= total

    @property
    def is_leaving(self) -> bool:
        """Return whether it leaves in this step and returns further deliveries."""
        closed = [number for number, method in self.client.answers if isinstance(method, Channel.Close)]
        return self.client.is_lost or self.channel.number in closed

    @property
    def in_flight(self) -> int:
        held = sum(held.consumer is self for held in self.channel.unsettled.values())
        return held + sum(late.consumer is self for late in self.channel.late if not self.no_ack)

    def take_over(self) -> None:
        """Have what cancelled consumers with this tag hold of the queue.

        One without acknowledgements has only what they hold of a quorum queue.
        """
        if self.no_ack and not self.queue.is_quorum:
            return
        former = [
            held
            for held in self.channel.unsettled.values()
            if held.consumer is not None and (held.consumer.tag, held.consumer.queue) == (self.tag, self.queue)
        ]
        for held in former:
            held.consumer = self
        if self.prefetch:
            # A quorum queue counts them, others do not.
            self.prefetch = max(self.prefetch, len(former)) if self.queue.is_quorum else self.prefetch + len(former)

    def check_precedence(self, copy: Copy) -> None:
        """Check that no consumer of higher priority was entitled to the copy."""
        demand(
            not any(
                other.priority > self.priority and other.can_take() and not other.channel.was_freed
                for other in self.queue.consumers
            ),
            f"{self.client}: {self.tag} of priority {self.priority} gets {copy} before others",
        )


@dataclass
class Delivery:
    """A delivery to a consumer: basic.deliver and its content. A `late` one comes later, if the consumer stays."""

    consumer: ConsumerModel
    tag: int
    redelivered: bool
    heard: Heard
    late: DelayedDelivery | None = None

    def __repr__(self) -> str:
        again = "again " if self.redelivered else ""
        return f"{again}{self.heard} to {self.consumer.client}, {self.consumer.tag}"


@dataclass
class Publish:
    """A message on its way: `queues` is where it was routed when it was published."""

    message: Message
    queues: list[QueueModel]
    mandatory: bool
    is_acked: bool | None = None
    # Once the model knows: whether all queues took it, and whether it must be safe before it is confirmed.
    is_taken: bool | None = None
    must_be_safe: bool = False
    # Which batch of the journal it is in, if in any.
    batch: int = 0
    # Effects of faults: whether it is unroutable, how often it is returned, and the fate of its confirm.
    is_lost: bool = False
    returns: int = 0
    is_nacked: bool = False
    # A nack alone keeps it from its queues, so it is not unroutable.
    is_refused: bool = False
    is_unconfirmed: bool = False
    delay_ms: int = 0
    # When a confirm that is delayed may come, and (once it is on its way) when it must have.
    earliest_ms: int = 0
    latest_ms: int | None = None


@dataclass
class Held:
    """A delivery that is not settled, or not for good; `consumer` is None for basic.get."""

    copy: Copy
    consumer: ConsumerModel | None
    since_ms: int
    # The method of a transaction that has settled it.
    method: int = 0
    # The method among those of one read that settles it.
    frame: int = 0


@dataclass(eq=False)
class ChannelModel:
    """An open channel. `held` is what it has to settle, `settled` what it has settled (how?) and not committed."""

    number: int
    mode: str = PLAIN
    prefetch: int = 0
    # The limit of the channel as a whole, and the number of deliveries that count against it.
    prefetch_total: int = 0
    in_flight: int = 0
    consumers: dict[str, ConsumerModel] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)
    settled: dict[int, tuple[Held, str]] = field(default_factory=dict)
    # Deliveries that a fault holds back from its consumers.
    late: list[LateModel] = field(default_factory=list)
    # Set if its consumers may have become free in this step; the broker chooses their order.
    was_freed: bool = False
    publishes: list[Publish] = field(default_factory=list)
    published: int = 0
    unconfirmed: dict[int, Publish] = field(default_factory=dict)
    # Publishes that a fault never confirms.
    lost_confirms: set[int] = field(default_factory=set)
    returns: list[Publish] = field(default_factory=list)
    last_tag: int = 0
    got: tuple[Basic.GetOk, Heard] | None = None
    # Counts of this channel, and confirms by exchange.
    stats: Counter[str] = field(default_factory=Counter)
    confirmed: Counter[str] = field(default_factory=Counter)

    @property
    def unsettled(self) -> dict[int, Held]:
        return self.held | {tag: held for tag, (held, _) in self.settled.items()}

    def limit(self, total: int) -> None:
        """Limit all consumers of classic queues together; what is held when the first limit begins counts."""
        if total and not self.prefetch_total:
            self.in_flight = len(self.held) + sum(not late.consumer.no_ack for late in self.late)
        self.prefetch_total = total

    def count_in(self, consumer: ConsumerModel | None) -> None:
        """Count a delivery, unless it is one of a quorum queue or needs no settling."""
        if self.prefetch_total and consumer is not None and not consumer.no_ack and not consumer.queue.is_quorum:
            self.in_flight += 1

    def count_out(self, number: int) -> None:
        """Deliveries to consumers, of any queue, are settled at once."""
        if self.prefetch_total and self.in_flight:
            self.in_flight -= number

    def hold(self, tag: int, copy: Copy, consumer: ConsumerModel | None, no_ack: bool) -> None:
        if no_ack:
            copy.queue.settle(copy)
        else:
            self.held[tag] = Held(copy, consumer, copy.queue.world.now)

    def tags(self, tag: int, multiple: bool) -> list[int]:
        """The tags that a method settles."""
        return [other for other in sorted(self.held) if tag in (0, other) or other < tag] if multiple else [tag]

    def roll_back(self) -> None:
        self.publishes.clear()
        self.held |= {tag: held for tag, (held, _) in self.settled.items()}
        self.settled.clear()


class Client:
    """One connection. `answers` are the methods it got that are no deliveries, confirms, cancels or returns."""

    def __init__(
        self,
        lab: Lab,
        name: str,
        hear: Callable[[Delivery], None],
        count_confirms: Callable[[int], None],
        *,
        heartbeat_s: int,
        frame_max: int,
        capabilities: dict[str, bool],
    ) -> None:
        self.peer = Peer(lab)
        self.name = name
        self.lab = lab
        self.capabilities = capabilities
        self.peer.open(heartbeat=heartbeat_s, frame_max=frame_max, capabilities=capabilities)
        self.heartbeat_s = heartbeat_s
        self.channels: dict[int, ChannelModel] = {}
        # Channels that the broker has closed, and whose close this client has not answered yet.
        self.closing: set[int] = set()
        # Consumers (channel and tag) of deleted queues: those that expect basic.cancel, and those that got it.
        self.cancels_due: list[tuple[int, str]] = []
        self.cancels: list[tuple[int, str]] = []
        self.answers: list[tuple[int, Any]] = []
        self.is_paused = False
        self.is_lost = False
        self.spoke_at = self.heard_at = lab.now
        # Rules that affect it while they last; the start of its block, and the end of the time in which its silence is
        # excused; the notices that it must get (the reason of a block; None: unblocked), and those that it got.
        self.suffers_from: list[RuleModel] = []
        self.blocked_at = self.excused_until = 0
        self.notices_due: list[str | None] = []
        self.notices: list[str | None] = []
        self._hear = hear
        self._count_confirms = count_confirms

    def __str__(self) -> str:
        return self.name

    @property
    def blocked_by(self) -> list[RuleModel]:
        return [one for one in self.suffers_from if one.said["action"] == "block"]

    @property
    def is_mute(self) -> bool:
        """Return whether a fault stops its heartbeats."""
        return any(one.said["action"] == "stop_heartbeats" for one in self.suffers_from)

    def send(self, *frames: bytes) -> None:
        self.spoke_at = self.lab.now
        self.peer.send_bytes(b"".join(frames))

    # Frames that it receives

    def listen(self) -> None:
        """Read everything that the broker has written, and check what can be checked without the others."""
        if not self.peer.session.outbox.pieces:
            return
        data = b"".join(self.peer.session.outbox.take())
        self.heard_at = self.lab.now
        content: list[Any] = []
        while len(data) >= 8:
            size, number, value = frame.unmarshal(data)
            data = data[size:]
            if isinstance(value, Heartbeat):
                demand(not self.is_mute, f"{self}: a heartbeat, though they have stopped")
                continue
            if content and content[0][0] == number:
                content.append(value)
            elif isinstance(value, (Basic.Deliver, Basic.GetOk, Basic.Return)):
                demand(not content, f"{self}: a content is not whole")
                content = [(number, value)]
            else:
                demand(not content, f"{self}: a content is not whole")
                if not isinstance(value, base.Frame):
                    raise Broken(f"{self}: {value} stands alone")
                self._on_method(number, value)
            if len(content) > 1 and (heard := self._whole(content)) is not None:
                self._on_content(number, content[0][1], heard)
                content = []
        demand(not content, f"{self}: the end of a content is missing")
        demand(not data, f"{self}: {data!r} is no frame")

    def _whole(self, content: list[Any]) -> Heard | None:
        """Return a method with its content, or None while frames are missing."""
        (_, method), content_header, *pieces = content
        demand(isinstance(content_header, header.ContentHeader), f"{self}: {content_header} is no header")
        demand(all(isinstance(piece, body.ContentBody) for piece in pieces), f"{self}: body is missing")
        text = b"".join(piece.value for piece in pieces)
        if len(text) < content_header.body_size:
            return None
        demand(len(text) == content_header.body_size, f"{self}: a body is too long")
        return heard_in(method, content_header, text)

    def _on_method(self, number: int, method: base.Frame) -> None:
        if isinstance(method, (Basic.Ack, Basic.Nack)):
            channel = self.channels.get(number)
            demand(channel is not None, f"{self}: {method.name} on the closed channel {number}")
            assert channel is not None
            self._on_confirm(channel, method)
        elif isinstance(method, Basic.Cancel):
            demand(self.capabilities.get("consumer_cancel_notify"), f"{self}: gets a cancel it does not know")
            self.cancels.append((number, present(method.consumer_tag)))
        elif isinstance(method, (Connection.Blocked, Connection.Unblocked)):
            self.notices.append(getattr(method, "reason", None))
        else:
            self.answers.append((number, method))

    def _on_confirm(self, channel: ChannelModel, confirm: Basic.Ack | Basic.Nack) -> None:
        last = confirm.delivery_tag
        assert last is not None
        numbers = [n for n in channel.unconfirmed if n <= last] if confirm.multiple else [last]
        demand(numbers, f"{self}: {confirm.name} {last} confirms nothing")
        passed = channel.lost_confirms & set(range(1, last + 1) if confirm.multiple else [last])
        demand(not passed, f"{self}: {confirm.name} {last} confirms {passed}, whose confirm is lost")
        if isinstance(confirm, Basic.Ack):
            channel.stats["confirm"] += len(numbers)
            self._count_confirms(len(numbers))
        for number in numbers:
            demand(number in channel.unconfirmed, f"{self}: {confirm.name} {number} is confirmed twice or too early")
            publish = channel.unconfirmed.pop(number)
            demand(self.lab.now >= publish.earliest_ms, f"{self}: {number} is confirmed before its delay is over")
            demand(publish not in channel.returns, f"{self}: {number} is confirmed before it is returned")
            publish.is_acked = isinstance(confirm, Basic.Ack)
            channel.confirmed[publish.message.exchange] += publish.is_acked
            if publish.is_taken is not None:
                self.check_confirm(publish)

    def check_confirm(self, publish: Publish) -> None:
        """It has a confirm, and the right one; and what must be safe then is."""
        demand(publish.is_acked == publish.is_taken, f"{self}: {publish} is refused={not publish.is_taken}")
        committed = self.lab.broker.journal.committed
        demand(
            not publish.must_be_safe or publish.batch <= committed,
            f"{self}: {publish} is confirmed after batch {committed}",
        )

    def _on_content(self, at: int, method: base.Frame, heard: Heard) -> None:
        channel = self.channels.get(at)
        demand(channel is not None, f"{self}: {method.name} on the closed channel {at}")
        assert channel is not None
        if isinstance(method, Basic.Return):
            demand(channel.returns, f"{self}: {heard} is returned")
            expected = channel.returns.pop(0).message.heard()
            demand(heard == expected, f"{self}: {heard} is returned, not {expected}")
            return
        assert isinstance(method, (Basic.Deliver, Basic.GetOk))
        tag = method.delivery_tag
        demand(tag == channel.last_tag + 1, f"{self}: the tag {tag} follows {channel.last_tag}")
        assert tag is not None
        channel.last_tag = tag
        if isinstance(method, Basic.GetOk):
            channel.got = (method, heard)
            self.answers.append((at, method))
            return
        consumer = channel.consumers.get(str(method.consumer_tag))
        demand(consumer is not None, f"{self}: {method.consumer_tag} gets {heard}, but is no consumer")
        assert consumer is not None
        is_due = any(late.consumer is consumer and late.due_ms == self.lab.now for late in channel.late)
        demand(is_due or not self.is_paused, f"{self}: gets {heard} though it is paused")
        self._hear(Delivery(consumer, tag, bool(method.redelivered), heard))

    def expect_cancel(self, consumer: ConsumerModel) -> None:
        """The broker has ended a subscription, which those must hear of who understand it."""
        if self.capabilities.get("consumer_cancel_notify"):
            self.cancels_due.append((consumer.channel.number, consumer.tag))

    def expect_notice(self, reason: str | None) -> None:
        """It is blocked for a reason, or (None) not any more, which those must hear of who understand it."""
        if self.capabilities.get("connection.blocked"):
            self.notices_due.append(reason)

    def answer(self, number: int, kind: type[base.Frame]) -> Any:
        """The answer to what was asked last, which must be of that kind and the only one."""
        demand(self.answers, f"{self}: {kind.name} is missing")
        at, method = self.answers.pop(0)
        text = getattr(method, "reply_text", "")
        demand(isinstance(method, kind) and at == number, f"{self}: {method.name} {text} on {at}, not {kind.name}")
        return method

    def overdue(self, by_ms: int = 0) -> list[ChannelModel]:
        """Channels whose oldest delivery is older than its queue allows, by so much."""
        found = []
        for channel in self.channels.values():
            if channel.held:
                oldest = channel.held[min(channel.held)]
                timeout_ms = oldest.copy.queue.settings.consumer_timeout_ms
                if timeout_ms and self.lab.now - oldest.since_ms >= timeout_ms + by_ms:
                    found.append(channel)
        return found
