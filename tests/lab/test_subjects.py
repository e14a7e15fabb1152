"""The Protocols that the laboratory declares are what brokers, connections and channels are."""

from __future__ import annotations

import pytest

from amqp_broker.lab import subjects
from tests.peer import Lab


@pytest.mark.parametrize(
    ("protocol", "find"),
    [
        (subjects.Broker, lambda session: session.broker),
        (subjects.VHost, lambda session: session.vhost),
        (subjects.Session, lambda session: session),
        (subjects.SessionChannel, lambda session: session.channels[1]),
        (subjects.ChannelCounts, lambda session: session.channels[1].counts),
        (subjects.Outbox, lambda session: session.outbox),
        (subjects.Timers, lambda session: session.broker.timers),
    ],
)
def test_an_object_has_all_members_of_its_protocol(lab: Lab, protocol: type, find: object) -> None:
    assert callable(find)
    subject = find(lab.connect().session)
    members = {name for base in protocol.__mro__ for name in (*vars(base), *getattr(base, "__annotations__", ()))}
    assert [name for name in members if not name.startswith("_") and not hasattr(subject, name)] == []
