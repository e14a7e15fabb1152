from __future__ import annotations

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.node.totals import message_stats, queue_totals
from tests.peer import Lab


def test_the_totals_are_those_of_the_queues_of_some_vhosts() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.declare("other")
    for queue in ("q", "q", "other"):
        peer.publish(queue)
    peer.get("q", no_ack=False)
    other = lab.broker.add_vhost("empty")
    lab.broker.collect_counts()
    assert finished(queue_totals([lab.vhost, other])) == {
        "messages": 3,
        "messages_ready": 2,
        "messages_unacknowledged": 1,
    }
    assert finished(queue_totals([other]))["messages"] == 0
    stats = message_stats([lab.vhost, other])
    assert (stats["publish"], stats["get"]) == (3, 1)


def test_a_queue_that_is_deleted_meanwhile_is_left_out() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.publish("q")
    steps = queue_totals([lab.vhost])
    lab.vhost.remove_queue(lab.vhost.queues["q"])
    assert finished(steps)["messages"] == 0
