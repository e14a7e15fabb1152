from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.queues import giving_up
from amqp_broker.broker.routing import dead_lettering, refused_letters
from amqp_broker.broker.routing.refused_letters import RefusedLetter, RefusedLetters
from amqp_broker.broker.scheduling.portions import FLOOD_BYTES, LETTER_BYTES
from tests.broker_parts import new_queue
from tests.growth.world import small_scale
from tests.peer import Lab, Peer

FLOOD = 100_000


def letters_of(vhost_name: str, bodies: list[bytes]) -> list[RefusedLetter]:
    lab = Lab()
    queue = new_queue(lab.broker.add_vhost(vhost_name), "q")
    peer = lab.connect()
    peer.declare("source")
    for body in bodies:
        peer.publish("source", body)
    return [RefusedLetter(queue, message, "maxlen") for message in lab.vhost.queues["source"].messages()]


def test_vhosts_take_turns_and_the_oldest_message_of_each_comes_first() -> None:
    refused = RefusedLetters()
    ours, others = letters_of("a", [b"1", b"2", b"3"]), letters_of("b", [b"4"])
    for letter in [*ours, *others]:
        refused.append(letter)
    assert refused.waits_in(ours[0].queue.vhost)
    assert [refused.pop() for _ in range(4)] == [ours[0], others[0], ours[1], ours[2]]
    assert not refused
    assert not refused.waits_in(ours[0].queue.vhost)


def test_the_newest_message_comes_first_where_they_are_many() -> None:
    refused = RefusedLetters()
    letters = letters_of("a", [b"x" * (FLOOD_BYTES // 2), b"2", b"x" * (FLOOD_BYTES // 2 + LETTER_BYTES)])
    for letter in letters:
        refused.append(letter)
    assert [refused.pop() for _ in range(3)] == [letters[2], letters[0], letters[1]]


def cycle(lab: Lab, count: int, arguments: dict[str, Any]) -> Peer:
    """Queues that are bound to the exchange of their dead letters."""
    peer = lab.connect()
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="fanout"))
    for number in range(count):
        peer.declare(f"q{number}", arguments={"x-dead-letter-exchange": "x", **arguments})
        peer.call(commands.Queue.Bind(queue=f"q{number}", exchange="x"))
    return peer


KINDS = {
    "dropped": {"x-max-length": 1},
    "refused": {"x-max-length": 1, "x-overflow": "reject-publish-dlx"},
    "expired": {"x-message-ttl": 0},
}


@pytest.mark.interpreted
@pytest.mark.parametrize("arguments", KINDS.values(), ids=KINDS)
def test_messages_that_multiply_in_a_cycle_stay_few_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    for module in (giving_up, dead_lettering, refused_letters):
        monkeypatch.setattr(module, "FLOOD_BYTES", FLOOD)
    with small_scale():
        lab = Lab()
        peer, other = cycle(lab, 20, arguments), lab.connect()
        other.declare("other")
        for number in range(3):
            peer.publish("", b"%d" % number, exchange="x")
        octets = []
        for _ in range(800):
            assert lab.broker.drain_on(), "it has no end"
            octets.append(lab.vhost.dead_letter_bytes + lab.broker.dead_lettering._refused._octets)
        other.publish("other", b"served")
        assert lab.vhost.queues["other"].ready_count == 1
    assert max(octets[400:]) < 1.2 * max(octets[:400]), octets[::50]


@pytest.mark.parametrize("arguments", KINDS.values(), ids=KINDS)
def test_a_small_cycle_ends_as_in_rabbitmq(arguments: dict[str, Any]) -> None:
    lab = Lab()
    peer = cycle(lab, 4, arguments)
    for number in range(3):
        peer.publish("", b"%d" % number, exchange="x")
    lab.drain()
    assert {queue.ready_count for queue in lab.vhost.queues.values()} == {arguments.get("x-max-length", 0)}
    assert lab.vhost.dead_letter_bytes == 0


@pytest.mark.interpreted
def test_a_flood_ends_with_its_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (giving_up, dead_lettering, refused_letters):
        monkeypatch.setattr(module, "FLOOD_BYTES", FLOOD)
    with small_scale():
        lab = Lab()
        peer = cycle(lab, 20, {"x-max-length": 1})
        for number in range(3):
            peer.publish("", b"%d" % number, exchange="x")
        for _ in range(300):
            lab.broker.drain_on()
        assert lab.vhost.dead_letter_bytes > FLOOD
        for name in list(lab.vhost.queues):
            lab.vhost.remove_queue(lab.vhost.queues[name])
        lab.drain()
    assert lab.vhost.dead_letter_bytes == 0
    assert not lab.broker.undrained
