from __future__ import annotations

from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.run_report.drawing import Graph
from amqp_broker.run_report.topology_graph import QUEUES_MAX, topology_graph
from tests.peer import Lab
from tests.run_report.reporting import report_of


def arrows(graph: Graph) -> list[tuple[str, str, str, str]]:
    return [(edge.source, edge.target, edge.label, edge.tone) for edge in graph.edges]


def test_bindings_consumers_and_dead_letters_are_arrows() -> None:
    lab = Lab()
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}
    peer.call(commands.Exchange.Declare(exchange="shop", exchange_type="topic"))
    peer.call(commands.Exchange.Declare(exchange="all", exchange_type="fanout"))
    peer.call(commands.Queue.Declare(queue="orders", arguments=dead))
    peer.call(commands.Queue.Declare(queue="failed"))
    for key in "abcde":
        peer.call(commands.Queue.Bind(queue="orders", exchange="shop", routing_key=key))
    peer.call(commands.Exchange.Bind(destination="shop", source="all"))
    peer.publish("a", b"x", exchange="shop")
    peer.consume("failed", no_ack=False)
    graph = topology_graph(report_of(lab))
    assert {key: (node.shape, node.detail, node.tone) for key, node in graph.nodes.items()} == {
        "exchange all": ("exchange", "fanout", ""),
        "exchange shop": ("exchange", "topic", ""),
        "queue orders": ("queue", "1 ready", "here"),
        "queue failed": ("queue", "0 ready", ""),
        "client failed": ("client", "", ""),
    }
    assert sorted(arrows(graph)) == [
        ("exchange all", "exchange shop", "", ""),
        ("exchange shop", "queue orders", "a, b, c, 2 more", ""),
        ("queue failed", "client failed", "", ""),
        ("queue orders", "queue failed", "dead letters, failed", "letters"),
    ]


def test_a_dead_letter_exchange_that_is_missing_is_marked() -> None:
    lab = Lab()
    lab.connect().call(commands.Queue.Declare(queue="q", arguments={"x-dead-letter-exchange": "none"}))
    graph = topology_graph(report_of(lab))
    assert (graph.nodes["exchange none"].detail, graph.nodes["exchange none"].tone) == ("missing", "lost")
    assert arrows(graph) == [("queue q", "exchange none", "dead letters", "letters")]


def test_a_drawing_of_many_queues_has_the_first_ones() -> None:
    lab = Lab()
    peer = lab.connect()
    for number in range(QUEUES_MAX + 5):
        peer.call(commands.Queue.Declare(queue=f"q{number}"))
    graph = topology_graph(report_of(lab))
    assert (len(graph.nodes), graph.hidden) == (QUEUES_MAX, 5)


def test_alternate_exchanges_and_built_in_dead_letter_exchanges_are_there() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Exchange.Declare(exchange="main", arguments={"alternate-exchange": "other"}))
    peer.call(commands.Exchange.Declare(exchange="other", exchange_type="fanout"))
    peer.call(commands.Queue.Declare(queue="q", arguments={"x-dead-letter-exchange": "amq.fanout"}))
    graph = topology_graph(report_of(lab))
    assert arrows(graph) == [
        ("exchange main", "exchange other", "alternate", "letters"),
        ("queue q", "exchange amq.fanout", "dead letters", "letters"),
    ]
    assert graph.nodes["exchange amq.fanout"].detail == "fanout"


def test_an_exchange_named_none_is_the_alternate_of_no_other() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Exchange.Declare(exchange="None"))
    peer.call(commands.Exchange.Declare(exchange="main"))
    assert topology_graph(report_of(lab)).edges == []


def test_a_queue_is_beside_the_last_exchange_that_leads_to_it() -> None:
    lab = Lab()
    peer = lab.connect()
    for name in ("one", "two"):
        peer.call(commands.Exchange.Declare(exchange=name, exchange_type="fanout"))
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Queue.Bind(queue="q", exchange="two"))
    peer.call(commands.Exchange.Bind(destination="two", source="one"))
    assert [edge.target for edge in topology_graph(report_of(lab)).edges] == ["exchange two", "queue q"]
