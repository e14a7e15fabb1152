"""Vhosts, queues and brokers have the members that observers need."""

from __future__ import annotations

import pytest

from amqp_broker.broker.observe import observer_surroundings
from tests.broker_parts import new_vhost


@pytest.mark.parametrize(
    ("protocol", "subject"),
    [
        (observer_surroundings.ObservedVHost, new_vhost()),
        (observer_surroundings.ObservedBroker, new_vhost().broker),
    ],
)
def test_an_object_has_all_members_of_its_protocol(protocol: type, subject: object) -> None:
    members = {name for base in protocol.__mro__ for name in (*vars(base), *getattr(base, "__annotations__", ()))}
    assert [name for name in members if not name.startswith("_") and not hasattr(subject, name)] == []
