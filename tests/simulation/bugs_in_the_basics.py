"""Bugs to plant into what every broker does: order, channels, confirms, consumers and topology."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.message import Message
from amqp_broker.broker import vhost_deletions
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.client_channel import Delivery
from amqp_broker.broker.exchanges.exchange import Binding
from amqp_broker.broker.queues.arrival_backlog import ArrivalBacklog
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.consumer import Consumer
from amqp_broker.broker.queues.consumer_rotation import ConsumerRotation
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.vhost import VHost
from amqp_broker.session.channel.channel import Channel
from amqp_broker.session.channel.channel_consumer import ChannelConsumer
from amqp_broker.session.channel.channel_limit import ChannelLimit
from amqp_broker.session.channel.confirms import Confirms
from amqp_broker.session.methods.transactions import Transaction
from amqp_broker.session.session import Session
from tests.simulation.planting import plant, replace


@plant
def requeued_messages_go_to_the_end(patch: pytest.MonkeyPatch) -> None:
    def put_back(self: ArrivalBacklog, position: int, message: Message) -> int:
        deadline_ms = self._deadlines.pop(position, None)
        self.forget(position, message)
        return self.append(message, deadline_ms)

    def put_back_all(self: ArrivalBacklog, delivered: Sequence[tuple[int, Message]]) -> None:
        for position, message in delivered:
            put_back(self, position, message)

    patch.setattr(ArrivalBacklog, "put_back", put_back)
    patch.setattr(ArrivalBacklog, "put_back_all", put_back_all)


@plant
def new_messages_overtake_those_that_came_back(patch: pytest.MonkeyPatch) -> None:
    def make(push: Callable[[ClassicQueue, Message], None]) -> Any:
        def wrong(self: ClassicQueue, message: Message) -> None:
            backlog = self.backlog
            returned, backlog.returned = backlog.returned, []
            push(self, message)
            backlog.returned = [*returned, *backlog.returned]

        return wrong

    replace(patch, ClassicQueue, "push", make)


@plant
def a_closed_channel_loses_what_it_held(patch: pytest.MonkeyPatch) -> None:
    def take_unacked(self: Channel, reason: str) -> list[tuple[int, Delivery]]:
        for queue, _, position, message in self.unacked.deliveries.values():
            queue.unacked_count -= 1
            queue.forget(position, message)
        self.unacked.deliveries.clear()
        return []

    patch.setattr(Channel, "take_unacked", take_unacked)


@plant
def a_closed_channel_forgets_what_it_has_not_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "roll_back", lambda self, channel, reason: None)


@plant
def a_rollback_brings_tags_back_in_any_order(patch: pytest.MonkeyPatch) -> None:
    def make(roll_back: Callable[[Transaction, Channel, str], None]) -> Any:
        def wrong(self: Transaction, channel: Channel, reason: str) -> None:
            roll_back(self, channel, reason)
            unacked = channel.unacked
            unacked.deliveries = dict(reversed(unacked.deliveries.items()))

        return wrong

    replace(patch, Transaction, "roll_back", make)


@plant
def confirms_are_always_for_one(patch: pytest.MonkeyPatch) -> None:
    def send(self: Confirms, until: int, rejected: list[int]) -> None:
        channel = self._channel
        if until > channel.confirmed_count:
            channel.session.outbox.append(wire.ack_frame(channel.number, until, False))
        channel.confirmed_count = until

    patch.setattr(Confirms, "send", send)


@plant
def confirms_are_sent_twice(patch: pytest.MonkeyPatch) -> None:
    def make(send: Callable[[Confirms, int, list[int]], None]) -> Any:
        def wrong(self: Confirms, until: int, rejected: list[int]) -> None:
            confirmed = self._channel.confirmed_count
            send(self, until, rejected)
            if until % 7 == 3:
                self._channel.confirmed_count = confirmed
                send(self, until, rejected)

        return wrong

    replace(patch, Confirms, "send", make)


@plant
def a_full_consumer_takes_more(patch: pytest.MonkeyPatch) -> None:
    def make(deliver: Callable[..., None]) -> Any:
        def wrong(self: ChannelConsumer, message: Message, position: int, redelivered: bool) -> None:
            deliver(self, message, position, redelivered)
            self.is_full = False

        return wrong

    replace(patch, ChannelConsumer, "deliver", make)


@plant
def a_full_channel_takes_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChannelLimit, "is_reached", property(lambda self: False))


@plant
def an_ack_frees_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Channel, "mark_freed", lambda self, consumer: None)


@plant
def settling_does_not_count_in_the_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Channel, "finish", lambda self, delivery: None)


@plant
def a_paused_client_is_delivered_to(patch: pytest.MonkeyPatch) -> None:
    def pause(self: Session) -> None:
        self.is_backpressured = True

    patch.setattr(Session, "pause", pause)


@plant
def a_client_that_resumes_stays_out(patch: pytest.MonkeyPatch) -> None:
    def resume(self: Session, now: int) -> None:
        self.is_backpressured = False

    patch.setattr(Session, "resume", resume)


@plant
def a_cancelled_consumer_keeps_its_turn(patch: pytest.MonkeyPatch) -> None:
    def unsubscribe(self: Queue, consumer: Consumer) -> None:
        del self.consumers[consumer]

    patch.setattr(Queue, "unsubscribe", unsubscribe)


@plant
def a_portion_is_the_last_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Broker, "drain_on", lambda self: bool(self.undrained.clear()))


@plant
def a_deleted_queue_stays_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(vhost_deletions._Deletion, "_unbinding", lambda self, bindings: iter(()))


@plant
def bindings_that_are_about_to_be_removed_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Binding, "is_in_force", True)


@plant
def routes_are_remembered_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VHost, "topology_changed", lambda self: None)


@plant
def consumers_of_a_deleted_queue_are_not_told(patch: pytest.MonkeyPatch) -> None:
    def on_queue_deleted(self: ChannelConsumer) -> None:
        self.channel.consumers.pop(self.tag, None)

    patch.setattr(ChannelConsumer, "on_queue_deleted", on_queue_deleted)


@plant
def an_exclusive_queue_outlives_its_connection(patch: pytest.MonkeyPatch) -> None:
    def dismiss(self: Broker, connection: Session) -> None:
        self.connections.discard(connection)
        if connection.vhost is not None:
            connection.vhost.connections.discard(connection)

    patch.setattr(Broker, "dismiss", dismiss)


@plant
def a_purge_takes_what_is_unacked_too(patch: pytest.MonkeyPatch) -> None:
    def make(purge: Callable[[Queue], int]) -> Any:
        def wrong(self: Queue) -> int:
            self.unacked_count = 0
            return purge(self)

        return wrong

    replace(patch, BacklogQueue, "purge", make)


@plant
def what_came_back_is_not_marked(patch: pytest.MonkeyPatch) -> None:
    def make(pull: Callable[..., tuple[Message, int, bool] | None]) -> Any:
        def wrong(self: Queue, **options: bool) -> tuple[Message, int, bool] | None:
            pulled = pull(self, **options)
            return None if pulled is None else (pulled[0], pulled[1], False)

        return wrong

    replace(patch, BacklogQueue, "pull", make)


@plant
def priorities_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerRotation, "_line_up", lambda self, consumer: self.ready_consumers.append(consumer))
