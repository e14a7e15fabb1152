"""Differences between the quorum queues of RabbitMQ versions.

The oracle of the differential suite is 3.10, which has none of them, so each test names where the fact was read.
"""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.queues.quorum import QuorumQueue
from tests.peer import Lab, Peer
from tests.present import present
from tests.restarting import durable_lab, restarted

Counts = FieldTable | None


def declare(peer: Peer, queue: str = "q", **arguments: Any) -> None:
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    peer.declare(queue, durable=True, arguments={"x-queue-type": "quorum", **given})


def pull(peer: Peer, queue: str = "q") -> tuple[int, Counts, bool]:
    """The next message: its tag, its headers, and whether it came back."""
    pulled = peer.get(queue, no_ack=False)
    assert pulled is not None
    return present(pulled[0].delivery_tag), pulled[1].properties.headers, pulled[0].redelivered


def bodies(peer: Peer) -> list[bytes]:
    found = []
    while (pulled := peer.get("q")) is not None:
        found.append(pulled[1].body)
    return found


# Returns without a delivery limit: rabbit_fifo.erl (handle_aux, return), and seen in 4.0.5 and 4.3.6


@pytest.mark.parametrize(
    ("compat", "expected"),
    [("3.13", [b"3", b"1", b"2"]), ("4.2", [b"3", b"1", b"2"]), ("4.3", [b"1", b"2", b"3"])],
)
def test_before_4_3_messages_return_to_the_end_of_a_queue_without_a_delivery_limit(
    compat: str, expected: list[bytes]
) -> None:
    peer = Lab(compat=compat).connect()
    # 3.13 has none if none is given, and a negative one gives messages up.
    arguments: dict[str, Any] = {} if compat == "3.13" else {"delivery_limit": -1}
    declare(peer, **arguments)
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    pull(peer)
    pull(peer)
    peer.send(commands.Basic.Nack(1, requeue=True), commands.Basic.Reject(2, requeue=True))
    assert bodies(peer) == expected


# Priorities: rabbit_fifo_q.erl (4.0 to 4.2), rabbit_fifo_pq.erl and rabbit_fifo.erl (msg_priority, 4.3); documentation
# page "Quorum Queues", which names 5 as the first high priority, and 4 as that of messages without one (4.3)


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        ("3.13", [b"low", b"none", b"5", b"9", b"9 too"]),
        ("4.2", [b"5", b"9", b"low", b"9 too", b"none"]),
        ("4.3", [b"9", b"9 too", b"5", b"none", b"low"]),
    ],
)
def test_priorities_are_served_in_the_order_of_the_version(compat: str, expected: list[bytes]) -> None:
    peer = Lab(compat=compat).connect()
    declare(peer)
    peer.publish("q", b"low", priority=1)
    peer.publish("q", b"none")
    for body, priority in ((b"5", 5), (b"9", 9), (b"9 too", 9)):
        peer.publish("q", body, priority=priority)
    assert bodies(peer) == expected


@pytest.mark.parametrize("compat", ["4.2", "4.3"])
def test_purging_begins_the_turns_of_priorities_anew(compat: str) -> None:
    peer = Lab(compat=compat).connect()
    declare(peer)
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.get("q")
    peer.get("q")
    peer.call(commands.Queue.Purge(queue="q"))
    peer.publish("q", b"none")
    peer.publish("q", b"5", priority=5)
    assert bodies(peer) == [b"5", b"none"]


@pytest.mark.parametrize("compat", ["4.2", "4.3"])
def test_returned_messages_are_served_before_all_priorities(compat: str) -> None:
    """rabbit_fifo.erl (take_next_msg), the same in 4.2 and 4.3."""
    peer = Lab(compat=compat).connect()
    declare(peer)
    peer.publish("q", b"low", priority=0)
    tag, _, _ = pull(peer)
    peer.publish("q", b"high", priority=9)
    peer.send(commands.Basic.Nack(tag, requeue=True))
    assert bodies(peer) == [b"low", b"high"]


def test_without_a_delivery_limit_a_returned_message_loses_its_priority_before_4_3() -> None:
    """rabbit_fifo.erl (requeue): it goes to the tail as normal."""
    peer = Lab(compat="4.2").connect()
    declare(peer, delivery_limit=-1)
    peer.publish("q", b"once high", priority=9)
    tag, _, _ = pull(peer)
    peer.publish("q", b"normal", priority=4)
    peer.send(commands.Basic.Nack(tag, requeue=True))
    assert bodies(peer) == [b"normal", b"once high"]


