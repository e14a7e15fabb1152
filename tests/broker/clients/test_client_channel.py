"""Channels of clients. Their counting is tested through sessions in tests/session/channel/test_channel_counts.py."""

from __future__ import annotations

from pamqp import commands

from amqp_broker.broker.clients.client_channel import LEAVERS_UNCHECKED
from tests.peer import Lab


def test_a_channel_is_named_by_its_connection_and_number() -> None:
    peer = Lab().connect()
    assert peer.session.channels[1].name == f"{peer.session.name} (1)"


def test_a_dropped_consumer_stays_with_its_channel_until_its_deliveries_are_settled() -> None:
    peer = Lab().connect()
    peer.declare("q")
    peer.publish("q", b"x")
    peer.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
    channel = peer.session.channels[1]
    consumer = channel.drop_consumer("c")
    assert (channel.consumers, channel.leavers) == ({}, [consumer])
    assert channel.drop_consumer("c") is None


def test_dropped_consumers_are_forgotten_some_time_after_their_deliveries_are_settled() -> None:
    peer = Lab().connect()
    peer.declare("q")
    for tag in range(1, 3 * LEAVERS_UNCHECKED):
        peer.publish("q", b"x")
        peer.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
        peer.deliveries()
        peer.call(commands.Basic.Cancel("c"))
        peer.send(commands.Basic.Ack(tag))
    assert len(peer.session.channels[1].leavers) < LEAVERS_UNCHECKED


def test_dropped_consumers_with_unsettled_deliveries_are_kept() -> None:
    peer = Lab().connect()
    peer.declare("q")
    for number in range(3 * LEAVERS_UNCHECKED):
        peer.publish("q", b"x")
        peer.call(commands.Basic.Consume(queue="q", consumer_tag=f"{number}"))
        peer.deliveries()
        peer.call(commands.Basic.Cancel(f"{number}"))
    assert len(peer.session.channels[1].leavers) == 3 * LEAVERS_UNCHECKED
