"""A slow link: latency and bandwidth together, in order, with one timer."""

from __future__ import annotations

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.lab.slow_link import SlowLink
from tests.peer import Lab


def link_of(lab: Lab, *rules: Rule) -> SlowLink:
    for rule in rules:
        rule.start(1)
    link = SlowLink(lab.broker, lambda now: None)
    link.follow(rules)
    lab.broker.now = lab.now
    return link


def arrivals(lab: Lab, link: SlowLink) -> list[tuple[int, int]]:
    """Let time pass until all has arrived; return after how many ms how many octets did."""
    start, found = lab.now, []
    while not link.is_empty:
        lab.broker.now = lab.now
        if octets := sum(map(len, link.arrived())):
            found.append((lab.now - start, octets))
        lab.now += 1
    return found


def test_octets_arrive_at_the_rate_of_the_link(lab: Lab) -> None:
    link = link_of(lab, Rule("bandwidth", bytes_per_s=100_000))
    link.put(bytes(5000))
    assert link.waiting_bytes == 5000
    assert arrivals(lab, link) == [(20, 2000), (40, 2000), (50, 1000)]
    assert link.waiting_bytes == 0


def test_a_link_that_was_idle_is_not_faster_afterwards(lab: Lab) -> None:
    link = link_of(lab, Rule("bandwidth", bytes_per_s=100_000))
    link.put(bytes(1000))
    arrivals(lab, link)
    lab.now += 10_000
    lab.broker.now = lab.now
    link.put(bytes(1000))
    assert arrivals(lab, link) == [(10, 1000)]


def test_a_link_with_latency_and_a_rate_has_both(lab: Lab) -> None:
    link = link_of(lab, Rule("latency", delay_ms=300), Rule("bandwidth", bytes_per_s=100_000))
    link.put(bytes(1000))
    link.put(bytes(1000))
    assert arrivals(lab, link) == [(310, 1000), (320, 1000)]


def test_a_slow_link_delivers_slices_that_are_not_tiny(lab: Lab) -> None:
    link = link_of(lab, Rule("bandwidth", bytes_per_s=1000))
    link.put(bytes(600))
    assert arrivals(lab, link) == [(256, 256), (512, 256), (600, 88)]


def test_nothing_arrives_like_the_octets_before_it(lab: Lab) -> None:
    link = link_of(lab, Rule("bandwidth", bytes_per_s=1000))
    link.put(bytes(100))
    link.put(b"")
    lab.broker.now += 99
    assert link.arrived() == []
    lab.broker.now += 1
    assert link.arrived() == [bytes(100), b""]
    assert link.is_empty


def test_all_arrives_when_the_connection_is_over_or_no_rule_is_left(lab: Lab) -> None:
    link = link_of(lab, Rule("latency", delay_ms=300))
    link.put(b"a")
    assert link.arrived() == []
    assert link.arrived(is_over=True) == [b"a"]
    link.put(b"b")
    link.follow([])
    assert link.arrived() == [b"b"]


def test_a_link_has_one_timer_until_it_is_empty(lab: Lab) -> None:
    link = link_of(lab, Rule("latency", delay_ms=300))
    due = lab.broker.timers.next_deadline()
    for _ in range(50):
        link.put(b"a")
        assert link.arrived() == []
    assert lab.broker.timers.next_deadline() == lab.now + 300
    link.discard()
    assert lab.broker.timers.next_deadline() == due
    assert (link.is_empty, link.waiting_bytes) == (True, 0)