def test_a_full_queue_drops_the_message_that_would_be_served_next() -> None:
    """rabbit_fifo.erl (drop_head takes the next message, 4.3)."""
    peer = Lab(compat="4.3").connect()
    declare(peer, max_length=2)
    for body, priority in ((b"1", 1), (b"2", 9), (b"3", 1)):
        peer.publish("q", body, priority=priority)
    assert bodies(peer) == [b"1", b"3"]


# Octets: rabbit_fifo.erl (maybe_enqueue) and mc_amqpl.erl (size), and seen in 4.3.6, where returns and deaths do not
# change the size of a message. In 4.0.5 a message has the size of its body.

FLAGS = 2
APP_ID = 1 + len("app")


@pytest.mark.parametrize(
    ("compat", "octets"), [("3.13", 4), ("4.0", 4), ("4.2", 4), ("4.3", FLAGS + APP_ID + 4)], ids=str
)
def test_the_properties_of_a_message_count_for_the_octets_of_a_queue_since_4_3(compat: str, octets: int) -> None:
    peer = Lab(compat=compat).connect()
    declare(peer, max_length_bytes=3 * octets)
    for body in (b"1111", b"2222", b"3333"):
        peer.publish("q", body, app_id="app")
    pull(peer)
    peer.send(commands.Basic.Nack(1, requeue=True))
    pull(peer)
    peer.send(commands.Basic.Reject(2, requeue=True))
    peer.publish("q", b"")
    # Its flags alone are too many in 4.3, and the message that came back is the next one.
    assert sorted(bodies(peer)) == [b"", *([b"1111"] if compat != "4.3" else []), b"2222", b"3333"]


@pytest.mark.parametrize("compat", ["3.13", "4.2"])
def test_after_a_restart_a_message_that_was_delivered_is_shown_so_before_it_is_read(compat: str) -> None:
    lab = durable_lab(compat)
    peer = lab.connect()
    declare(peer)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    pull(peer)
    peer.disconnect()
    queue = restarted(lab).vhost.queues["q"]
    assert {message.body: redelivered for _, message, redelivered in queue.peek()} == {b"1": True, b"2": False}


@pytest.mark.parametrize(("compat", "expected"), [("4.2", 2), ("4.3", 1)])
def test_a_peek_shows_the_delivery_count_before_and_after_a_restart(compat: str, expected: int) -> None:
    lab = durable_lab(compat)
    peer = lab.connect()
    declare(peer)
    peer.publish("q", b"1")
    for settle in (commands.Basic.Nack(1, requeue=True), commands.Basic.Reject(2, requeue=True)):
        pull(peer)
        peer.send(settle)
    for queue in (lab.vhost.queues["q"], restarted(lab).vhost.queues["q"]):
        assert isinstance(queue, QuorumQueue)
        assert [count for _, _, _, count in queue.peek_counted()] == [expected]


def test_a_policy_and_a_restart_count_the_properties_as_well() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    declare(peer, max_length_bytes=2 * (FLAGS + APP_ID + 4))
    peer.publish("q", b"1111", app_id="app")
    peer.publish("q", b"2222", app_id="app")
    again = restarted(lab)
    peer = again.connect()
    assert peer.declare("q", passive=True).message_count == 2
    peer.publish("q", b"", app_id="app")
    assert bodies(peer) == [b"2222", b""]
    peer.publish("q", b"3333", app_id="app")
    peer.publish("q", b"4444", app_id="app")
    again.vhost.policies.set(Policy("p", "q", {"max-length-bytes": FLAGS + APP_ID + 4}))
    assert bodies(peer) == [b"4444"]


