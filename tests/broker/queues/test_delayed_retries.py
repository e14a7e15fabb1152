"""Delayed retries of quorum queues, as RabbitMQ 4.3.6 has them.

The delays, the limits and the times to live were seen there; rabbit_fifo.erl (should_delay, calculate_ready_at).
"""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.durability.paged_buffer import PAGE_BYTES
from amqp_broker.broker.queues.delayed_retries import retry_delay
from amqp_broker.broker.scheduling.portions import GIVE_UP_WORK, WORK_MAX
from tests.peer import Lab, Peer, publish_bytes
from tests.present import present
from tests.restarting import durable_lab, restarted

MIN_MS = 1000
# Size of the property list of a message without properties.
FLAGS_BYTES = 2


@pytest.fixture
def lab() -> Lab:
    return Lab(compat="4.3")


def declare(peer: Peer, kind: str = "all", **arguments: Any) -> None:
    given = {"delayed_retry_type": kind, "delayed_retry_min": MIN_MS, **arguments}
    named = {f"x-{name.replace('_', '-')}": value for name, value in given.items()}
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", **named})


def pull(peer: Peer, queue: str = "q") -> int:
    """Take the next message, and return its delivery tag."""
    pulled = peer.get(queue, no_ack=False)
    assert pulled is not None
    return present(pulled[0].delivery_tag)


def bodies(peer: Peer, queue: str = "q") -> list[bytes]:
    found = []
    while (pulled := peer.get(queue)) is not None:
        found.append(pulled[1].body)
    return found


def reject(peer: Peer, tag: int) -> None:
    peer.send(commands.Basic.Reject(tag, requeue=True))


def nack(peer: Peer, tag: int) -> None:
    peer.send(commands.Basic.Nack(tag, requeue=True))


def is_delayed(lab: Lab, peer: Peer, delay_ms: int) -> bool:
    """Return whether the only message is ready after this delay and not before. Without a delay, it is ready now."""
    if peer.get("q", no_ack=False) is not None:
        return False
    lab.advance(delay_ms - 1)
    assert bodies(peer) == []
    lab.advance(1)
    return True


def test_the_delay_grows_with_each_failure_up_to_its_maximum(lab: Lab, peer: Peer) -> None:
    declare(peer, delayed_retry_max=2500)
    peer.publish("q", b"x")
    for delay_ms in (1000, 2000, 2500, 2500):
        reject(peer, pull(peer))
        assert is_delayed(lab, peer, delay_ms)


def test_a_message_that_was_given_back_has_no_failure_and_waits_for_the_minimum(lab: Lab, peer: Peer) -> None:
    declare(peer, delayed_retry_max=2500)
    peer.publish("q", b"x")
    for _ in range(3):
        nack(peer, pull(peer))
        assert is_delayed(lab, peer, 1000)


def test_without_a_maximum_all_delays_are_equal(lab: Lab, peer: Peer) -> None:
    declare(peer)
    peer.publish("q", b"x")
    for _ in range(2):
        reject(peer, pull(peer))
        assert is_delayed(lab, peer, 1000)


def close(peer: Peer, _: int) -> None:
    peer.send(commands.Channel.Close(200, "", 0, 0))
    peer.expect(commands.Channel.CloseOk)
    peer.open_channel(1)


def recover(peer: Peer, _: int) -> None:
    peer.send(commands.Basic.Recover(requeue=True))
    peer.expect(commands.Basic.RecoverOk)


@pytest.mark.parametrize(
    ("kind", "settle", "expected"),
    [
        ("all", close, True),
        ("all", recover, True),
        ("failed", reject, True),
        ("failed", close, True),
        ("failed", nack, False),
        ("failed", recover, False),
        ("returned", reject, False),
        ("returned", close, False),
        ("returned", nack, True),
        ("returned", recover, True),
        ("disabled", reject, False),
    ],
)
def test_the_type_says_which_returns_are_delayed(lab: Lab, peer: Peer, kind: str, settle: Any, expected: bool) -> None:
    declare(peer, kind)
    peer.publish("q", b"x")
    settle(peer, pull(peer))
    assert is_delayed(lab, peer, 1000) is expected


