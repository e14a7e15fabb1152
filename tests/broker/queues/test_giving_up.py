"""Many messages that leave a queue at the same moment leave it in portions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from pamqp import base, commands

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.queues.giving_up import DYING_MAX
from amqp_broker.broker.scheduling.portions import DEAD_LETTER_WORK, GIVE_UP_WORK, TARGET_WORK, WORK_MAX
from tests.kinds_of_queues import DEAD, QUEUES
from tests.peer import Lab, Peer, publish_bytes
from tests.restarting import durable_lab, restarted

COUNT: Final = 2 * DYING_MAX + 500
# The most messages that a turn gives up, with and without a dead-letter exchange.
PORTION_MAX: Final = WORK_MAX // GIVE_UP_WORK
DEAD_PORTION_MAX: Final = WORK_MAX // (GIVE_UP_WORK + DEAD_LETTER_WORK + TARGET_WORK) + 1


def body(number: int) -> bytes:
    return b"%d" % number


def fill(peer: Peer, count: int, first: int = 0, **properties: Any) -> None:
    peer.send_bytes(
        b"".join(
            publish_bytes("q", body(number), delivery_mode=2, **properties) for number in range(first, first + count)
        )
    )
    peer.lab.drain()


def filled(lab: Lab, arguments: dict[str, Any], **properties: Any) -> Peer:
    """A client whose messages are in a queue q, and the queue of its dead letters."""
    peer = lab.connect()
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=arguments)
    fill(peer, COUNT, **properties)
    return peer


def ready(lab: Lab, queue: str) -> int:
    found: int = lab.vhost.queues[queue].ready_count
    return found


def bodies(lab: Lab, queue: str) -> list[int]:
    return [int(message.body) for message in lab.vhost.queues[queue].messages()]


def limit(lab: Lab, **definition: Any) -> None:
    lab.vhost.policies.set(Policy("p", "^q$", {key.replace("_", "-"): value for key, value in definition.items()}))
    lab.broker.end_turn()


# Causes for which the queue gives up its messages, all or all but the newest ones.
def expire_by_argument(lab: Lab, arguments: dict[str, Any]) -> Callable[[], None]:
    filled(lab, {**arguments, "x-message-ttl": 1000})
    return lambda: lab.advance(1000)


def expire_by_policy(lab: Lab, arguments: dict[str, Any]) -> Callable[[], None]:
    lab.vhost.policies.set(Policy("p", "^q$", {"message-ttl": 1000}))
    filled(lab, arguments)
    return lambda: lab.advance(1000)


def expire_by_message(lab: Lab, arguments: dict[str, Any]) -> Callable[[], None]:
    filled(lab, arguments, expiration="1000")
    return lambda: lab.advance(1000)


def limit_length(lab: Lab, arguments: dict[str, Any]) -> Callable[[], None]:
    filled(lab, arguments)
    return lambda: limit(lab, max_length=10)


def limit_octets(lab: Lab, arguments: dict[str, Any]) -> Callable[[], None]:
    filled(lab, arguments)
    return lambda: limit(lab, max_length_bytes=60)


CAUSES: Final = [expire_by_argument, expire_by_policy, expire_by_message, limit_length, limit_octets]
Cause = Callable[[Lab, dict[str, Any]], Callable[[], None]]


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("cause", CAUSES)
def test_no_turn_makes_more_dead_letters_than_it_has_time_for(cause: Cause, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    happen = cause(lab, {**arguments, **DEAD})
    happen()
    left, died = ready(lab, "q"), ready(lab, "dead")
    assert died <= DEAD_PORTION_MAX
    turns = 1
    while lab.broker.drain_on():
        assert ready(lab, "dead") - died <= DEAD_PORTION_MAX
        assert ready(lab, "q") <= left
        left, died, turns = ready(lab, "q"), ready(lab, "dead"), turns + 1
    assert turns >= 2
    left = ready(lab, "q")
    assert left + ready(lab, "dead") == COUNT
    dead = bodies(lab, "dead")
    is_reversed = cause in (limit_length, limit_octets) and lab.vhost.queues["q"].drops_in_reverse
    assert dead == (sorted(dead, reverse=True) if is_reversed else sorted(dead))
    assert bodies(lab, "q") == list(range(len(dead), COUNT))
    assert left == 0 if cause not in (limit_length, limit_octets) else 0 < left <= 60
    assert not lab.vhost.queues["q"].holds


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("cause", [expire_by_argument, limit_length])
def test_no_turn_drops_more_messages_than_it_has_time_for(cause: Cause, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    happen = cause(lab, arguments)
    fill(lab.connect(), PORTION_MAX, first=COUNT)
    happen()
    assert COUNT - 10 <= ready(lab, "q") <= COUNT + 1
    lab.drain()
    assert ready(lab, "q") == (10 if cause is limit_length else 0)


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("cause", CAUSES)
def test_no_client_gets_a_message_that_is_to_be_given_up(cause: Cause, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    happen = cause(lab, {**arguments, **DEAD})
    getter, consumer = lab.connect(), lab.connect()
    happen()
    consumer.consume("q", no_ack=True)
    getter.send(commands.Basic.Get(queue="q", no_ack=True), commands.Basic.Qos())
    publisher = lab.connect()
    publisher.publish("q", b"1000000")
    consumer.expect_nothing()
    getter.expect_nothing()
    assert lab.connect().declare("other", durable=True).queue == "other"
    lab.drain()
    served = [int(one) for one in consumer.bodies()]
    answer, _ = getter.next()
    if isinstance(answer, commands.Basic.GetOk):
        served.append(int(getter.expect_content().body))
    getter.expect(commands.Basic.QosOk)
    assert served
    assert sorted([*served, *bodies(lab, "dead")]) == [*range(COUNT), 1_000_000]
    # A message that comes while others are dropped displaces one of them, as later.
    assert min(served) >= COUNT - 60


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("cause", [expire_by_argument, limit_length])
def test_a_queue_grows_no_more_while_it_gives_up(cause: Cause, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    happen = cause(lab, {**arguments, **DEAD})
    happen()
    left, died = ready(lab, "q"), ready(lab, "dead")
    peer = lab.connect()
    peer.send_bytes(publish_bytes("q", b"1000000") * 500)
    # Either from the queue, or two for each of those that were taken to be given up in reverse.
    came = ready(lab, "q") - left
    assert came <= 0 or ready(lab, "dead") >= died + 2 * came
    lab.drain()
    assert ready(lab, "q") == (10 if cause is limit_length else 500)
    assert ready(lab, "q") + ready(lab, "dead") == COUNT + 500


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("turns", [1, 2])
def test_no_message_is_lost_or_doubled_if_the_process_is_killed_between_two_portions(
    cause: Cause, kind: str, turns: int
) -> None:
    compat, arguments = QUEUES[kind]
    lab = durable_lab(compat)
    happen = cause(lab, {**arguments, **DEAD})
    happen()
    for _ in range(turns - 1):
        assert lab.broker.drain_on()
    again = restarted(lab)
    again.drain()
    assert sorted(bodies(again, "dead") + bodies(again, "q")) == list(range(COUNT))
    lab.drain()
    assert bodies(again, "q") == bodies(lab, "q")


@pytest.mark.parametrize("kind", QUEUES)
def test_a_purge_a_deletion_and_another_limit_end_what_is_under_way(kind: str) -> None:
    compat, arguments = QUEUES[kind]
    for method in (commands.Queue.Purge(queue="q"), commands.Queue.Delete(queue="q")):
        lab = Lab(compat=compat)
        limit_length(lab, {**arguments, **DEAD})()
        peer = lab.connect()
        peer.send(method)
        lab.drain()
        assert not lab.broker.undrained
        assert "q" not in lab.vhost.queues or ready(lab, "q") == 0
    lab = Lab(compat=compat)
    limit_length(lab, arguments)()
    lab.vhost.policies.clear("p")
    lab.drain()
    peer = lab.connect()
    peer.consume("q", no_ack=True)
    lab.drain()
    assert len(peer.bodies()) == COUNT - min(COUNT, PORTION_MAX) or not lab.vhost.queues["q"].holds


def test_many_queues_share_the_time_of_a_turn() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("dead")
    for number in range(100):
        peer.declare(f"q{number}", arguments={"x-message-ttl": 1000, **DEAD})
        peer.send_bytes(publish_bytes(f"q{number}") * 50)
    lab.advance(1000)
    turns = [ready(lab, "dead")]
    while lab.broker.undrained:
        lab.broker.drain_on()
        turns.append(ready(lab, "dead") - sum(turns))
    assert sum(turns) == 5000
    assert max(turns) <= DEAD_PORTION_MAX + 100


def test_the_messages_of_a_flood_that_are_dropped_leave_with_it() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("dead")
    peer.declare("q", arguments={"x-max-length": 10, **DEAD})
    peer.send_bytes(publish_bytes("q", b"8 octets") * 4000)
    assert ready(lab, "q") == 10
    assert ready(lab, "dead") < 3990, "others are served before the rest of the read"
    lab.drain()
    assert ready(lab, "q") == 10
    assert ready(lab, "dead") == 3990


@pytest.mark.parametrize(
    ("arguments", "die"),
    [
        ({"x-message-ttl": 1000}, None),
        ({}, commands.Basic.Nack(delivery_tag=0, multiple=True, requeue=False)),
        ({"x-queue-type": "quorum", "x-delivery-limit": 0}, commands.Basic.Recover(requeue=True)),
    ],
    ids=["expired", "rejected", "returned"],
)
def test_dead_letters_to_many_queues_take_several_turns(arguments: dict[str, object], die: base.Frame | None) -> None:
    lab = Lab(compat="4.2")
    peer = lab.connect()
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="fanout"))
    for number in range(300):
        peer.declare(f"dead{number}")
        peer.call(commands.Queue.Bind(queue=f"dead{number}", exchange="x"))
    peer.declare("q", durable=True, arguments={"x-dead-letter-exchange": "x", **arguments})
    for number in range(100):
        peer.publish("q", b"%d" % number)
    if die is None:
        lab.advance(1000)
    else:
        peer.consume("q")
        peer.send(commands.Basic.Cancel(consumer_tag="c"), die)
    assert 0 < ready(lab, "dead0") == ready(lab, "dead299") < 60
    lab.drain()
    assert bodies(lab, "dead0") == bodies(lab, "dead299") == list(range(100))