@pytest.mark.parametrize("source", ["classic", "quorum"])
@pytest.mark.parametrize("properties", [{}, {"app_id": "app", "headers": {"a": 1}, "expiration": "100"}], ids=str)
def test_the_deaths_of_a_message_do_not_count_for_the_octets_of_a_queue(
    source: str, properties: dict[str, Any]
) -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    flags_and_list = len(commands.Basic.Properties(**properties).marshal())
    declare(peer, max_length_bytes=4 + flags_and_list)
    arguments = {"x-queue-type": source, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    peer.declare("source", durable=True, arguments={**arguments, "x-message-ttl": 100})
    peer.publish("source", b"dead", **properties)
    lab.advance(100)
    assert peer.declare("q", passive=True).message_count == 1
    peer.publish("q", b"")
    assert bodies(peer) == [b""]


# Counts: rabbit_fifo.erl (return_one) compares acquired_count with the limit in 4.2, delivery_count in 4.3;
# rabbit_fifo_client.erl (add_delivery_count_header) tells the former as x-delivery-count in 4.2. That nack is no
# failure but reject and a lost channel are, and that x-acquired-count is 4.3's, stands on the documentation page
# "Quorum Queues" of 4.3. That 4.3 leaves x-delivery-count out where nothing failed is concluded from what 4.2 does,
# and that basic.recover is no failure from its being none of those that are named.

NACKED = commands.Basic.Nack(1, requeue=True)
REJECTED = commands.Basic.Reject(1, requeue=True)
RECOVERED = commands.Basic.Recover(requeue=True)


@pytest.mark.parametrize(
    ("compat", "method", "counts"),
    [
        ("3.13", NACKED, {"x-delivery-count": 1}),
        ("4.2", NACKED, {"x-delivery-count": 1}),
        ("4.2", REJECTED, {"x-delivery-count": 1}),
        ("4.3", NACKED, {"x-acquired-count": 1}),
        ("4.3", RECOVERED, {"x-acquired-count": 1}),
        ("4.3", REJECTED, {"x-acquired-count": 1, "x-delivery-count": 1}),
    ],
)
def test_a_returned_message_has_the_counts_of_the_version(compat: str, method: Any, counts: Counts) -> None:
    peer = Lab(compat=compat).connect()
    declare(peer)
    peer.publish("q")
    assert pull(peer) == (1, None, False)
    peer.send(method)
    if method is RECOVERED:
        peer.expect(commands.Basic.RecoverOk)
    assert pull(peer) == (2, counts, True)


def test_since_4_3_the_loss_of_a_channel_counts_as_a_failed_delivery() -> None:
    lab = Lab(compat="4.3")
    peer, other = lab.connect(), lab.connect()
    declare(peer)
    peer.publish("q")
    pull(peer)
    peer.disconnect()
    assert pull(other) == (1, {"x-acquired-count": 1, "x-delivery-count": 1}, True)
    other.call(commands.Channel.Close(200, "", 0, 0))
    other.open_channel(1)
    assert pull(other) == (1, {"x-acquired-count": 2, "x-delivery-count": 2}, True)


def test_since_4_3_a_nack_with_requeue_does_not_count_against_the_delivery_limit() -> None:
    peer = Lab(compat="4.3").connect()
    declare(peer, delivery_limit=1)
    peer.publish("q")
    for tag in range(1, 30):
        assert pull(peer)[0] == tag
        peer.send(commands.Basic.Nack(tag, requeue=True))
    assert pull(peer) == (30, {"x-acquired-count": 29}, True)
    for tag in (30, 31):
        peer.send(commands.Basic.Reject(tag, requeue=True))
        peer.send(commands.Basic.Get(queue="q"))
        answer, _ = peer.next()
        if tag == 30:
            peer.expect_content()
    assert isinstance(answer, commands.Basic.GetEmpty)


def test_a_transaction_counts_rejects_but_not_nacks_as_failures() -> None:
    peer = Lab(compat="4.3").connect()
    declare(peer)
    peer.call(commands.Tx.Select())
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.call(commands.Tx.Commit())
    pull(peer)
    pull(peer)
    peer.send(REJECTED, commands.Basic.Nack(2, requeue=True))
    peer.call(commands.Tx.Commit())
    assert pull(peer)[1] == {"x-acquired-count": 1, "x-delivery-count": 1}
    assert pull(peer)[1] == {"x-acquired-count": 1}


# A single active consumer gives way to one of higher priority: rabbit_fifo.erl (activate_next_consumer, 4.0 and later)


def two_consumers(compat: str, prefetch: int = 0) -> tuple[Peer, Peer]:
    """The single active consumer of a queue, and one of higher priority that has not come yet."""
    lab = Lab(compat=compat)
    first, second = lab.connect(), lab.connect()
    declare(first, single_active_consumer=True)
    first.call(commands.Basic.Qos(prefetch_count=prefetch))
    first.consume("q")
    return first, second


@pytest.mark.parametrize(("compat", "takes_over"), [("3.13", False), ("4.2", True), ("4.3", True)])
def test_an_idle_single_active_consumer_gives_way_to_one_of_higher_priority(compat: str, takes_over: bool) -> None:
    first, second = two_consumers(compat)
    second.consume("q", arguments={"x-priority": 1})
    first.publish("q", b"x")
    assert (first.bodies(), second.bodies()) == (([], [b"x"]) if takes_over else ([b"x"], []))


def test_a_second_consumer_of_the_same_priority_waits() -> None:
    first, second = two_consumers("4.2")
    second.consume("q")
    first.publish("q", b"x")
    assert (first.bodies(), second.bodies()) == ([b"x"], [])


@pytest.mark.parametrize("prefetch", [0, 2, 5])
def test_a_superseded_single_active_consumer_settles_its_messages_and_gets_no_more(prefetch: int) -> None:
    first, second = two_consumers("4.2", prefetch)
    first.publish("q", b"1")
    first.publish("q", b"2")
    assert first.bodies() == [b"1", b"2"]
    second.consume("q", arguments={"x-priority": 1})
    first.publish("q", b"3")
    first.expect_nothing()
    first.send(commands.Basic.Ack(1))
    assert (first.bodies(), second.bodies()) == ([], [])
    first.send(commands.Basic.Ack(2))
    assert (first.bodies(), second.bodies()) == ([], [b"3"])


@pytest.mark.parametrize(("compat", "takes_over"), [("3.13", False), ("4.2", True)])
@pytest.mark.parametrize("is_socket_full", [False, True])
def test_messages_returned_by_a_superseded_single_active_consumer_go_to_its_successor(
    compat: str, takes_over: bool, is_socket_full: bool
) -> None:
    first, second = two_consumers(compat)
    first.publish("q", b"1")
    assert first.bodies() == [b"1"]
    second.consume("q", arguments={"x-priority": 1})
    if is_socket_full:
        # The queue chooses the active consumer; sockets do not matter.
        first.session.pause()
    first.send(commands.Basic.Nack(1, requeue=True))
    assert second.bodies() == ([b"1"] if takes_over else [])
    if is_socket_full:
        first.session.resume(first.lab.now)
    assert first.bodies() == ([] if takes_over else [b"1"])


@pytest.mark.parametrize("leave", [commands.Basic.Cancel("c"), commands.Channel.Close(200, "", 0, 0)])
def test_a_superseded_single_active_consumer_may_leave(leave: Any) -> None:
    first, second = two_consumers("4.2")
    first.publish("q", b"1")
    assert first.bodies() == [b"1"]
    second.consume("q", arguments={"x-priority": 1})
    first.call(leave)
    second.publish("q", b"2")
    expected = [b"2"] if isinstance(leave, commands.Basic.Cancel) else [b"1", b"2"]
    assert second.bodies() == expected


def test_a_superseded_single_active_consumer_continues_if_its_successor_leaves() -> None:
    first, second = two_consumers("4.2")
    first.publish("q", b"1")
    assert first.bodies() == [b"1"]
    second.consume("q", arguments={"x-priority": 1})
    second.call(commands.Basic.Cancel("c"))
    first.publish("q", b"2")
    first.send(commands.Basic.Ack(1))
    assert first.bodies() == [b"2"]


def test_the_consumer_of_highest_priority_becomes_active() -> None:
    first, second = two_consumers("4.2")
    third = first.lab.connect()
    first.publish("q", b"1")
    assert first.bodies() == [b"1"]
    second.consume("q", arguments={"x-priority": 1})
    third.consume("q", arguments={"x-priority": 2})
    first.send(commands.Basic.Ack(1))
    first.publish("q", b"2")
    assert (second.bodies(), third.bodies()) == ([], [b"2"])


def test_a_backpressured_single_active_consumer_gives_way_after_settling_all() -> None:
    first, second = two_consumers("4.2")
    first.publish("q", b"1")
    first.publish("q", b"2")
    assert first.bodies() == [b"1", b"2"]
    second.consume("q", arguments={"x-priority": 1})
    first.session.pause()
    first.send(commands.Basic.Ack(2, multiple=True))
    second.publish("q", b"3")
    assert second.bodies() == [b"3"]


@pytest.mark.parametrize(("compat", "expected"), [("3.13", "low"), ("4.0", "high"), ("4.3", "high")])
def test_since_4_0_the_highest_priority_decides_which_consumer_becomes_active(compat: str, expected: str) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-single-active-consumer": True})
    for tag, priority in (("first", 0), ("low", -1), ("high", 0)):
        peer.consume("q", tag, arguments={"x-priority": priority})
    peer.call(commands.Basic.Cancel("first"))
    peer.publish("q", b"1")
    assert peer.expect_delivery()[0].consumer_tag == expected
