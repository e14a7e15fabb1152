"""Dead letters wait until what made them is done, and no longer than a turn of the loop."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pamqp import commands

from amqp_broker.broker.scheduling.portions import WORK_MAX
from tests.peer import Lab, Peer, deaths_in, publish_bytes
from tests.present import present
from tests.restarting import durable_lab, restarted

LENGTH = 1000
REFUSING: Final = {"max_length": 0, "overflow": "reject-publish-dlx"}


def chained(lab: Lab, **limit: Any) -> Peer:
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


def test_messages_that_a_long_chain_of_queues_refuses_pass_it_in_several_turns_and_in_order() -> None:
    lab = Lab()
    chained(lab, **REFUSING)
    first, second = lab.connect(), lab.connect()
    for peer in (first, second):
        peer.call(commands.Confirm.Select())
    first.publish("q0", b"1")
    first.expect(commands.Basic.Nack)
    second.publish("q0", b"2")
    # Its publisher is read no further until it has passed.
    first.publish("q0", b"3")
    assert place(lab) == []
    turns = 1
    while lab.broker.undrained:
        lab.broker.drain_on()
        turns += 1
    assert turns > 6
    first.expect(commands.Basic.Nack)
    pulled = [present(first.get(f"q{LENGTH}")) for _ in range(3)]
    assert [message.body for _, message in pulled] == [b"1", b"2", b"3"]
    for _, message in pulled:
        assert [death["queue"] for death in deaths_in(message.properties)] == [
            f"q{number}" for number in reversed(range(LENGTH))
        ]


def test_refused_messages_of_a_deleted_vhost_are_gone() -> None:
    lab = Lab()
    chained(lab, **REFUSING).publish("q0", b"x")
    vhost = lab.vhost
    lab.broker.delete_vhost("/")
    lab.drain()
    assert not lab.broker.dead_lettering.is_routing
    assert [*lab.broker.dead_lettering.until_routed(vhost)] == []


def test_a_read_of_refused_messages_costs_each_turn_the_same() -> None:
    """A long chain refuses one message at a time of one publisher."""
    lab = Lab()
    peer = chained(lab, **REFUSING)
    peer.send_bytes(publish_bytes("q0", b"x") * 5)
    works = []
    while lab.broker.undrained:
        lab.broker.drain_on()
        works.append(lab.broker.work)
    assert max(works) < 2 * WORK_MAX
    assert lab.vhost.queues[f"q{LENGTH}"].ready_count == 5


def test_a_dead_letter_of_many_keys_finds_all_of_its_queues() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="topic"))
    for number in range(300):
        peer.declare(f"q{number}")
        peer.call(commands.Queue.Bind(queue=f"q{number}", exchange="x", routing_key=f"*.{number}"))
    peer.declare("dying", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 1000})
    peer.publish("dying", b"x", headers={"CC": [f"k.{number}" for number in range(300)]})
    lab.advance(1000)
    lab.drain()
    assert place(lab) == [f"q{number}" for number in range(300)]


def test_a_dead_letter_of_many_keys_is_gone_with_its_vhost() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="topic"))
    peer.declare("q")
    peer.call(commands.Queue.Bind(queue="q", exchange="x", routing_key="a.#"))
    peer.declare("dying", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 1000})
    peer.publish("dying", b"x", headers={"CC": [f"a.{number}" for number in range(5000)]})
    lab.drain()
    lab.advance(1000)
    assert lab.broker.undrained
    lab.broker.delete_vhost("/")
    lab.drain()
    assert not lab.broker.undrained
