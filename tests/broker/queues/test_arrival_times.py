from __future__ import annotations

import random
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.queues.arrival_times import PART, ArrivalTimes, oldest_arrived_ms, sample_arrivals
from amqp_broker.broker.queues.backlog import RETURNED_MAX
from tests.kinds_of_queues import QUEUES
from tests.peer import NOW, Lab, Peer
from tests.restarting import durable_lab, restarted

SAMPLED_MS = 5_000


def declared(kind: str) -> tuple[Lab, Peer]:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    peer = lab.connect()
    peer.declare("q", durable=True, arguments=arguments)
    return lab, peer


def sample(lab: Lab) -> None:
    lab.advance(SAMPLED_MS)
    lab.broker.now = lab.now
    sample_arrivals(lab.vhost.queues["q"], lab.now)


def arrived_ms(lab: Lab) -> Any:
    return oldest_arrived_ms(lab.vhost.queues["q"], lab.now)


@pytest.mark.parametrize("kind", QUEUES)
def test_the_oldest_message_is_as_old_as_its_stay_in_the_queue(kind: str) -> None:
    lab, peer = declared(kind)
    assert arrived_ms(lab) is None
    peer.publish("q", priority=1)
    assert arrived_ms(lab) == NOW
    sample(lab)
    peer.publish("q", priority=5)
    sample(lab)
    sample(lab)
    # The second one is delivered first where priorities count, and the first one stays.
    assert arrived_ms(lab) == NOW + SAMPLED_MS
    peer.get("q", no_ack=True)
    peer.get("q", no_ack=True)
    assert arrived_ms(lab) is None
    sample(lab)
    assert lab.vhost.queues["q"].statistics.arrivals is None


@pytest.mark.parametrize("kind", ["classic", "priorities", "quorum 3.13"])
def test_a_returned_message_keeps_its_age(kind: str) -> None:
    lab, peer = declared(kind)
    peer.publish("q", priority=1)
    sample(lab)
    peer.publish("q", priority=5)
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    sample(lab)
    peer.send(commands.Basic.Nack(2, multiple=True))
    lab.drain()
    # One that was unacked at a sample counts from the sample that finds it ready again, or the one before.
    assert arrived_ms(lab) in {NOW + SAMPLED_MS, NOW + 2 * SAMPLED_MS}
    sample(lab)
    assert arrived_ms(lab) <= NOW + 3 * SAMPLED_MS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", QUEUES)
def test_whatever_comes_and_goes_the_age_is_known_to_a_twentieth(kind: str, seed: int) -> None:
    lab, peer = declared(kind)
    chance = random.Random(seed)
    arrived: dict[bytes, int] = {}
    share = chance.choice([0.3, 0.6, 0.9])
    for number in range(1_000):
        for _ in range(chance.choice([0, 0, 1, 3])):
            body = str(len(arrived)).encode() + b"/" + str(number).encode()
            arrived[body] = lab.now
            peer.publish("q", body, priority=chance.choice([None, 1, 5, 9]))
        for _ in range(chance.choice([0, 1, 3])):
            if chance.random() < share and (got := peer.get("q", no_ack=True)):
                del arrived[got[1].body]
        sample(lab)
        if number % 50 == 49:
            oldest, age_max = arrived_ms(lab), lab.now - min(arrived.values(), default=lab.now)
            if not arrived:
                assert oldest is None
            else:
                assert 0 <= age_max - (lab.now - oldest) <= max(SAMPLED_MS, age_max / PART)


def test_samples_of_what_is_ready_no_longer_are_dropped() -> None:
    times = ArrivalTimes()
    for count in range(1, 1_000):
        times.keep(count * SAMPLED_MS, count, count - 10)
    assert len(times) == 10


def test_samples_of_a_day_are_few_and_the_newest_stays() -> None:
    times = ArrivalTimes()
    for count in range(1, 24 * 720):
        times.keep(count * SAMPLED_MS, count, 0)
        assert times.of(count - 1) == count * SAMPLED_MS
        assert times.of(count) is None
    assert times.of(0) == SAMPLED_MS
    assert len(times) < 280


def test_a_queue_to_which_nothing_comes_takes_one_sample() -> None:
    times = ArrivalTimes()
    for number in range(10):
        times.keep(number * SAMPLED_MS, 3, 0)
    assert len(times) == 1
    assert times.of(0) == 0


@pytest.mark.parametrize("kind", QUEUES)
def test_messages_of_the_store_count_from_the_first_sample_after_the_start(kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = durable_lab(compat)
    peer = lab.connect()
    peer.declare("q", durable=True, arguments=arguments)
    for _ in range(3):
        peer.publish("q", delivery_mode=2, priority=1)
    sample(lab)
    lab.drain()
    again = restarted(lab)
    assert list(again.broker.changed_queues) == [again.vhost.queues["q"]]
    sample(again)
    again.connect().publish("q", delivery_mode=2)
    sample(again)
    assert arrived_ms(again) == lab.now + SAMPLED_MS


def test_the_oldest_message_of_a_stream_is_the_first_that_retention_has_left() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "20s"})
    assert arrived_ms(lab) is None
    published_ms = []
    for _ in range(10):
        published_ms.append(lab.now)
        peer.publish("q")
        lab.drain()
        sample(lab)
    first = lab.vhost.queues["q"].log.first
    assert first > 0
    assert arrived_ms(lab) == published_ms[first] + SAMPLED_MS


@pytest.mark.parametrize("kind", ["priorities", "quorum 4.2", "quorum 4.3"])
def test_many_returned_messages_do_not_hide_the_oldest(kind: str) -> None:
    lab, peer = declared(kind)
    for _ in range(5):
        peer.publish("q", priority=0)
    sample(lab)
    for _ in range(2 * RETURNED_MAX):
        peer.publish("q", priority=5)
    sample(lab)
    for _ in range(2 * RETURNED_MAX + 5):
        peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(0, multiple=True))
    lab.drain()
    sample(lab)
    assert lab.vhost.queues["q"].ready_count == 2 * RETURNED_MAX + 5
    # While they were unacked no sample of them was kept.
    for _ in range(20):
        peer.publish("q", priority=5)
        sample(lab)
    for _ in range(2 * RETURNED_MAX):
        peer.get("q", no_ack=True)
    lab.drain()
    assert lab.now - arrived_ms(lab) >= 20 * SAMPLED_MS
