"""Dead letters wait until what made them is done, and no longer than a turn of the loop."""

from __future__ import annotations

import pytest

from tests.peer import Lab, Peer, deaths_in
from tests.present import present
from tests.restarting import durable_lab, restarted

LENGTH = 1000


def chained(lab: Lab, **limit: int) -> Peer:
    """A client, and queues of which each gives up all that comes, and dead-letters it into the next."""
    peer = lab.connect()
    for number in range(LENGTH):
        to = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"q{number + 1}"}
        arguments = {f"x-{key.replace('_', '-')}": value for key, value in limit.items()}
        peer.declare(f"q{number}", durable=True, arguments={**arguments, **to})
    peer.declare(f"q{LENGTH}", durable=True)
    return peer


def place(lab: Lab) -> list[str]:
    """The queues that have messages."""
    return [name for name, queue in lab.vhost.queues.items() if queue.ready_count]


@pytest.mark.parametrize("limit", [{"message_ttl": 0}, {"max_length": 0}])
def test_a_long_chain_of_queues_is_passed_in_several_turns(limit: dict[str, int]) -> None:
    lab = Lab()
    peer = chained(lab, **limit)
    peer.publish("q0", b"x")
    places = [place(lab)]
    while lab.broker.undrained:
        lab.broker.drain_on()
        places.append(place(lab))
    assert len(places) > 3
    assert [len(one) for one in places] == [1] * len(places)
    assert places[-1] == [f"q{LENGTH}"]
    pulled = present(peer.get(f"q{LENGTH}"))
    assert [death["queue"] for death in deaths_in(pulled[1].properties)] == [
        f"q{number}" for number in reversed(range(LENGTH))
    ]


@pytest.mark.parametrize("limit", [{"message_ttl": 0}, {"max_length": 0}])
def test_no_message_is_lost_in_a_chain_if_the_process_is_killed_between_two_turns(limit: dict[str, int]) -> None:
    lab = durable_lab("4.2")
    peer = chained(lab, **limit)
    peer.publish("q0", b"x", delivery_mode=2)
    assert place(lab) != [f"q{LENGTH}"]
    again = restarted(lab)
    again.drain()
    assert place(again) == [f"q{LENGTH}"]
    assert again.vhost.queues[f"q{LENGTH}"].ready_count == 1