def test_a_consumer_gets_a_delayed_message_when_its_time_has_come(lab: Lab, peer: Peer) -> None:
    declare(peer)
    peer.publish("q", b"x")
    peer.send(commands.Basic.Consume(queue="q"))
    peer.expect(commands.Basic.ConsumeOk)
    [(first, _)] = peer.deliveries()
    reject(peer, present(first.delivery_tag))
    assert peer.deliveries() == []
    lab.advance(1000)
    [(again, content)] = peer.deliveries()
    assert (again.redelivered, content.body) == (True, b"x")


def test_messages_are_ready_in_the_order_of_their_times_then_of_their_arrival(lab: Lab, peer: Peer) -> None:
    declare(peer)
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("q", body)
    tags = [pull(peer) for _ in range(3)]
    reject(peer, tags[2])
    lab.advance(10)
    reject(peer, tags[1])
    reject(peer, tags[0])
    lab.advance(1010)
    assert bodies(peer) == [b"3", b"1", b"2", b"4"]


def test_delayed_messages_count_for_the_maximum_length_and_are_not_dropped(lab: Lab, peer: Peer) -> None:
    declare(peer, max_length=2)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    reject(peer, pull(peer))
    for body in (b"3", b"4"):
        peer.publish("q", body)
    assert bodies(peer) == [b"4"]
    lab.advance(1000)
    assert bodies(peer) == [b"1"]


def test_a_queue_full_of_delayed_messages_drops_new_ones(lab: Lab, peer: Peer) -> None:
    declare(peer, max_length_bytes=FLAGS_BYTES + 4)
    peer.publish("q", b"1234")
    reject(peer, pull(peer))
    peer.publish("q", b"5")
    assert bodies(peer) == []
    lab.advance(1000)
    assert bodies(peer) == [b"1234"]


def test_a_queue_full_of_delayed_messages_refuses_new_ones(lab: Lab, peer: Peer) -> None:
    declare(peer, max_length=1, overflow="reject-publish")
    peer.publish("q", b"1")
    reject(peer, pull(peer))
    # A full quorum queue takes one message more.
    peer.publish("q", b"2")
    peer.publish("q", b"3")
    lab.advance(1000)
    assert sorted(bodies(peer)) == [b"1", b"2"]


def test_a_delayed_message_expires_when_its_delay_is_over(lab: Lab, peer: Peer) -> None:
    peer.declare("dead", durable=True)
    declare(peer, message_ttl=300, dead_letter_exchange="", dead_letter_routing_key="dead")
    peer.publish("q", b"x")
    reject(peer, pull(peer))
    lab.advance(999)
    assert bodies(peer, "dead") == []
    lab.advance(1)
    assert bodies(peer, "dead") == [b"x"]


def test_a_purge_drops_delayed_messages_and_counts_them(lab: Lab, peer: Peer) -> None:
    declare(peer, max_length=2)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    reject(peer, pull(peer))
    peer.send(commands.Queue.Purge(queue="q"))
    assert peer.expect(commands.Queue.PurgeOk).message_count == 2
    for body in (b"3", b"4"):
        peer.publish("q", body)
    lab.advance(1000)
    assert bodies(peer) == [b"3", b"4"]


def test_a_deleted_queue_forgets_its_delayed_messages(lab: Lab, peer: Peer) -> None:
    declare(peer)
    peer.publish("q", b"1")
    reject(peer, pull(peer))
    peer.send(commands.Queue.Delete(queue="q"))
    assert peer.expect(commands.Queue.DeleteOk).message_count == 0
    lab.advance(1000)
    declare(peer)
    assert bodies(peer) == []


