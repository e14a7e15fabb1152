"""Connections, channels, vhosts and brokers have the members that queues need."""

from __future__ import annotations

import pytest

from amqp_broker.broker.clients.client_channel import ClientChannel
from amqp_broker.broker.queues import queue_surroundings
from tests.broker_parts import new_connection, new_vhost

VHOST = new_vhost()


@pytest.mark.parametrize(
    ("protocol", "subject"),
    [
        (queue_surroundings.QueueOwner, new_connection()),
        (queue_surroundings.UnackedMessages, ClientChannel),
        (queue_surroundings.QueueEvents, VHOST.broker.events),
        (queue_surroundings.QueueFaults, VHOST.broker.faults),
        (queue_surroundings.QueueBroker, VHOST.broker),
        (queue_surroundings.QueueVHostCounts, VHOST.counts),
        (queue_surroundings.QueueVHost, VHOST),
    ],
)
def test_an_object_has_all_members_of_its_protocol(protocol: type, subject: object) -> None:
    members = {name for base in protocol.__mro__ for name in (*vars(base), *getattr(base, "__annotations__", ()))}
    assert [name for name in members if not name.startswith("_") and not hasattr(subject, name)] == []
