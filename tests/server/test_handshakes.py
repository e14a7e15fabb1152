from __future__ import annotations

import gc
import ssl

from amqp_broker.server.handshakes import Handshakes


class Connection(ssl.SSLObject):
    """A TLS connection without a socket."""

    def __init__(self) -> None:
        pass


def test_as_many_handshakes_as_possible_are_under_way_and_others_are_refused() -> None:
    handshakes, first, second, third = Handshakes(2, 5), *(Connection() for _ in range(3))
    assert handshakes.begin(first, 0)
    assert handshakes.begin(second, 1)
    assert not handshakes.begin(third, 2)
    assert handshakes.begin(first, 3), "it goes on"
    handshakes.end(first)
    assert handshakes.begin(third, 4)
    assert len(handshakes) == 2


def test_a_handshake_that_stalls_counts_until_its_time_is_over() -> None:
    handshakes, first, second = Handshakes(1, 5), Connection(), Connection()
    assert handshakes.begin(first, 0)
    assert not handshakes.begin(second, 4.9)
    assert handshakes.begin(second, 5)


def test_a_handshake_whose_connection_is_gone_does_not_count() -> None:
    handshakes, first = Handshakes(1, 5), Connection()
    assert handshakes.begin(first, 0)
    del first
    gc.collect()
    assert handshakes.begin(Connection(), 0)
