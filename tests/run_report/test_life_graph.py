from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.run_report.drawing import Graph
from amqp_broker.run_report.life_graph import NODES_MAX, life_graph
from tests.peer import Lab, Peer
from tests.run_report.reporting import logging_lab, report_of


@pytest.fixture
def lab() -> Lab:
    return logging_lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    """A client that uses confirms, with a queue `q` whose dead letters go to `dead`."""
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.call(commands.Queue.Declare(queue="q", arguments=dead))
    peer.call(commands.Queue.Declare(queue="dead"))
    peer.call(commands.Confirm.Select())
    return peer


def drawn(lab: Lab) -> Graph:
    """Return the graph of the newest message."""
    return life_graph(report_of(lab)["lives"][-1])


def boxes(graph: Graph) -> list[tuple[str, str, str]]:
    return [(node.label, node.detail, node.tone) for node in graph.nodes.values()]


def arrows(graph: Graph) -> list[tuple[str, str, str]]:
    """Return the labels of both ends of each edge, and its own."""
    return [(graph.nodes[edge.source].label, graph.nodes[edge.target].label, edge.label) for edge in graph.edges]


DEFAULT = "(default exchange)"


def test_a_message_goes_from_its_publisher_to_the_queue_where_it_is_ready(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"x")
    graph = drawn(lab)
    assert boxes(graph) == [("publisher", "confirmed", ""), (DEFAULT, "", ""), ("q", "ready", "here")]
    assert arrows(graph) == [("publisher", DEFAULT, "q"), (DEFAULT, "q", "")]


def test_a_message_without_a_queue_goes_nowhere(lab: Lab, peer: Peer) -> None:
    peer.publish("x", b"x", mandatory=True)
    graph = drawn(lab)
    assert boxes(graph) == [("publisher", "returned, confirmed", "lost"), (DEFAULT, "", ""), ("no queue", "", "lost")]
    assert arrows(graph)[-1] == (DEFAULT, "no queue", "")


def test_the_consumer_that_holds_a_message_is_marked(lab: Lab, peer: Peer) -> None:
    peer.consume("q", "worker", no_ack=False)
    peer.publish("q", b"x")
    graph = drawn(lab)
    assert boxes(graph)[-2:] == [("q", "", ""), ("worker", "unacked", "held")]
    peer.send(commands.Basic.Ack(1))
    assert boxes(drawn(lab))[-1] == ("worker", "acked", "acked")


def test_a_message_that_came_back_has_an_arrow_to_its_queue(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Nack(1, requeue=True))
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Nack(2, requeue=True))
    graph = drawn(lab)
    assert arrows(graph)[-2:] == [("q", "basic.get", "2 times"), ("basic.get", "q", "requeued, 2 times")]
    assert graph.edges[-1].tone == "back"


def test_a_dead_letter_is_part_of_the_life(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(1, requeue=False))
    graph = drawn(lab)
    assert boxes(graph)[-2:] == [("basic.get", "rejected", "lost"), ("dead", "ready", "here")]
    assert arrows(graph)[-2:] == [("q", DEFAULT, "rejected"), (DEFAULT, "dead", "")]
    assert [edge.tone for edge in graph.edges[-2:]] == ["letters", ""]


