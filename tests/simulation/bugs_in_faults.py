"""Bugs to plant into what the broker does wrong on command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.amqp.message import Message
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.client_connection import Connection
from amqp_broker.broker.lab import delivery_faults, publish_faults
from amqp_broker.broker.lab.connection_faults import ConnectionFaults
from amqp_broker.broker.lab.delivery_faults import DelayedDelivery, Handover
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.lab.withheld_confirms import WithheldConfirms
from amqp_broker.broker.queues.consumer import Consumer
from amqp_broker.session.channel.channel import Channel
from amqp_broker.session.channel.channel_consumer import ChannelConsumer
from amqp_broker.session.connection.heartbeats import Heartbeats
from amqp_broker.session.session import Session
from tests.simulation.planting import plant, replace


@plant
def what_is_nacked_is_taken_all_the_same(patch: pytest.MonkeyPatch) -> None:
    def make(discard: Callable[..., Any]) -> Any:
        def wrong(rules: Sequence[Rule], *facts: Any) -> Any:
            return discard([rule for rule in rules if rule.action != "confirm_nack"], *facts)

        return wrong

    replace(patch, publish_faults, "discard", make)


@plant
def a_later_confirm_stands_for_one_that_is_lost(patch: pytest.MonkeyPatch) -> None:
    def make(pass_over: Callable[..., list[int]]) -> Any:
        def wrong(self: WithheldConfirms, channel: Channel, until: int, traced: Mapping[int, Message]) -> list[int]:
            pass_over(self, channel, until, traced)
            return []

        return wrong

    replace(patch, WithheldConfirms, "pass_over", make)


@plant
def a_late_confirm_comes_at_half_of_its_time(patch: pytest.MonkeyPatch) -> None:
    def make(add: Callable[..., None]) -> Any:
        def wrong(self: WithheldConfirms, number: int, delay_ms: int | None, *others: Any) -> None:
            add(self, number, delay_ms and delay_ms // 2, *others)

        return wrong

    replace(patch, WithheldConfirms, "add", make)


@plant
def a_rule_of_one_vhost_touches_another(patch: pytest.MonkeyPatch) -> None:
    def make(matches: Callable[[Rule, Connection, str | None], bool]) -> Any:
        def wrong(self: Rule, connection: Connection, user: str | None = None) -> bool:
            vhost, self.vhost = self.vhost, None
            try:
                return matches(self, connection, user)
            finally:
                self.vhost = vhost

        return wrong

    replace(patch, Rule, "matches_connection", make)


@plant
def a_lost_ack_is_heard(patch: pytest.MonkeyPatch) -> None:
    def make(effective_acks: Callable[[Channel, list[Any]], list[Any]]) -> Any:
        def wrong(channel: Channel, deliveries: list[Any]) -> list[Any]:
            unacked = channel.unacked.deliveries
            effective_acks(channel, deliveries)
            channel.unacked.deliveries = unacked
            return deliveries

        return wrong

    replace(patch, delivery_faults, "effective_acks", make)


@plant
def a_rule_hits_once_too_often(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Rule, "is_spent", property(lambda self: self.on == "now" or (self.times is not None and self.hits > self.times))
    )

    def count_match(self: Rule) -> bool:
        self.matched += 1
        self.hits += self.matched > self.after
        return self.matched > self.after

    patch.setattr(Rule, "count_match", count_match)


@plant
def a_late_confirm_forgets_that_a_queue_refused(patch: pytest.MonkeyPatch) -> None:
    def make(add: Callable[..., None]) -> Any:
        def wrong(self: WithheldConfirms, number: int, delay_ms: int | None, is_nack: bool, *others: Any) -> None:
            add(self, number, delay_ms, False, *others)

        return wrong

    replace(patch, WithheldConfirms, "add", make)


# Deliveries


@plant
def what_is_late_comes_at_half_of_its_time(patch: pytest.MonkeyPatch) -> None:
    def make(start: Callable[[Rule, int], None]) -> Any:
        def wrong(self: Rule, seed: int) -> None:
            start(self, seed)
            if self.action == "delay_delivery":
                self.delay_ms = max(1, self.delay_ms // 2)

        return wrong

    replace(patch, Rule, "start", make)


@plant
def what_is_held_is_released_with_the_next(patch: pytest.MonkeyPatch) -> None:
    def make(release: Callable[..., int]) -> Any:
        def wrong(broker: Any, rule: Rule, count: int | None = None) -> int:
            found = release(broker, rule, count)
            if count is not None:
                release(broker, rule, min(1, len(rule.held)))
            return found

        return wrong

    replace(patch, delivery_faults, "release", make)


@plant
def what_was_released_before_it_came_is_held(patch: pytest.MonkeyPatch) -> None:
    def make(release: Callable[..., int]) -> Any:
        def wrong(broker: Any, rule: Rule, count: int | None = None) -> int:
            found = release(broker, rule, count)
            rule.allowed = 0
            return found

        return wrong

    replace(patch, delivery_faults, "release", make)


@plant
def what_is_late_has_no_place_among_the_unacked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChannelConsumer, "reserve", Consumer.reserve)
    patch.setattr(ChannelConsumer, "deliver_reserved", Consumer.deliver_reserved)
    patch.setattr(ChannelConsumer, "release", Consumer.release)


@plant
def what_is_late_keeps_its_place_when_it_is_not_to_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChannelConsumer, "release", Consumer.release)


@plant
def what_is_late_counts_as_delivered_at_once(patch: pytest.MonkeyPatch) -> None:
    def make(reserve: Callable[[ChannelConsumer], None]) -> Any:
        def wrong(self: ChannelConsumer) -> None:
            self.delivered += 1
            reserve(self)

        return wrong

    def make_delivery(deliver: Callable[..., None]) -> Any:
        def wrong(self: ChannelConsumer, *what: Any) -> None:
            self.delivered -= 1
            deliver(self, *what)

        return wrong

    replace(patch, ChannelConsumer, "reserve", make)
    replace(patch, ChannelConsumer, "deliver_reserved", make_delivery)


@plant
def what_is_late_is_lost_with_its_consumer(patch: pytest.MonkeyPatch) -> None:
    def make(come: Callable[[DelayedDelivery, int], None]) -> Any:
        def wrong(self: DelayedDelivery, now: int) -> None:
            queue, consumer, message, _, position, _ = self.handover
            if consumer in queue.consumers:
                come(self, now)
                return
            late = self._broker.faults.delayed.pop(queue)
            del late[position]
            if late:
                self._broker.faults.delayed[queue] = late
            queue.unacked_count -= 1
            queue.forget(position, message)
            consumer.release()

        return wrong

    replace(patch, DelayedDelivery, "__call__", make)


@plant
def what_was_late_and_came_back_is_late_again(patch: pytest.MonkeyPatch) -> None:
    class Forgetful(set[Any]):
        def add(self, element: Any) -> None:
            pass

    def make(init: Callable[[Rule], None]) -> Any:
        def wrong(self: Rule) -> None:
            init(self)
            self.delayed = Forgetful()

        return wrong

    replace(patch, Rule, "__post_init__", make)


@plant
def what_is_late_is_hit_by_no_other_rule(patch: pytest.MonkeyPatch) -> None:
    arrive = delivery_faults.arrive

    def wrong(broker: Broker, handover: Handover, *, is_late: bool = False) -> None:
        if is_late:
            handover.consumer.deliver_reserved(*handover[3:])
        else:
            arrive(broker, handover)

    patch.setattr(delivery_faults, "arrive", wrong)


@plant
def a_duplicate_is_not_told_to_be_one(patch: pytest.MonkeyPatch) -> None:
    def make(deliver_again: Callable[[ChannelConsumer, Message], None]) -> Any:
        def wrong(self: ChannelConsumer, message: Message) -> None:
            deliver_again(self, message)
            pieces = self.outbox.pieces
            pieces[pieces.index(message.address.suffix_redelivered)] = message.address.suffix

        return wrong

    replace(patch, ChannelConsumer, "deliver_again", make)


def change_duplicates(patch: pytest.MonkeyPatch, change: Callable[[ChannelConsumer, int], None]) -> None:
    """Do something with a consumer that settles, when a duplicate has gone to it under a tag."""

    def make(deliver_again: Callable[[ChannelConsumer, Message], None]) -> Any:
        def wrong(self: ChannelConsumer, message: Message) -> None:
            deliver_again(self, message)
            if not self.no_ack:
                change(self, self.unacked.last_tag)

        return wrong

    replace(patch, ChannelConsumer, "deliver_again", make)


@plant
def a_duplicate_that_is_rejected_comes_back(patch: pytest.MonkeyPatch) -> None:
    def change(consumer: ChannelConsumer, tag: int) -> None:
        queue, _, position, message = consumer.unacked.deliveries[tag - 1]
        queue.unacked_count += 1
        consumer.unacked.deliveries[tag] = queue, None, position, message
        consumer.unacked.duplicates.pop(tag)

    change_duplicates(patch, change)


@plant
def a_duplicate_counts_against_the_prefetch(patch: pytest.MonkeyPatch) -> None:
    def change(consumer: ChannelConsumer, tag: int) -> None:
        consumer.in_flight += 1

    change_duplicates(patch, change)


@plant
def acks_of_duplicates_are_counted(patch: pytest.MonkeyPatch) -> None:
    def make(settle_duplicates: Callable[[Channel, int, bool], None]) -> Any:
        def wrong(self: Channel, tag: int, multiple: bool) -> None:
            duplicate = self.unacked.duplicates.get(tag)
            settle_duplicates(self, tag, multiple)
            if duplicate is not None:
                self.count_ack(duplicate[0])

        return wrong

    replace(patch, Channel, "_settle_duplicates", make)


@plant
def a_consumer_is_told_that_it_is_cancelled_and_stays(patch: pytest.MonkeyPatch) -> None:
    def wrong(consumer: ChannelConsumer) -> None:
        consumer.session.send(consumer.number, commands.Basic.Cancel(consumer.tag, True))

    patch.setattr(delivery_faults, "cancel", wrong)


@plant
def who_is_cancelled_by_a_delivery_gives_back_what_he_has(patch: pytest.MonkeyPatch) -> None:
    def make(cancel: Callable[[ChannelConsumer], None]) -> Any:
        def wrong(consumer: ChannelConsumer) -> None:
            deliveries, is_there = consumer.unacked.deliveries, consumer in consumer.queue.consumers
            cancel(consumer)
            if is_there:
                held = [(tag, one) for tag, one in deliveries.items() if one[1] is consumer]
                for tag, _ in held:
                    del deliveries[tag]
                consumer.channel.settle_rejected(held, requeue=True)

        return wrong

    replace(patch, delivery_faults, "cancel", make)


@plant
def who_does_not_know_of_cancels_is_told_all_the_same(patch: pytest.MonkeyPatch) -> None:
    def make(cancel: Callable[[ChannelConsumer], None]) -> Any:
        def wrong(consumer: ChannelConsumer) -> None:
            is_there = consumer in consumer.queue.consumers
            cancel(consumer)
            if is_there and not consumer.session.has_capability("consumer_cancel_notify"):
                consumer.session.send(consumer.number, commands.Basic.Cancel(consumer.tag, True))

        return wrong

    replace(patch, delivery_faults, "cancel", make)


# Connections


@plant
def a_block_that_has_ended_ends_the_next(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Rule, connection: Connection) -> None:
        self.affected.pop(connection, None)

    patch.setattr(Rule, "release", wrong)


@plant
def the_first_block_that_ends_ends_all(patch: pytest.MonkeyPatch) -> None:
    def make(end: Callable[[ConnectionFaults, Rule], None]) -> Any:
        def wrong(self: ConnectionFaults, rule: Rule) -> None:
            for other in self.active:
                if rule in self.active and other.action == rule.action == "block" and other is not rule:
                    end(self, other)
            end(self, rule)

        return wrong

    replace(patch, ConnectionFaults, "end", make)


@plant
def a_block_outlives_its_rule(patch: pytest.MonkeyPatch) -> None:
    def make(end: Callable[[Session, Rule], None]) -> Any:
        def wrong(self: Session, rule: Rule) -> None:
            if rule.action != "block":
                end(self, rule)

        return wrong

    replace(patch, Session, "end_fault", make)


@plant
def unblocking_lifts_no_more_than_one_block(patch: pytest.MonkeyPatch) -> None:
    def make(apply: Callable[[ConnectionFaults, Rule, int | None], None]) -> Any:
        def wrong(self: ConnectionFaults, rule: Rule, channel: int | None) -> None:
            blocks = [one for one in self.active if one.action == "block"]
            if rule.action == "unblock" and blocks:
                self.end(blocks[0])
            else:
                apply(self, rule, channel)

        return wrong

    replace(patch, ConnectionFaults, "apply", make)


@plant
def who_is_blocked_is_dropped_for_saying_nothing(patch: pytest.MonkeyPatch) -> None:
    def make(check_received: Callable[[Heartbeats, int], None]) -> Any:
        def wrong(self: Heartbeats, now: int) -> None:
            session = self._session
            is_blocked, session.blocking.is_blocked = session.blocking.is_blocked, False
            check_received(self, now)
            session.blocking.is_blocked = is_blocked and session.state is not ENDED

        return wrong

    replace(patch, Heartbeats, "_check_received", make)


@plant
def heartbeats_do_not_stop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Heartbeats, "is_suppressed", property(lambda self: False, lambda self, value: None), raising=False)


@plant
def heartbeats_stay_away_when_their_rule_is_gone(patch: pytest.MonkeyPatch) -> None:
    def make(end: Callable[[Session, Rule], None]) -> Any:
        def wrong(self: Session, rule: Rule) -> None:
            end(self, rule)
            if rule.action == "stop_heartbeats" and self.heartbeats is not None:
                self.heartbeats.is_suppressed = True

        return wrong

    replace(patch, Session, "end_fault", make)
