from __future__ import annotations

import pytest

from amqp_broker.broker.access import User
from amqp_broker.management.access import ADMINISTRATOR, ANYBODY, MANAGEMENT, MONITORING, POLICYMAKER, may


@pytest.mark.parametrize(
    ("tag", "allowed"),
    [
        ("administrator", {MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR}),
        ("monitoring", {MANAGEMENT, MONITORING}),
        ("policymaker", {MANAGEMENT, POLICYMAKER}),
        ("management", {MANAGEMENT}),
        ("impersonator", set()),
    ],
)
def test_a_tag_allows_what_it_includes(tag: str, allowed: set[str]) -> None:
    user = User("u", tags=frozenset({tag}))
    assert {needs for needs in (MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR) if may(user, needs)} == allowed


def test_anybody_may_what_needs_nothing() -> None:
    assert may(User("u"), ANYBODY)
