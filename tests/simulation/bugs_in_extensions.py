"""Bugs to plant into RabbitMQ's extensions: time to live, dead letters, limits, queue types, policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from amqp_broker.amqp.message import Message, Properties
from amqp_broker.broker import vhost_policies
from amqp_broker.broker.admin import policy_merging
from amqp_broker.broker.admin.policies import Policies, Policy
from amqp_broker.broker.exchanges.exchange import Binding, DirectExchange, Exchange
from amqp_broker.broker.queues import queue_settings
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.dead_letter_reasons import EXPIRED, MAXLEN, REJECTED
from amqp_broker.broker.queues.expiry import Expiry
from amqp_broker.broker.queues.length_limit import LengthLimit
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.unused_expiry import UnusedExpiry
from amqp_broker.broker.routing import dead_letter
from amqp_broker.broker.routing.dead_letter import DeadForm
from amqp_broker.broker.vhost import VHost
from amqp_broker.session.connection.ack_timeouts import AckTimeouts
from amqp_broker.session.methods import basic_publish
from tests.simulation.planting import plant, replace

Delivered = Sequence[tuple[int, Message]]

# Time


@plant
def one_more_expires_than_is_due(patch: pytest.MonkeyPatch) -> None:
    def make(expire: Callable[[BacklogQueue[Any]], None]) -> Any:
        def wrong(self: BacklogQueue[Any]) -> None:
            before = self.ready_count
            expire(self)
            if self.ready_count < before and self.ready_count:
                self._discard_all([self._take_to_give_up()], EXPIRED)

        return wrong

    replace(patch, BacklogQueue, "expire", make)


@plant
def what_is_due_behind_the_head_expires(patch: pytest.MonkeyPatch) -> None:
    def make(expire: Callable[[BacklogQueue[Any]], None]) -> Any:
        def wrong(self: BacklogQueue[Any]) -> None:
            expire(self)
            if not isinstance(self, ClassicQueue):
                return
            now, ready, head = self.vhost.broker.now, self.backlog.ready, self.backlog.head
            due = [at for at in range(len(ready)) if self.deadlines.get(head + at, now + 1) <= now]
            if due and due == [len(ready) - 1]:
                self.deadlines.pop(head + due[0])
                ready.pop()

        return wrong

    replace(patch, BacklogQueue, "expire", make)


@plant
def the_expiration_of_a_message_overrides_its_queues(patch: pytest.MonkeyPatch) -> None:
    def make(push: Callable[..., None]) -> Any:
        def wrong(self: Queue, message: Message, expiration_ms: int | None = None) -> None:
            before = self.settings
            if expiration_ms is not None:
                self.settings = dataclasses.replace(before, message_ttl_ms=None)
            push(self, message, expiration_ms)
            self.settings = before

        return wrong

    replace(patch, BacklogQueue, "push_with_extras", make)


@plant
def what_is_due_is_delivered(patch: pytest.MonkeyPatch) -> None:
    replace(patch, BacklogQueue, "_drain_with_extras", lambda drain: lambda self, with_expired: drain(self, True))
    patch.setattr(BacklogQueue, "_requeue_together", requeue_without_expiry)


def requeue_without_expiry(self: BacklogQueue[Any], delivered: Delivered, *, has_failed: bool) -> None:
    self.unacked_count -= len(delivered)
    if not self.is_deleted:
        self._put_all_back(delivered)
        if self.limit.bytes_max is not None:
            self.limit.ready_bytes += sum(message.body_bytes for _, message in delivered)
        if self.limit.drops_head:
            self._drop_beyond_limit()


@plant
def a_requeue_forgets_the_deadline(patch: pytest.MonkeyPatch) -> None:
    def make(requeue: Callable[..., None]) -> Any:
        def wrong(self: BacklogQueue[Any], delivered: Delivered, *, has_failed: bool) -> None:
            for position, _ in delivered:
                self.deadlines.pop(position, None)
            requeue(self, delivered, has_failed=has_failed)

        return wrong

    replace(patch, BacklogQueue, "_requeue_together", make)


@plant
def a_settled_message_leaves_its_deadline(patch: pytest.MonkeyPatch) -> None:
    def forget(self: BacklogQueue[Any], position: int, message: Message) -> None:
        if self.range_id is not None:
            self.backlog.forget(position, message)

    patch.setattr(BacklogQueue, "forget", forget)


@plant
def the_timer_is_set_once_only(patch: pytest.MonkeyPatch) -> None:
    def make(wake_at: Callable[[Expiry, int], None]) -> Any:
        def wrong(self: Expiry, deadline: int) -> None:
            if self._timer is None:
                wake_at(self, deadline)

        return wrong

    replace(patch, Expiry, "_wake_at", make)


@plant
def timers_outlive_their_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Expiry, "stop", lambda self: None)
    patch.setattr(UnusedExpiry, "stop", lambda self: None)


@plant
def a_limit_by_policy_does_not_look_at_the_new_head(patch: pytest.MonkeyPatch) -> None:
    without_expiry(patch, "apply", lambda queue: True)


@plant
def nobody_looks_behind_the_last_that_is_delivered(patch: pytest.MonkeyPatch) -> None:
    without_expiry(patch, "_drain_with_extras", lambda queue: all(one.is_full for one in queue.ready_consumers))


def without_expiry(patch: pytest.MonkeyPatch, name: str, is_blind: Callable[[BacklogQueue[Any]], bool]) -> None:
    """Have nothing expire while a method runs and the condition holds."""
    inside: list[BacklogQueue[Any]] = []

    def make(method: Callable[..., None]) -> Any:
        def wrong(self: BacklogQueue[Any], *arguments: Any, **options: Any) -> None:
            inside.append(self)
            method(self, *arguments, **options)
            inside.pop()

        return wrong

    def make_expire(expire: Callable[[BacklogQueue[Any]], None]) -> Any:
        def wrong(self: BacklogQueue[Any]) -> None:
            if self not in inside or not is_blind(self):
                expire(self)

        return wrong

    replace(patch, BacklogQueue, name, make)
    replace(patch, BacklogQueue, "expire", make_expire)


@plant
def use_does_not_count_for_x_expires(patch: pytest.MonkeyPatch) -> None:
    def use(self: UnusedExpiry, now: int) -> None:
        if self._timer is None:
            self._start()

    patch.setattr(UnusedExpiry, "use", use)


@plant
def a_queue_with_consumers_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnusedExpiry, "_on_due", lambda self, now: self._delete())


@plant
def nobody_times_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AckTimeouts, "_timeout_ms", lambda self, queue: 0)


@plant
def everybody_times_out_after_the_shortest_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AckTimeouts, "_timeout_ms", lambda self, queue: 1000)


# Dead-lettering


def dead_message(patch: pytest.MonkeyPatch, spoil: Callable[[Queue, Message, Any], None]) -> None:
    """Change the properties of what has died."""

    def make(dead_form: Callable[..., DeadForm]) -> Any:
        def wrong(queue: Queue, message: Message, *others: Any) -> DeadForm:
            form = dead_form(queue, message, *others)
            properties = Properties.decode(form.property_list)
            spoil(queue, message, properties)
            form.headers, form.property_list = properties.headers or {}, properties.encode()
            return form

        return wrong

    replace(patch, dead_letter, "_make_dead_form", make)


@plant
def a_dead_letter_keeps_its_expiration(patch: pytest.MonkeyPatch) -> None:
    def spoil(queue: Queue, message: Message, properties: Any) -> None:
        properties.expiration = message.properties().expiration

    dead_message(patch, spoil)


@plant
def a_dead_letter_loses_its_cc(patch: pytest.MonkeyPatch) -> None:
    def spoil(queue: Queue, message: Message, properties: Any) -> None:
        properties.headers.pop("CC", None)

    dead_message(patch, spoil)


@plant
def the_first_death_is_told_anew_each_time(patch: pytest.MonkeyPatch) -> None:
    def spoil(queue: Queue, message: Message, properties: Any) -> None:
        properties.headers["x-first-death-queue"] = queue.name

    dead_message(patch, spoil)


@plant
def a_cycle_goes_round_three_times(patch: pytest.MonkeyPatch) -> None:
    def make(is_cycle: Callable[..., bool]) -> Any:
        def wrong(queue: str, deaths: list[dict[str, Any]]) -> bool:
            return is_cycle(queue, deaths) and max(death["count"] for death in deaths) > 2

        return wrong

    replace(patch, dead_letter, "is_cycle", make)


@plant
def a_rejected_message_does_not_come_back(patch: pytest.MonkeyPatch) -> None:
    def is_cycle(queue: str, deaths: list[dict[str, Any]]) -> bool:
        return any(death["queue"] == queue for death in deaths)

    patch.setattr(dead_letter, "is_cycle", is_cycle)


@plant
def deaths_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def make(with_death: Callable[..., list[dict[str, Any]]]) -> Any:
        def wrong(deaths: list[dict[str, Any]], death: dict[str, Any]) -> list[dict[str, Any]]:
            first, *others = with_death(deaths, death)
            return [{**first, "count": death["count"]}, *others]

        return wrong

    replace(patch, dead_letter, "with_death", make)


@plant
def the_oldest_death_is_told_first(patch: pytest.MonkeyPatch) -> None:
    def make(with_death: Callable[..., list[dict[str, Any]]]) -> Any:
        def wrong(deaths: list[dict[str, Any]], death: dict[str, Any]) -> list[dict[str, Any]]:
            known = with_death(deaths, death)
            # With a rejection among them they would go round for ever.
            is_finite = all(one["reason"] != REJECTED for one in known)
            return known[::-1] if is_finite else known

        return wrong

    replace(patch, dead_letter, "with_death", make)


@plant
def a_missing_dead_letter_exchange_is_an_error(patch: pytest.MonkeyPatch) -> None:
    def make(give_up: Callable[..., None]) -> Any:
        def wrong(self: Queue, message: Message, reason: str, **options: bool) -> None:
            if self.settings.dead_letter_exchange:
                self.vhost.exchange(self.settings.dead_letter_exchange)
            give_up(self, message, reason, **options)

        return wrong

    replace(patch, Queue, "_give_up", make)


@plant
def what_was_rejected_is_lost(patch: pytest.MonkeyPatch) -> None:
    def reject(self: BacklogQueue[Any], position: int, message: Message) -> None:
        self.unacked_count -= 1
        self.forget(position, message)

    patch.setattr(BacklogQueue, "reject", reject)


# Limits


@plant
def the_newest_is_dropped(patch: pytest.MonkeyPatch) -> None:
    def make(drop: Callable[[BacklogQueue[Any]], None]) -> Any:
        def wrong(self: BacklogQueue[Any]) -> None:
            limit = self.settings.length_max
            if not isinstance(self, ClassicQueue) or limit is None or self.settings.bytes_max is not None:
                drop(self)
                return
            backlog = self.backlog
            while backlog.ready and len(backlog) > limit:
                message, position = backlog.ready.pop(), backlog.head + len(backlog.ready)
                self.forget(position, message)
                self._give_up(message, MAXLEN)

        return wrong

    replace(patch, BacklogQueue, "_drop_beyond_limit", make)


@plant
def unacked_messages_count_against_the_limit(patch: pytest.MonkeyPatch) -> None:
    def make(drop: Callable[[BacklogQueue[Any]], None]) -> Any:
        def wrong(self: BacklogQueue[Any]) -> None:
            limit = self.settings.length_max
            while limit is not None and self.ready_count and self.ready_count + self.unacked_count > limit:
                self._discard_all([self._take_to_give_up()], MAXLEN)
            drop(self)

        return wrong

    replace(patch, BacklogQueue, "_drop_beyond_limit", make)


@plant
def one_more_than_the_limit_is_kept(patch: pytest.MonkeyPatch) -> None:
    def make(refuses: Callable[[LengthLimit, Message], bool]) -> Any:
        return lambda self, message: len(self._backlog) != self.length_max and refuses(self, message)

    replace(patch, LengthLimit, "refuses", make)


@plant
def octets_that_leave_are_still_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BacklogQueue, "_take_head", lambda self: self.backlog.pop_head())


@plant
def octets_that_come_back_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def make(requeue: Callable[..., None]) -> Any:
        def wrong(self: BacklogQueue[Any], delivered: Delivered, *, has_failed: bool) -> None:
            requeue(self, delivered, has_failed=has_failed)
            if self.limit.bytes_max is not None and not self.is_deleted:
                self.limit.ready_bytes -= sum(message.body_bytes for _, message in delivered)

        return wrong

    replace(patch, BacklogQueue, "_requeue_together", make)


@plant
def a_refused_publish_is_acked(patch: pytest.MonkeyPatch) -> None:
    def make(push: Callable[..., bool]) -> Any:
        def wrong(*arguments: Any) -> bool:
            push(*arguments)
            return True

        return wrong

    replace(patch, basic_publish, "push", make)


@plant
def what_is_refused_is_kept_all_the_same(patch: pytest.MonkeyPatch) -> None:
    def make(offer: Callable[..., bool]) -> Any:
        def wrong(self: Queue, message: Message, *publisher: object) -> bool:
            is_taken = offer(self, message, *publisher)
            if not is_taken:
                self.push(message)
            return is_taken

        return wrong

    replace(patch, Queue, "offer", make)


@plant
def what_is_refused_is_never_dead_lettered(patch: pytest.MonkeyPatch) -> None:
    def make(offer: Callable[..., bool]) -> Any:
        return lambda self, message, *publisher: not self.will_reject(message) and offer(self, message, *publisher)

    replace(patch, Queue, "offer", make)


# Policies


@plant
def a_cleared_policy_leaves_its_time_to_live(patch: pytest.MonkeyPatch) -> None:
    def make(apply_to_queue: Callable[[VHost, Queue], bool]) -> Any:
        def wrong(vhost: VHost, queue: Queue) -> bool:
            before = queue.settings.message_ttl_ms
            has_changed = apply_to_queue(vhost, queue)
            if has_changed and queue.policy is None and before is not None:
                queue.apply(dataclasses.replace(queue.settings, message_ttl_ms=before))
            return has_changed

        return wrong

    replace(patch, vhost_policies, "apply_to_queue", make)


@plant
def the_larger_of_two_numbers_counts(patch: pytest.MonkeyPatch) -> None:
    for module in (policy_merging, queue_settings):
        patch.setattr(module, "smaller", lambda key, one, other: max(one, other))


@plant
def operators_have_no_say_in_overflow(patch: pytest.MonkeyPatch) -> None:
    def make(operated: Callable[[str, Any, Any], Any]) -> Any:
        return lambda key, value, operators: value if key == "overflow" else operated(key, value, operators)

    replace(patch, policy_merging, "_operated", make)


@plant
def the_lowest_policy_applies(patch: pytest.MonkeyPatch) -> None:
    def policies(self: Policies) -> Iterator[Policy]:
        return iter(sorted(self._by_name.values(), key=lambda policy: (policy.priority, policy.name)))

    patch.setattr(Policies, "__iter__", policies)


@plant
def a_limit_by_policy_counts_for_new_messages_only(patch: pytest.MonkeyPatch) -> None:
    def make(apply: Callable[..., None]) -> Any:
        def wrong(self: BacklogQueue[Any], settings: Any) -> None:
            patch.setattr(BacklogQueue, "_drop_beyond_limit", lambda self: None)
            apply(self, settings)
            patch.setattr(BacklogQueue, "_drop_beyond_limit", drop)

        return wrong

    drop = BacklogQueue._drop_beyond_limit
    replace(patch, BacklogQueue, "apply", make)


@plant
def alternates_by_policy_are_not_followed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Exchange, "alternate", property(lambda self: self.arguments.get("alternate-exchange")))


@plant
def an_exchange_remembers_keys_that_nobody_is_bound_with(patch: pytest.MonkeyPatch) -> None:
    def unindex(self: DirectExchange, binding: Binding) -> None:
        self._by_key[binding.routing_key].pop(binding.destination, None)

    patch.setattr(DirectExchange, "_unindex", unindex)
