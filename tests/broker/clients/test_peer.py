from __future__ import annotations

from amqp_broker.broker.clients.peer import Peer


def test_the_name_of_a_peer_has_both_ends_of_its_connection() -> None:
    assert Peer("10.0.0.1", 40_000, "10.0.0.2", 5672, 0).name == "10.0.0.1:40000 -> 10.0.0.2:5672"
