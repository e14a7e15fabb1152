"""A queue against a model of thirty lines, whatever its consumers do."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.amqp.message import Message
from tests.broker_parts import CollectingConsumer, new_message, new_queue, new_vhost
from tests.memory_journal import MemoryJournal
from tests.properties.generators import examples

MESSAGES = [new_message(b"x" * size, delivery_mode=mode) for size in (0, 1, 5) for mode in (1, 2)]


class Model:
    """Where each message is: `waiting` (with whether it was delivered before) or `owned`, by its position."""

    def __init__(self, length_max: int | None, bytes_max: int | None) -> None:
        self.length_max = length_max
        self.bytes_max = bytes_max
        self.messages: list[Message] = []
        self.waiting: dict[int, bool] = {}
        self.owned: dict[int, CollectingConsumer | None] = {}

    def arrive(self, message: Message) -> None:
        self.waiting[len(self.messages)] = False
        self.messages.append(message)

    def leave(self, owner: CollectingConsumer | None, is_settled: bool) -> tuple[int, bool]:
        """A consumer takes the first message in order."""
        position = min(self.waiting)
        if not is_settled:
            self.owned[position] = owner
        return position, self.waiting.pop(position)

    def come_back(self, position: int) -> None:
        del self.owned[position]
        self.waiting[position] = True
        self.drop()

    def drop(self) -> None:
        while self.waiting and self.is_over():
            del self.waiting[min(self.waiting)]

    def is_over(self) -> bool:
        size = sum(self.messages[position].body_bytes for position in self.waiting)
        return (self.length_max is not None and len(self.waiting) > self.length_max) or (
            self.bytes_max is not None and size > self.bytes_max
        )


class Checked(CollectingConsumer):
    """A consumer that asks the model about every delivery while it happens."""

    lab: Lab
    is_paused = False

    def can_take(self) -> bool:
        return not self.is_paused and super().can_take()

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        lab = self.lab
        assert self in lab.queue.consumers
        assert self.can_take(), "delivered to a consumer that has no room"
        rivals = [other for other in lab.collectors if other.is_taking and other.priority > self.priority]
        assert not any(other.can_take() for other in rivals), "a consumer of higher priority was passed over"
        assert (position, redelivered) == lab.model.leave(self, self.no_ack)
        assert message is lab.model.messages[position]
        super().deliver(message, position, redelivered)


class Lab:
    """The queue, its consumers and the model side by side. A verb's `number` says which of several it is about."""

    def __init__(self, length_max: int | None, bytes_max: int | None) -> None:
        limits = {"x-max-length": length_max, "x-max-length-bytes": bytes_max}
        arguments: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
        self.journal = MemoryJournal()
        self.queue = new_queue(new_vhost(self.journal), is_durable=True, arguments=arguments)
        self.model = Model(length_max, bytes_max)
        self.collectors: list[Checked] = []

    # Verbs

    def push(self, number: int) -> None:
        message = MESSAGES[number % len(MESSAGES)]
        self.model.arrive(message)
        self.queue.push(message)
        self.model.drop()

    def subscribe(self, number: int) -> None:
        prefetch, priority = number % 4, PRIORITIES[number // 4 % len(PRIORITIES)]
        collector = Checked(self.queue, prefetch=prefetch, priority=priority, no_ack=number % 7 == 0)
        collector.lab = self
        self.collectors.append(collector)
        collector.start()

    def unsubscribe(self, number: int) -> None:
        if self.collectors:
            self.collectors.pop(number % len(self.collectors)).stop()

    def fill_or_empty_its_socket(self, number: int) -> None:
        if not self.collectors:
            return
        collector = self.collectors[number % len(self.collectors)]
        collector.is_paused = not collector.is_paused
        if collector.is_paused:
            self.queue.rotation.suspend(collector)
        elif collector.can_take():
            self.queue.resume(collector)

    def ack(self, number: int) -> None:
        freed: list[CollectingConsumer | None] = []
        for position in self.some_owned(number):
            freed.append(self.model.owned.pop(position))
            self.queue.unacked_count -= 1
            self.queue.forget(position, self.model.messages[position])
        self.make_room(freed)

    def requeue(self, number: int) -> None:
        freed: list[CollectingConsumer | None] = []
        for position in self.some_owned(number):
            freed.append(self.model.owned[position])
            self.model.come_back(position)
            self.queue.requeue(position, self.model.messages[position])
        self.make_room(freed)
        self.queue.drain()

    def get(self, number: int) -> None:
        pulled = self.queue.pull()
        assert (pulled is None) == (not self.model.waiting)
        if pulled is None:
            return
        message, position, redelivered = pulled
        is_settled = number % 2 == 0
        assert (position, redelivered) == self.model.leave(None, is_settled)
        assert message is self.model.messages[position]
        if is_settled:
            self.queue.forget(position, message)
        else:
            self.queue.unacked_count += 1

    def purge(self, number: int) -> None:
        assert self.queue.purge() == len(self.model.waiting)
        self.model.waiting.clear()

    def some_owned(self, number: int) -> list[int]:
        """Positions of up to three unacked messages, in any order."""
        owned = sorted(self.model.owned)
        count = min(len(owned), 1 + number % 3)
        return list(dict.fromkeys(owned[(number // 3 + 5 * index) % len(owned)] for index in range(count)))

    def make_room(self, freed: list[CollectingConsumer | None]) -> None:
        """First count for all of them, then let them take: as a channel does for one read."""
        owners = [owner for owner in freed if owner is not None]
        for owner in owners:
            owner.in_flight -= 1
            owner.is_full = False
        for owner in owners:
            if owner in self.collectors and owner.can_take():
                self.queue.resume(owner)

    # Invariants

    def check(self) -> None:
        queue, model, collectors = self.queue, self.model, self.collectors
        assert queue.ready_count == len(model.waiting)
        assert queue.unacked_count == len(model.owned)
        assert not (model.waiting and any(collector.can_take() for collector in collectors)), (
            "a message waits for nothing"
        )
        line = list(queue.ready_consumers)
        assert set(line) == {collector for collector in collectors if collector.is_taking}
        assert {collector for collector in collectors if collector.can_take()} <= set(line)
        assert line == sorted(line, key=lambda collector: -collector.priority)

    def check_journal(self) -> None:
        """The journal holds exactly the messages that a restart must find."""
        here = {*self.model.waiting, *self.model.owned}
        assert self.journal.positions == sorted(
            position for position in here if self.model.messages[position].is_persistent
        )
        (buffer,) = self.queue.buffers
        assert buffer.stored_count == len(self.journal.disk.messages)
        assert buffer.stored_bytes == sum(stored.message.body_bytes for stored in self.journal.disk.messages.values())


PRIORITIES = (0, 0, 0, 1, -1)
VERBS = (
    [Lab.push] * 8
    + [Lab.subscribe] * 2
    + [Lab.ack] * 4
    + [Lab.requeue] * 4
    + [Lab.get] * 2
    + [Lab.unsubscribe, Lab.fill_or_empty_its_socket, Lab.fill_or_empty_its_socket, Lab.purge]
)
LIMITS = st.sampled_from([None, None, None, 0, 1, 4, 12])
STEP = st.tuples(st.integers(0, len(VERBS) - 1), st.integers(0, 1000))
# Lists that are as often long as short.
STEPS = st.integers(1, 100).flatmap(lambda count: st.lists(STEP, min_size=count, max_size=count))


@settings(max_examples=examples(4))
@given(LIMITS, LIMITS, STEPS)
def test_a_queue_does_what_the_model_says(
    length_max: int | None, bytes_max: int | None, steps: list[tuple[int, int]]
) -> None:
    lab = Lab(length_max, bytes_max)
    for verb, number in steps:
        VERBS[verb](lab, number)
        lab.check()
        if number % 5 == 0:
            lab.check_journal()
    lab.check_journal()
