"""A window is the input of a channel between two moments of rest. Equal brokers have equal lines.

Left open by RabbitMQ, and therefore normalized:

- The order of deliveries to different consumers, of confirms and of returns on one channel: each has lines of its own.
- The tags of deliveries to several consumers of a channel: they are given anew, consumer after consumer.
- The grouping of confirms: each publish has its verdict.
- The order of copies of a message that follow each other: the first publish of a channel to a quorum queue waits until
  the queue knows the channel, and a dead letter of the same publish may overtake it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from pamqp import commands
from pamqp.commands import Basic

from amqp_broker.conformance.received import Received
from amqp_broker.conformance.transcript import show_content, show_fields, show_method

_CONFIRMS = (Basic.Ack, Basic.Nack)


@dataclass(frozen=True)
class Delivery:
    """An unacked delivery; `last_tag` is the tag for an ack of all up to it that does not depend on the order."""

    tag: int
    last_tag: int


@dataclass
class Window:
    """The input of one channel, sorted by kind."""

    replies: list[Received] = field(default_factory=list)
    gets: list[Received] = field(default_factory=list)
    deliveries: dict[str, list[Received]] = field(default_factory=dict)
    cancels: list[Received] = field(default_factory=list)
    returns: list[Received] = field(default_factory=list)
    confirms: list[Received] = field(default_factory=list)

    def add(self, received: Received) -> None:
        if received.method is Basic.Deliver:
            self.deliveries.setdefault(received.fields["consumer_tag"], []).append(received)
        elif received.method is Basic.GetOk:
            self.gets.append(received)
        elif received.method is Basic.Cancel:
            self.cancels.append(received)
        elif received.method is Basic.Return:
            self.returns.append(received)
        elif received.method in _CONFIRMS:
            self.confirms.append(received)
        else:
            self.replies.append(received)


class Ledger:
    """The state of a channel as its client knows it."""

    def __init__(self) -> None:
        # The consumers in the order of their beginning, and whether they settle nothing.
        self.consumers: dict[str, bool] = {}
        self.unacked: list[Delivery] = []
        self.is_confirming = False
        self.published = 0
        self.unconfirmed: list[int] = []

    def count_publish(self) -> None:
        if self.is_confirming:
            self.published += 1
            self.unconfirmed.append(self.published)

    def lines(self, window: Window, is_ended: bool = False) -> Iterator[str]:
        """Yield the lines of a window; nothing is noted yet.

        RabbitMQ ends the channels of a connection one after the other, so one may still receive another's messages.
        """
        if is_ended:
            window = Window(replies=window.replies)
        for received in window.replies:
            yield from received.lines()
        # A cancellation by the broker and the answers to methods are not in a fixed order.
        yield from sorted(line for received in window.cancels for line in received.lines())
        contents = [*window.gets, *self._in_order(window)]
        tags = sorted(received.fields["delivery_tag"] for received in contents)
        for received, tag in zip(contents, tags, strict=True):
            assert received.method is not None
            fields = {**received.fields, "delivery_tag": tag}
            yield show_method(received.method) + show_fields(fields)
            yield "   " + show_content(received.properties or {}, received.body)
        for received in window.returns:
            yield from received.lines()
        yield from self._verdicts(window.confirms)

    def _in_order(self, window: Window) -> Iterator[Received]:
        known = [*self.consumers, *(received.fields["consumer_tag"] for received in _starts(window))]
        for tag in dict.fromkeys([*known, *window.deliveries]):
            for _, copies in groupby(window.deliveries.get(tag, []), lambda received: received.body):
                yield from sorted(copies, key=lambda received: show_content(received.properties or {}, b""))

    def _verdicts(self, confirms: Iterable[Received]) -> Iterator[str]:
        verdicts: dict[int, str] = {}
        for received in confirms:
            assert received.method is not None
            numbers = [number for number in self._covered(received) if number not in verdicts]
            if not numbers:
                yield f"{show_method(received.method)} of nothing"
            verdicts.update(dict.fromkeys(numbers, show_method(received.method)))
        for verdict, group in groupby(sorted(verdicts), verdicts.__getitem__):
            yield f"{verdict} for {', '.join(map(str, group))}"

    def _covered(self, confirm: Received) -> list[int]:
        tag = confirm.fields["delivery_tag"]
        if confirm.fields["multiple"]:
            return [number for number in self.unconfirmed if number <= tag or not tag]
        return [tag]

    def note(self, window: Window, no_ack: bool) -> None:
        """Note the effects of a window; `no_ack` is that of the consume or get that it answers."""
        for received in _starts(window):
            self.consumers[received.fields["consumer_tag"]] = no_ack
        for received in window.replies:
            if received.method is commands.Confirm.SelectOk:
                self.is_confirming = True
            elif received.method is Basic.RecoverOk:
                self.unacked.clear()
        settled = {number for confirm in window.confirms for number in self._covered(confirm)}
        self.unconfirmed = [number for number in self.unconfirmed if number not in settled]
        self._note_deliveries(window, no_ack)
        for received in (*window.replies, *window.cancels):
            if received.method in (Basic.CancelOk, Basic.Cancel):
                self.consumers.pop(received.fields["consumer_tag"], None)

    def _note_deliveries(self, window: Window, no_ack: bool) -> None:
        contents = [] if no_ack else window.gets
        contents = contents + [
            received for received in self._in_order(window) if not self.consumers.get(received.fields["consumer_tag"])
        ]
        tags = sorted(received.fields["delivery_tag"] for received in contents)
        is_mixed = len(window.deliveries) + bool(window.gets) > 1
        for received in contents:
            tag = received.fields["delivery_tag"]
            self.unacked.append(Delivery(tag, tags[-1] if is_mixed else tag))


def _starts(window: Window) -> list[Received]:
    return [received for received in window.replies if received.method is Basic.ConsumeOk]
