from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Queue

from amqp_broker.broker.observe.waiting import Busy, DepthWait, IdleWait, QueueWait
from tests.peer import Lab, Peer


class Done:
    def __init__(self, wait: QueueWait) -> None:
        self.times = 0
        wait.begin(self)

    def __call__(self) -> None:
        self.times += 1


def look(lab: Lab) -> None:
    """Check waits as the server does after each read."""
    for wait in list(lab.broker.queue_waits):
        wait.check()


def test_a_vhost_is_idle_when_its_last_message_is_settled(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.declare("r")
    peer.publish("q")
    peer.publish("r")
    wait = IdleWait(lab.vhost)
    done = Done(wait)
    assert wait.busy() == [Busy("q", 1, 0), Busy("r", 1, 0)]
    peer.get("r")
    peer.get("q", no_ack=False)
    look(lab)
    assert (done.times, wait.busy()) == (0, [Busy("q", 0, 1)])
    peer.send(Basic.Ack(delivery_tag=2))
    look(lab)
    look(lab)
    assert done.times == 1
    wait.end()
    assert lab.broker.queue_waits == []


def test_a_queue_with_a_delayed_message_is_not_idle() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    arguments = {"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 5000}
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish("q")
    peer.get("q", no_ack=False)
    peer.send(Basic.Reject(1, requeue=True))
    assert IdleWait(lab.vhost).busy() == [Busy("q", 1, 0)]


def test_a_wait_for_a_depth_ends_with_exactly_this_number_of_ready_messages(lab: Lab, peer: Peer) -> None:
    wait = DepthWait(lab.vhost, "q", 2)
    done = Done(wait)
    look(lab)
    peer.declare("q")
    peer.publish("q")
    look(lab)
    assert done.times == 0
    peer.publish("q")
    look(lab)
    look(lab)
    assert done.times == 1
    peer.get("q", no_ack=False)
    assert not DepthWait(lab.vhost, "q", 2).is_done
    assert Done(DepthWait(lab.vhost, "q", 1)).times == 1


def test_a_wait_for_an_idle_vhost_is_done_at_once(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    assert Done(IdleWait(lab.vhost)).times == 1
    assert lab.broker.queue_waits == []


def test_a_wait_for_one_queue_ignores_the_others(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.declare("dead")
    peer.publish("dead")
    assert Done(IdleWait(lab.vhost, "q")).times == 1
    assert Done(IdleWait(lab.vhost, "dead")).times == 0


def test_streams_count_as_idle(lab: Lab, peer: Peer) -> None:
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.publish("s")
    assert Done(IdleWait(lab.vhost)).times == 1


def test_a_deleted_queue_is_idle(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q")
    done = Done(IdleWait(lab.vhost, "q"))
    lab.vhost.remove_queue(lab.vhost.queues["q"])
    look(lab)
    assert done.times == 1


@pytest.mark.interpreted
def test_a_check_looks_at_the_queue_that_was_busy_and_at_the_others_once_it_is_idle(
    lab: Lab, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("p", "q", "r"):
        peer.declare(name)
    peer.publish("q")
    peer.publish("r")
    wait = IdleWait(lab.vhost)
    done = Done(wait)
    scans: list[IdleWait] = []
    queues_of = IdleWait._queues

    def scanned(self: IdleWait) -> list[Any]:
        scans.append(self)
        return queues_of(self)

    monkeypatch.setattr(IdleWait, "_queues", scanned)
    look(lab)
    assert scans == []
    peer.get("q")
    look(lab)
    assert (scans, done.times) == ([wait], 0)
    look(lab)
    assert scans == [wait]
    peer.call(Queue.Delete(queue="r"))
    look(lab)
    assert done.times == 1


def test_a_queue_that_is_declared_anew_is_another_one(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q")
    done = Done(IdleWait(lab.vhost))
    peer.call(Queue.Delete(queue="q"))
    peer.declare("q")
    look(lab)
    assert done.times == 1


def test_an_ended_wait_does_not_call_back(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q")
    wait = IdleWait(lab.vhost)
    done = Done(wait)
    wait.end()
    peer.get("q")
    wait.check()
    assert done.times == 0