def test_a_fault_is_written_where_it_hit(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_drop", times=1))
    lab.broker.faults.add(Rule("duplicate", times=1))
    peer.consume("q", "worker", no_ack=False)
    peer.publish("q", b"x")
    assert boxes(drawn(lab))[0] == ("publisher", "fault confirm_drop", "fault")
    assert ("q", "fault duplicate", "fault") in boxes(drawn(lab))


def test_a_message_that_a_fault_kept_from_its_queue_has_an_arrow_there(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    peer.publish("q", b"x")
    assert arrows(drawn(lab))[-1] == (DEFAULT, "q", "fault confirm_nack")
    assert drawn(lab).edges[-1].tone == "lost"


def test_a_publish_that_a_fault_cut_off_was_not_taken(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("cut", on="publish", times=1))
    peer.publish("q", b"x")
    assert arrows(drawn(lab)) == [("publisher", DEFAULT, "not taken")]
    assert boxes(drawn(lab))[0] == ("publisher", "fault cut", "fault")


def test_a_message_of_a_transaction_that_was_rolled_back_is_not_committed(lab: Lab) -> None:
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"), commands.Tx.Select())
    peer.publish("q", b"x")
    peer.send(commands.Tx.Rollback())
    assert boxes(drawn(lab)) == [("publisher", "not committed", "lost"), (DEFAULT, "", "")]


def test_the_end_of_a_message_is_written_on_its_queue(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.send(commands.Queue.Purge(queue="q"))
    assert boxes(drawn(lab))[-1] == ("q", "dropped: purged", "lost")


def test_a_committed_message_was_published_once(lab: Lab) -> None:
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Tx.Select())
    peer.publish("q", b"x")
    peer.call(commands.Tx.Commit())
    assert arrows(drawn(lab)) == [("publisher", DEFAULT, "q"), (DEFAULT, "q", "")]


def test_a_way_by_other_exchanges_is_no_binding(lab: Lab, peer: Peer) -> None:
    for name in ("one", "two"):
        peer.call(commands.Exchange.Declare(exchange=name, exchange_type="fanout"))
    peer.call(commands.Queue.Bind(queue="q", exchange="two"))
    peer.call(commands.Exchange.Bind(destination="two", source="one"))
    peer.publish("", b"x", exchange="one")
    assert arrows(drawn(lab))[-1] == ("one", "q", "by other exchanges")
    peer.publish("", b"x", exchange="two")
    assert arrows(drawn(lab))[-1] == ("two", "q", "")


def test_the_reader_of_a_stream_that_acked_is_marked(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Queue.Declare(queue="s", durable=True, arguments={"x-queue-type": "stream"}))
    for channel, tag in ((1, "A"), (2, "B")):
        if channel == 2:
            peer.open_channel(2)
        peer.call(commands.Basic.Qos(prefetch_count=10), channel=channel)
        peer.call(commands.Basic.Consume(queue="s", consumer_tag=tag), channel=channel)
    peer.publish("s", b"x")
    peer.send(commands.Basic.Ack(1))
    found = {label: detail for label, detail, _ in boxes(drawn(lab))}
    assert (found["A"], found["s"]) == ("acked", "ready")
    assert found["B"] != "acked"


def test_gets_of_two_queues_are_two_boxes(lab: Lab, peer: Peer) -> None:
    for name in ("q", "dead"):
        peer.call(commands.Queue.Bind(queue=name, exchange="amq.fanout"))
    peer.publish("", b"x", exchange="amq.fanout")
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Ack(1), commands.Basic.Get(queue="dead"))
    assert [box for box in boxes(drawn(lab)) if box[0] == "basic.get"] == [
        ("basic.get", "acked", "acked"),
        ("basic.get", "unacked", "held"),
    ]


def test_an_answer_to_a_direct_reply_is_not_lost(lab: Lab, peer: Peer) -> None:
    peer.publish("amq.rabbitmq.reply-to.g1h2AA5yZXBseUA.abc==", b"x")
    assert boxes(drawn(lab))[-1] == ("direct reply", "", "")


def test_a_life_with_more_places_than_fit_is_drawn_without_the_others(lab: Lab, peer: Peer) -> None:
    for number in range(NODES_MAX):
        peer.send(commands.Queue.Declare(queue=f"q{number}"))
        peer.send(commands.Queue.Bind(queue=f"q{number}", exchange="amq.fanout"))
    peer.publish("", b"x", exchange="amq.fanout")
    graph = drawn(lab)
    assert (len(graph.nodes), graph.hidden) == (NODES_MAX, 2)
    assert graph.svg("A life").count("<rect") == NODES_MAX
