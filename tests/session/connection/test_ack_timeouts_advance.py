"""Timeouts of deliveries while the clock is advanced."""

from __future__ import annotations

from pamqp import commands

from tests.peer import Lab, Peer

MINUTE_MS = 60_000
YEARS_MS = 100 * 365 * 24 * 60 * MINUTE_MS


def advance(lab: Lab, duration_ms: int) -> int:
    """As a server does it; returns how many deadlines there were."""
    steps, timers, end_ms = 0, lab.broker.timers, lab.now + duration_ms
    lab.broker.now = lab.now
    for connection in lab.broker.connections:
        connection.before_advance(lab.now)
    lab.broker.advancing_to_ms = end_ms
    while (deadline := timers.next_deadline()) is not None and deadline <= end_ms:
        lab.now = max(lab.now, deadline)
        lab.broker.tick(lab.now)
        steps += 1
    lab.now = end_ms
    lab.broker.advancing_to_ms = None
    return steps


def test_an_advance_by_a_hundred_years_takes_few_steps(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    assert advance(lab, YEARS_MS) < 5


def test_an_advance_takes_few_steps_while_a_delivery_without_timeout_is_held() -> None:
    lab = Lab(consumer_timeout_ms=0)
    peer = lab.connect()
    peer.declare("q")
    peer.publish("q")
    peer.consume("q")
    assert advance(lab, YEARS_MS) < 5


def test_a_delivery_held_before_an_advance_times_out(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q")
    peer.consume("q")
    peer.deliveries()
    advance(lab, 29 * MINUTE_MS)
    peer.expect_nothing()
    assert advance(lab, YEARS_MS) < 10
    assert peer.expect(commands.Channel.Close).reply_code == 406


def test_the_older_of_two_deliveries_times_out_at_its_own_time(lab: Lab, peer: Peer) -> None:
    peer.open_channel(2)
    peer.declare("q")
    peer.declare("r")
    peer.publish("q")
    peer.get("q", no_ack=False)
    advance(lab, 20 * MINUTE_MS)
    peer.publish("r")
    peer.send(commands.Basic.Get(queue="r", no_ack=False), channel=2)
    peer.expect(commands.Basic.GetOk, channel=2)
    peer.expect_content(channel=2)
    advance(lab, 12 * MINUTE_MS)
    peer.expect_channel_close(406)
    peer.expect_nothing()
    advance(lab, 20 * MINUTE_MS)
    assert peer.expect(commands.Channel.Close, channel=2).reply_code == 406


def test_timeouts_are_checked_each_minute_again_after_an_advance(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    advance(lab, YEARS_MS)
    peer.publish("q")
    peer.get("q", no_ack=False)
    lab.advance(30 * MINUTE_MS)
    peer.expect_nothing()
    lab.advance(2 * MINUTE_MS)
    assert peer.expect(commands.Channel.Close).reply_code == 406
