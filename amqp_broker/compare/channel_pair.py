"""One channel of a client at both brokers: requests and answers of each, matched with one another."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from pamqp import base, commands

from amqp_broker.amqp.frames import METHOD_ID, NACK, PUBLISH, SETTLE, ack_frame, method_frame
from amqp_broker.amqp.message import CONTENT, FRAME, FRAME_BODY, FRAME_HEADER
from amqp_broker.amqp.methods import encode_method
from amqp_broker.compare import deliveries, gets, method_facts
from amqp_broker.compare.client_requests import LOCAL, UPSTREAM, Answer, ClientRequest, Consumer, Side, copy_of
from amqp_broker.compare.deliveries import Copies, Held
from amqp_broker.compare.method_reader import Frame, Received
from amqp_broker.shovel.amqp_client import call

if TYPE_CHECKING:
    from amqp_broker.compare.connection_pair import ConnectionPair

# Message counts, and the result of a get, are compared only if the vhost has not changed for this long.
QUIET_MS: Final = 1000

# Offset that makes a tag invalid.
UNKNOWN_TAGS: Final = 1 << 40

# Methods after which other objects may auto-delete; the upstream does that a moment later.
_DELETING: Final = (
    commands.Basic.Cancel,
    commands.Channel.Close,
    commands.Queue.Delete,
    commands.Queue.Unbind,
    commands.Exchange.Delete,
    commands.Exchange.Unbind,
)
NOT_COMPARED: Final = "amqp-broker has closed this channel, so it is no longer compared"
VANISHED: Final = "no longer compared: the object was being deleted at the upstream, and was gone at amqp-broker"
_PUBLISH: Final = METHOD_ID.pack(PUBLISH)
_REPLIES: Final = "replies"
_NOTICES: Final = {commands.Basic.Return: "returns", commands.Basic.Cancel: "cancels"}


class ChannelPair:
    """Matches the answers on one channel."""

    def __init__(self, connection: ConnectionPair, number: int) -> None:
        self.connection = connection
        self.number = number
        self.sides = (Side(), Side())
        # By kind: answers that only one of the brokers has given so far.
        self.lanes: dict[str, tuple[deque[Answer], deque[Answer]]] = {}
        self.confirms: dict[int, tuple[int, Answer]] = {}
        self.is_confirming = False
        self.publish_count = 0
        self.last_publish: ClientRequest | None = None
        self.last_queue = ""
        # The last request by method index: a close names the method that caused it.
        self.last_asked: dict[int, ClientRequest] = {}
        # Unsettled deliveries by tag: `unacked` of the upstream, `held` of the local broker.
        self.unacked: dict[int, Copies] = {}
        self.held: dict[int, Copies] = {}
        self.was_closed_by_local = False
        # Until close-ok, the local broker still answers for the previous channel of this number.
        self.ignores_local = False
        # The local broker has closed the channel, and the upstream has not.
        self.is_lost = False
        self.has_ended = False
        self._awaits_header = False
        self._content_bytes_left = 0
        self._deferred: list[bytes] = []

    # From the client

    def from_client(self, frame: Frame, method: base.Frame | None, now: int) -> None:
        """Play a frame to the local broker, with its generated names. `method` is None for content."""
        if method is None:
            if not self.is_lost:
                self.connection.play_content(frame)
            self._follow_content(frame)
            return
        if self.is_lost:
            return
        if isinstance(method, commands.Basic.Publish):
            self._publish(method, now)
        elif isinstance(method, (commands.Basic.Ack, commands.Basic.Nack, commands.Basic.Reject)):
            if self._settle(method, now):
                return
        elif isinstance(method, commands.Channel.CloseOk):
            self._close_ok()
            return
        else:
            self._ask(method, now)
        is_translated = self.connection.state.names.translate(method)
        # The local broker gets with ack, so that a wrong message can be requeued.
        if isinstance(method, commands.Basic.Get) and method.no_ack:
            method.no_ack, is_translated = False, True
        self.play(method_frame(self.number, encode_method(method)) if is_translated else frame.octets)

    def _publish(self, method: base.Frame, now: int) -> None:
        self._awaits_header = True
        asked = self.last_asked[method.index] = ClientRequest(copy_of(method), now)
        self.connection.vhost_changed(now)
        if self.is_confirming:
            self.publish_count += 1
            self.last_publish = asked
            for side in self.sides:
                side.unconfirmed[self.publish_count] = None

    def _ask(self, method: Any, now: int) -> None:
        """Note a request that both brokers answer."""
        asked = self.last_asked[method.index] = ClientRequest(copy_of(method), now)
        if isinstance(method, (commands.Basic.Consume, commands.Basic.Get)):
            asked.queue = method.queue or self.last_queue
        if isinstance(method, commands.Basic.Consume) and method.nowait:
            for side in self.sides:
                side.consumers[method.consumer_tag] = Consumer(asked.queue, method.no_ack, asked.text)
        if isinstance(method, commands.Queue.Declare) and method.nowait:
            self.last_queue = method.queue
        if isinstance(method, commands.Confirm.Select):
            self.is_confirming = True
        if isinstance(method, (commands.Basic.Recover, commands.Basic.RecoverAsync)):
            self._forget_all()
        if isinstance(method, (commands.Basic.Consume, commands.Queue.Purge, *_DELETING)):
            self.connection.vhost_changed(now)
        if isinstance(method, _DELETING):
            self.connection.state.deleted_ms[self.connection.vhost] = now
        if method.synchronous and not getattr(method, "nowait", False):
            for side in self.sides:
                side.asked.append(asked)

    def _follow_content(self, frame: Frame) -> None:
        if self._awaits_header and frame.kind == FRAME_HEADER and len(frame.payload) >= CONTENT.size:
            self._content_bytes_left = CONTENT.unpack_from(frame.payload)[2]
        elif frame.kind == FRAME_BODY:
            self._content_bytes_left -= len(frame.payload)
        self._awaits_header = False
        if self._content_bytes_left <= 0 and self._deferred:
            deferred, self._deferred = self._deferred, []
            for octets in deferred:
                self.connection.play(octets)

    def _settle(self, method: Any, now: int) -> bool:
        """Settle at the local broker what the client settles; return False to play an unknown tag unchanged."""
        multiple = getattr(method, "multiple", False)
        tag = method.delivery_tag
        if multiple:
            tags = [one for one in self.unacked if one <= tag or tag == 0]
        else:
            tags = [tag] if tag in self.unacked else []
        if not tags:
            if multiple and tag == 0:
                return True
            if tag in self.held:
                # This tag is another message at the local broker, which must answer "unknown delivery tag".
                method.delivery_tag = tag + UNKNOWN_TAGS
                self.play(method_frame(self.number, encode_method(method)))
                return True
            return False
        self.connection.vhost_changed(now)
        how = deliveries.ACK
        if not isinstance(method, commands.Basic.Ack):
            how = deliveries.REQUEUE if method.requeue else deliveries.NACK
        asked = method_facts.show(Received(self.number, method))
        for one in tags:
            self.connection.state.deliveries.settle(self.unacked.pop(one), self, how, now, asked)
        return True

    def _close_ok(self) -> None:
        """Handle the client's close-ok to the upstream's close."""
        self.has_ended = True
        if self.was_closed_by_local:
            self.play(method_frame(self.number, encode_method(commands.Channel.CloseOk())))
        elif not self.connection.is_lost:
            for upstream in list(self._lane(_REPLIES)[UPSTREAM]):
                self.compare(upstream, None)
            self.play(method_frame(self.number, encode_method(_close("the upstream has closed it"))))
            self.ignores_local = True
        self.end()

    def play(self, octets: bytes) -> None:
        """Play a method frame; within the content of a publish, defer it until the content is complete."""
        is_within = self._awaits_header or self._content_bytes_left > 0
        if is_within and octets[FRAME.size :][:4] != _PUBLISH:
            self._deferred.append(octets)
        else:
            self.connection.play(octets)

    # From the brokers

    def from_broker(self, side: int, said: Received, now: int) -> None:
        method = said.method
        if side == LOCAL:
            if self.ignores_local:
                self.ignores_local = not isinstance(method, commands.Channel.CloseOk)
                return
            if self.is_lost:
                return
            if isinstance(method, commands.Channel.Close):
                self.was_closed_by_local = True
                self._forget_held()
        if self.is_lost:
            self.has_ended |= isinstance(method, (commands.Channel.CloseOk, commands.Channel.Close))
        elif isinstance(method, commands.Basic.Deliver):
            self._deliver(side, said, now)
        elif isinstance(method, (commands.Basic.Ack, commands.Basic.Nack)):
            self._confirm(side, said, now)
        elif (lane := _NOTICES.get(type(method))) is not None:
            self._add(lane, side, Answer(said, self._asked_for(said), now))
        else:
            self._reply(side, said, now)

    def _deliver(self, side: int, said: Received, now: int) -> None:
        self.connection.vhost_changed(now)
        consumer = self.sides[side].consumers.get(said.method.consumer_tag)
        if consumer is None:
            return
        state = self.connection.state
        copies = state.deliveries.copies(self.connection.vhost, consumer.queue, said)
        if side == UPSTREAM:
            if not consumer.no_ack:
                self.unacked[said.method.delivery_tag] = copies
            state.deliveries.on_upstream(copies, self, said, consumer.asked, now)
        else:
            if not consumer.no_ack:
                self.held[said.method.delivery_tag] = copies
            state.deliveries.on_local(copies, self, said, consumer.asked, now, not consumer.no_ack)

    def _confirm(self, side: int, said: Received, now: int) -> None:
        unconfirmed, tag = self.sides[side].unconfirmed, said.method.delivery_tag
        if said.method.multiple:
            numbers = []
            for number in unconfirmed:
                if number > tag and tag:
                    break
                numbers.append(number)
        else:
            numbers = [tag] if tag in unconfirmed else []
        for number in numbers:
            del unconfirmed[number]
            answer = Answer(said, self.last_publish, now)
            first = self.confirms.pop(number, None)
            if first is None:
                self.confirms[number] = side, answer
            else:
                pair = (first[1], answer) if side == LOCAL else (answer, first[1])
                self.compare(*pair)

    def _reply(self, side: int, said: Received, now: int) -> None:
        method, own = said.method, self.sides[side]
        asked: ClientRequest | None
        if side == LOCAL and isinstance(method, (commands.Queue.DeclareOk, commands.Exchange.DeclareOk)) and own.asked:
            self.connection.state.remember(self.connection.vhost, declared(own.asked[0].method))
        if isinstance(method, (commands.Channel.Close, commands.Channel.Flow)):
            asked = self._asked_for(said)
        else:
            asked = own.asked.popleft() if own.asked else None
        if asked is not None and asked.search is not None and side == LOCAL:
            gets.on_found(self, asked.search, said, now)
            return
        if isinstance(method, commands.Basic.ConsumeOk) and asked is not None:
            own.consumers[said.method.consumer_tag] = Consumer(asked.queue, asked.method.no_ack, asked.text)
        elif isinstance(method, commands.Queue.DeclareOk) and side == UPSTREAM:
            self.last_queue = said.method.queue
        self._add(_REPLIES, side, Answer(said, asked, now))
        if side == UPSTREAM and isinstance(method, commands.Channel.CloseOk):
            self.end()

    def _asked_for(self, said: Received) -> ClientRequest | None:
        """Return the request that a close names; a return belongs to the last publish."""
        method: Any = said.method
        if isinstance(method, commands.Channel.Close):
            return self.last_asked.get(said.method.class_id << 16 | said.method.method_id)
        return self.last_asked.get(commands.Basic.Publish.index) if said.content is not None else None

    # Comparing

    def _lane(self, name: str) -> tuple[deque[Answer], deque[Answer]]:
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes[name] = deque(), deque()
        return lane

    def _add(self, name: str, side: int, answer: Answer) -> None:
        lane = self._lane(name)
        lane[side].append(answer)
        while lane[UPSTREAM] and lane[LOCAL] and not self.is_lost:
            self.compare(lane[UPSTREAM].popleft(), lane[LOCAL].popleft())

    def compare(self, upstream: Answer, local: Answer | None) -> None:
        """Compare two answers; `local` is None if the local broker gave none."""
        state = self.connection.state
        state.report.compared_count += 1
        kinds = {type(answer.said.method) for answer in (upstream, local) if answer is not None}
        if local is not None and kinds <= {commands.Basic.GetOk, commands.Basic.GetEmpty}:
            gets.compare(self, upstream, local)
            return
        if local is not None and len(kinds) == 1:
            self._pair_names(upstream.said.method, local.said.method)
            with_counts = self.is_quiet(upstream.asked)
            if method_facts.facts(upstream.said, state.names, with_counts) == method_facts.facts(
                local.said, state.names, with_counts
            ):
                return
        if local is not None and self._is_vanishing(upstream):
            if not isinstance(upstream.said.method, commands.Channel.Close):
                state.report.note(f"connection {self.connection.number}, channel {self.number}: {VANISHED}")
                self.lose()
            return
        is_lost = commands.Channel.Close in kinds and not isinstance(upstream.said.method, commands.Channel.Close)
        self.tell(upstream, local, NOT_COMPARED if is_lost else "")
        if is_lost:
            self.lose()

    def _is_vanishing(self, upstream: Answer) -> bool:
        """Return whether this is a passive declare of an object that may be auto-deleting right now."""
        asked, state = upstream.asked, self.connection.state
        if asked is None or not getattr(asked.method, "passive", False):
            return False
        if (self.connection.vhost, declared(asked.method)) not in state.declared:
            return False
        return asked.at_ms - self.connection.state.deleted_ms.get(self.connection.vhost, 0) < QUIET_MS

    def _pair_names(self, upstream: Any, local: Any) -> None:
        for field_name in ("queue", "consumer_tag"):
            name, of_local = getattr(upstream, field_name, ""), getattr(local, field_name, "")
            if name and of_local and method_facts.is_generated(name) and method_facts.is_generated(of_local):
                self.connection.state.names.pair(name, of_local)

    def is_quiet(self, asked: ClientRequest | None) -> bool:
        return asked is not None and asked.at_ms - self.connection.vhost_changed_ms >= QUIET_MS

    def tell(self, upstream: Answer | None, local: Answer | None, note: str = "") -> None:
        answer = upstream or local
        assert answer is not None, "one of the brokers has answered"
        self.report(
            answer.asked.text if answer.asked else "",
            method_facts.show(upstream.said if upstream else None),
            method_facts.show(local.said if local else None),
            note,
        )

    # Deliveries

    def settle(self, tag: int, how: str) -> None:
        """Settle this delivery at the local broker."""
        self.held.pop(tag, None)
        if self.is_lost or self.was_closed_by_local:
            return
        if how == deliveries.ACK:
            self.play(ack_frame(self.number, tag, False))
        else:
            self.play(method_frame(self.number, SETTLE.pack(NACK, tag, 2 if how == deliveries.REQUEUE else 0)))

    def report(self, asked: str, upstream: str, local: str, note: str = "") -> None:
        self.connection.report(self.number, asked, upstream, local, note)

    def on_ahead(self, count: int) -> None:
        """Change the number of messages that only the local broker has delivered here by `count`."""
        self.connection.ahead_count += count

    def on_behind(self, count: int) -> None:
        """Change the number of messages that only the upstream has delivered here by `count`."""
        self.connection.behind_count += count

    @property
    def is_over(self) -> bool:
        """True if the client has closed the channel or disconnected."""
        return self.has_ended or self.is_lost or self.connection.is_over

    @property
    def is_behind(self) -> bool:
        return self.connection.is_behind

    # The end

    def lose(self) -> None:
        """Stop comparing: the local broker has closed the channel, and the upstream has not."""
        self.is_lost = True
        self.connection.play(method_frame(self.number, encode_method(commands.Channel.CloseOk())))
        self._forget_all()
        self.lanes.clear()
        self.confirms.clear()

    def end(self) -> None:
        """The client has closed the channel or disconnected: report the answers that only the upstream gave."""
        self.has_ended = True
        if not self.is_lost and not self.connection.is_lost:
            for lane in self.lanes.values():
                while (
                    lane[UPSTREAM]
                    and not lane[LOCAL]
                    and not isinstance(lane[UPSTREAM][0].said.method, commands.Channel.CloseOk)
                ):
                    self.compare(lane[UPSTREAM].popleft(), None)
        self._forget_all()

    def tick(self, since: int) -> None:
        """Report the answers that only one broker has given, if they came before `since`."""
        for name, lane in list(self.lanes.items()):
            while lane[UPSTREAM] and lane[UPSTREAM][0].at_ms <= since:
                self.compare(lane[UPSTREAM].popleft(), None)
            while lane[LOCAL] and lane[LOCAL][0].at_ms <= since and not self.is_behind:
                first = lane[LOCAL][0]
                is_close = isinstance(first.said.method, commands.Channel.Close)
                if name == _REPLIES and not is_close:
                    break  # the client is still waiting for the upstream
                self.tell(None, lane[LOCAL].popleft(), NOT_COMPARED if is_close else "")
                if is_close:
                    self.lose()
                    return
        for number, (side, answer) in list(self.confirms.items()):
            if answer.at_ms > since:
                break
            if side == UPSTREAM or not self.is_behind:
                del self.confirms[number]
                self.tell(*((answer, None) if side == UPSTREAM else (None, answer)))

    def _forget_held(self) -> None:
        """The local broker has requeued its unsettled deliveries."""
        held, self.held = self.held, {}
        for tag, copies in held.items():
            self.connection.state.deliveries.forget_held(copies, Held(self, tag))

    def _forget_all(self) -> None:
        """Both brokers have requeued their unsettled deliveries."""
        self.unacked.clear()
        self._forget_held()


def declared(method: Any) -> tuple[str, str]:
    """Return kind and name of the declared object."""
    if isinstance(method, commands.Queue.Declare):
        return "queue", method.queue or ""
    return "exchange", getattr(method, "exchange", "")


def _close(text: str) -> base.Frame:
    return call(commands.Channel.Close, reply_code=200, reply_text=text)
