"""Bugs to plant into what the broker does wrong on command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from amqp_broker.broker.connection import Connection
from amqp_broker.broker.fault_rules import Rule
from amqp_broker.session import faults
from amqp_broker.session.channel import Channel
from amqp_broker.session.faults import Withheld
from tests.simulation.planting import plant, replace


@plant
def what_is_nacked_is_taken_all_the_same(patch: pytest.MonkeyPatch) -> None:
    def loses(rules: Sequence[Rule]) -> bool:
        return any(rule.action == "return" and not rule.is_routed for rule in rules)

    patch.setattr(faults, "loses", loses)


@plant
def a_later_confirm_stands_for_one_that_is_lost(patch: pytest.MonkeyPatch) -> None:
    def make(pass_over: Callable[[Withheld, Channel, int], list[int]]) -> Any:
        def wrong(self: Withheld, channel: Channel, until: int) -> list[int]:
            pass_over(self, channel, until)
            return []

        return wrong

    replace(patch, Withheld, "pass_over", make)


@plant
def a_late_confirm_comes_at_half_of_its_time(patch: pytest.MonkeyPatch) -> None:
    def make(add: Callable[..., None]) -> Any:
        def wrong(self: Withheld, number: int, delay_ms: int | None, is_nack: bool) -> None:
            add(self, number, delay_ms and delay_ms // 2, is_nack)

        return wrong

    replace(patch, Withheld, "add", make)


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
    def make(heard_acks: Callable[[Channel, list[Any]], list[Any]]) -> Any:
        def wrong(channel: Channel, deliveries: list[Any]) -> list[Any]:
            unacked = channel.unacked
            heard_acks(channel, deliveries)
            channel.unacked = unacked
            return deliveries

        return wrong

    replace(patch, faults, "heard_acks", make)


@plant
def a_rule_hits_once_too_often(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Rule, "is_spent", property(lambda self: self.on == "now" or (self.times is not None and self.hits > self.times))
    )

    def strikes(self: Rule) -> bool:
        self.matched += 1
        self.hits += self.matched > self.after
        return self.matched > self.after

    patch.setattr(Rule, "strikes", strikes)


@plant
def a_late_confirm_forgets_that_a_queue_refused(patch: pytest.MonkeyPatch) -> None:
    def make(add: Callable[..., None]) -> Any:
        def wrong(self: Withheld, number: int, delay_ms: int | None, is_nack: bool) -> None:
            add(self, number, delay_ms, False)

        return wrong

    replace(patch, Withheld, "add", make)
