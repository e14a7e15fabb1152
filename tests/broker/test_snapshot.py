from __future__ import annotations

from pamqp import commands

from amqp_broker.broker.queues.backlog_queue import Kept
from amqp_broker.broker.snapshot import kept_in
from tests.peer import Lab


def bodies(kept: list[Kept]) -> list[bytes]:
    return [one.message.body for one in kept]


def test_unsettled_messages_count_as_returned_to_their_positions() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    peer.expect(commands.Queue.DeclareOk)
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    peer.send(commands.Basic.Get(queue="q"))
    returned, others = kept_in(lab.vhost, lab.vhost.queues["q"])
    assert (bodies(returned), bodies(others)) == ([b"1"], [b"2", b"3"])


def test_expired_messages_are_not_kept() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"short", expiration="10")
    peer.publish("q", b"long", expiration="1000")
    lab.broker.now = lab.now + 10
    [kept] = kept_in(lab.vhost, lab.vhost.queues["q"])[1]
    assert (kept.message.body, kept.deadline_ms) == (b"long", lab.now + 1000)


def test_a_quorum_queue_keeps_the_delivery_counts_of_messages() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum"}))
    peer.publish("q", b"m")
    for tag in (1, 2):
        peer.send(commands.Basic.Get(queue="q"), commands.Basic.Nack(tag, requeue=True))
    peer.send(commands.Basic.Get(queue="q"))
    [kept] = kept_in(lab.vhost, lab.vhost.queues["q"])[0]
    assert kept.returns == 3
    assert kept.message.properties().headers is None