def test_a_policy_sets_the_delay(lab: Lab, peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    lab.vhost.policies.set(Policy("p", "^q", {"delayed-retry-type": "failed", "delayed-retry-min": 700}))
    peer.publish("q", b"x")
    reject(peer, pull(peer))
    assert is_delayed(lab, peer, 700)


@pytest.mark.parametrize("compat", ["3.13", "4.2"])
def test_versions_before_4_3_delay_nothing(compat: str) -> None:
    peer = Lab(compat=compat).connect()
    declare(peer)
    peer.publish("q", b"x")
    reject(peer, pull(peer))
    assert bodies(peer) == [b"x"]


@pytest.mark.parametrize("values", [("nonsense", 1, 1), (1, 1, 1), (None, 1, 1), ("all", 0, 1), ("all", -1, 1)])
def test_values_that_are_no_delay_are_ignored(values: tuple[object, int, int]) -> None:
    assert retry_delay(*values) is None


def test_a_delay_is_shown_as_rabbitmq_shows_it() -> None:
    assert str(retry_delay("all", 1000, 3000)) == "all (min: 1000ms, max: 3000ms)"
    assert str(retry_delay("failed", 1000, 0)) == "failed (min: 1000ms, max: 1000ms)"


def test_a_restart_does_not_end_a_delay() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    declare(peer)
    for body in (b"rejected", b"given back"):
        peer.publish("q", body)
    first, second = pull(peer), pull(peer)
    reject(peer, first)
    lab.advance(400)
    nack(peer, second)
    again = restarted(lab)
    peer = again.connect()
    assert bodies(peer) == []
    again.advance(599)
    assert bodies(peer) == []
    again.advance(1)
    assert headers(peer) == (b"rejected", {"x-acquired-count": 1, "x-delivery-count": 1})
    again.advance(399)
    assert bodies(peer) == []
    again.advance(1)
    assert headers(peer) == (b"given back", {"x-acquired-count": 1})
    assert again.vhost.queues["q"].message_count == 0
    assert bodies(restarted(again).connect()) == []


def headers(peer: Peer) -> tuple[bytes, dict[str, Any]]:
    pulled = peer.get("q")
    assert pulled is not None
    return pulled[1].body, present(pulled[1].properties.headers)


def test_a_delay_that_ended_while_the_broker_was_down_is_over() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    declare(peer)
    peer.publish("q", b"x")
    reject(peer, pull(peer))
    lab.now += MIN_MS
    assert bodies(restarted(lab).connect()) == [b"x"]


def test_a_delay_outlives_the_setting_and_a_restart() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    lab.vhost.policies.set(Policy("p", "^q", {"delayed-retry-type": "all", "delayed-retry-min": MIN_MS}))
    peer.publish("q", b"x")
    reject(peer, pull(peer))
    lab.vhost.policies.clear("p")
    again = restarted(lab)
    peer = again.connect()
    assert bodies(peer) == []
    again.advance(MIN_MS)
    assert bodies(peer) == [b"x"]


def test_delayed_messages_of_a_long_queue_are_found_after_a_restart() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    declare(peer)
    size = PAGE_BYTES // 2
    for letter in b"abcdef":
        peer.publish("q", bytes([letter]) * size)
    tags = [pull(peer) for _ in range(5)]
    for tag in tags[1:]:
        nack(peer, tag)
    again = restarted(lab)
    queue = again.vhost.queues["q"]
    assert (queue.ready_count, len(queue.retries), queue.retries.octets) == (2, 4, 4 * (size + FLAGS_BYTES))
    peer = again.connect()
    assert [body[:1] for body in bodies(peer)] == [b"a", b"f"]
    again.advance(MIN_MS)
    assert [body[:1] for body in bodies(peer)] == [b"b", b"c", b"d", b"e"]


def test_a_restart_counts_a_message_that_is_acked_after_it_came_back_as_gone() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"x")
    assert restarted(lab).vhost.queues["q"].ready_count == 1
    nack(peer, pull(peer))
    peer.send(commands.Basic.Ack(pull(peer)))
    assert restarted(lab).vhost.queues["q"].ready_count == 0


def test_many_messages_become_ready_in_several_turns(lab: Lab, peer: Peer) -> None:
    declare(peer)
    peer.send_bytes(b"".join(publish_bytes("q", b"%d" % number) for number in range(9000)))
    lab.drain()
    peer.consume("q")
    lab.drain()
    peer.session.outbox.take()
    peer.send(commands.Basic.Cancel("c", nowait=True), commands.Basic.Nack(0, multiple=True, requeue=True))
    lab.drain()
    queue = lab.vhost.queues["q"]
    assert (queue.ready_count, queue.withheld_count) == (0, 9000)
    lab.now += MIN_MS
    turns = []
    while queue.withheld_count:
        before = queue.ready_count
        lab.broker.tick(lab.now)
        lab.broker.end_turn()
        turns.append(queue.ready_count - before)
    assert len(turns) > 2
    assert max(turns) <= WORK_MAX // GIVE_UP_WORK
    assert [int(message.body) for message in queue.messages()] == list(range(9000))
