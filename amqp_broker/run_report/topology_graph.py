"""Exchanges, queues and bindings of a vhost as a graph, with consumers and dead letters."""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.run_report.drawing import Edge, Graph, Node, joined
from amqp_broker.run_report.life_graph import DEFAULT_EXCHANGE

# Queues of a drawing.
QUEUES_MAX: Final = 30
KEYS_MAX: Final = 3


def topology_graph(report: dict[str, Any]) -> Graph:
    """Return the graph of the report of a vhost."""
    graph = Graph()
    queues = report["queues"][:QUEUES_MAX]
    types = {row["name"]: row["type"] for row in report["exchanges"]}
    for row in report["exchanges"]:
        graph.nodes[f"exchange {row['name']}"] = Node("exchange", row["name"] or DEFAULT_EXCHANGE, row["type"])
    for row in queues:
        graph.nodes[f"queue {row['name']}"] = Node(
            "queue", row["name"], _numbers(row), "here" if row["ready"] else "", 1
        )
    graph.hidden = len(report["queues"]) - len(queues)
    # Those between exchanges come first, so that a queue is in the column after the last exchange.
    for row in sorted(report["bindings"], key=lambda row: str(row["destination_kind"])):
        source, target = f"exchange {row['source']}", f"{row['destination_kind']} {row['destination']}"
        if source in graph.nodes and target in graph.nodes:
            graph.edges.append(Edge(source, target, _keys(row)))
    for row in report["exchanges"]:
        alternate = row["alternate_exchange"]
        if alternate is not None and (target := f"exchange {alternate}") in graph.nodes:
            graph.edges.append(Edge(f"exchange {row['name']}", target, "alternate", "letters"))
    for row in queues:
        _letters(graph, row, types)
        if row["consumers"]:
            key, name = f"client {row['name']}", "consumer" if row["consumers"] == 1 else "consumers"
            graph.nodes[key] = Node("client", f"{row['consumers']} {name}")
            graph.edges.append(Edge(f"queue {row['name']}", key))
    return graph


def _letters(graph: Graph, queue: dict[str, Any], types: dict[str, str]) -> None:
    exchange, key = queue["dead_letter_exchange"], queue["dead_letter_routing_key"]
    if exchange is None:
        return
    target = f"exchange {exchange}" if exchange else f"queue {key if key is not None else queue['name']}"
    if exchange and exchange not in types:
        graph.nodes[target] = Node("exchange", exchange, "missing", "lost")
    if target in graph.nodes:
        graph.edges.append(Edge(f"queue {queue['name']}", target, joined(["dead letters", key or ""]), "letters"))


def _numbers(queue: dict[str, Any]) -> str:
    return joined([f"{queue['ready']} ready", f"{queue['unacked']} unacked" if queue["unacked"] else ""])


def _keys(binding: dict[str, Any]) -> str:
    keys = binding["routing_keys"]
    more = len(keys) - KEYS_MAX + binding["more_keys"]
    return joined([*keys[:KEYS_MAX], f"{more} more" if more > 0 else ""])
