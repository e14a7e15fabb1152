from __future__ import annotations

from collections.abc import Sequence

from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.broker.snapshot import FrozenVHost, Kept, KeptMessages
from tests.peer import Lab
from tests.restarting import durable_lab, restarted


def bodies(kept: Sequence[Kept]) -> list[bytes]:
    return [one.message.body for one in kept]


def kept(lab: Lab) -> KeptMessages:
    with lab.broker.journal.frozen() as journal:
        frozen = finished(FrozenVHost(lab.vhost, journal).queues())
        return finished(next(queue for queue in frozen if queue.name == "q").kept())


def test_unsettled_messages_count_as_returned_to_their_positions() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    peer.expect(commands.Queue.DeclareOk)
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    peer.send(commands.Basic.Get(queue="q"))
    returned, others, _ = kept(lab)
    assert (bodies(returned), bodies(others)) == ([b"1"], [b"2", b"3"])


def test_messages_whose_settling_is_not_committed_count_as_returned() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    peer.call(commands.Tx.Select())
    peer.consume("q")
    peer.send(commands.Basic.Ack(1), commands.Basic.Reject(2, requeue=False))
    assert bodies(kept(lab).returned) == [b"1", b"2", b"3"]


def test_delayed_messages_count_as_returned() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    arguments: FieldTable = {"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 5000}
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments=arguments))
    for body in (b"1", b"2"):
        peer.publish("q", body)
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(1, requeue=True))
    returned, others, _ = kept(lab)
    assert (bodies(returned), bodies(others)) == ([b"1"], [b"2"])
    assert (returned[0].returns, returned[0].failures) == (1, 1)


def test_expired_messages_are_not_kept() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"short", expiration="10")
    peer.publish("q", b"long", expiration="1000")
    lab.broker.now = lab.now + 10
    [one] = kept(lab).others
    assert (one.message.body, one.deadline_ms) == (b"long", lab.now + 1000)


def test_a_quorum_queue_keeps_the_delivery_counts_of_messages() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum"}))
    peer.publish("q", b"m")
    for tag in (1, 2):
        peer.send(commands.Basic.Get(queue="q"), commands.Basic.Nack(tag, requeue=True))
    peer.send(commands.Basic.Get(queue="q"))
    [one] = kept(lab).returned
    assert one.returns == 3
    assert one.message.properties().headers is None


def test_a_quorum_queue_keeps_the_counts_of_messages_that_a_restart_left_on_disk() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Reject(1, requeue=True), commands.Basic.Reject(2, requeue=True))
    again = restarted(lab)
    counts = {one.message.body: (one.returns, one.failures) for one in kept(again).others}
    assert counts == {b"1": (1, 1), b"2": (1, 1), b"3": (0, 0)}
