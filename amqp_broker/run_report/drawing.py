"""Drawings of nodes in columns, and of edges between them, as SVG.

A node is in the column after that of the edge which first leads to it. Edges that lead back pass below.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from amqp_broker.run_report.texts import shown

# Units are pixels.
WIDTH: Final = 148
HEIGHT: Final = 38
COLUMN_GAP: Final = 92
ROW_GAP: Final = 26
MARGIN: Final = 14
# Room below for edges that lead back.
BACK: Final = 30
LABEL_CHARS_MAX: Final = 20
EDGE_CHARS_MAX: Final = 15
# The radius of a node's corners, by shape.
RADII: Final = {"exchange": HEIGHT / 2, "queue": 2, "client": 8, "none": 2}


@dataclass
class Node:
    """A box: an `exchange` (round), a `queue`, a `client`, or `none`. `tone` is the class of its colour.

    `column` counts for a node to which no edge leads.
    """

    shape: str
    label: str
    detail: str = ""
    tone: str = ""
    column: int = 0


@dataclass
class Edge:
    """An arrow between two nodes, by their keys, with a label."""

    source: str
    target: str
    label: str = ""
    tone: str = ""


@dataclass
class Graph:
    """Nodes by key, in the order of their appearance, and edges. `hidden` counts nodes that did not fit."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    hidden: int = 0

    def svg(self, title: str) -> str:
        """Return the drawing; `title` says what it shows to those who do not see it."""
        places = self._places()
        width = max((x for x, _ in places.values()), default=0) + WIDTH + MARGIN
        has_back = any(places[edge.target][0] <= places[edge.source][0] for edge in self.edges)
        height = max((y for _, y in places.values()), default=0) + HEIGHT + MARGIN + (BACK if has_back else 0)
        parts = [
            f'<svg class="graph" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
            f"<title>{shown(title)}</title>",
            *(_edge(edge, places[edge.source], places[edge.target]) for edge in self.edges),
            *(_node(node, places[key]) for key, node in self.nodes.items()),
            "</svg>",
        ]
        return "".join(parts)

    def _places(self) -> dict[str, tuple[int, int]]:
        """Return the left upper corner of each node."""
        columns: dict[str, int] = {}
        for edge in self.edges:
            columns.setdefault(edge.source, self.nodes[edge.source].column)
            columns.setdefault(edge.target, columns[edge.source] + 1)
        rows: dict[int, int] = {}
        places = {}
        for key in self.nodes:
            column = columns.get(key, self.nodes[key].column)
            row = rows.get(column, 0)
            rows[column] = row + 1
            places[key] = (MARGIN + column * (WIDTH + COLUMN_GAP), MARGIN + row * (HEIGHT + ROW_GAP))
        return places


def shortened(text: str, chars_max: int) -> str:
    """Return a text without its middle if it is too long."""
    if len(text) <= chars_max:
        return text
    end = (chars_max - 1) // 2
    return f"{text[: chars_max - 1 - end]}…{text[-end:]}"


def _node(node: Node, place: tuple[int, int]) -> str:
    x, y = place
    middle = x + WIDTH / 2
    label = _text(middle, y + (16 if node.detail else 23), node.label, LABEL_CHARS_MAX, "name")
    detail = _text(middle, y + 30, node.detail, LABEL_CHARS_MAX + 4, "detail") if node.detail else ""
    shape = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{RADII[node.shape]:g}"/>'
    return f'<g class="{" ".join(filter(None, ("node", node.shape, node.tone)))}">{shape}{label}{detail}</g>'


def _edge(edge: Edge, source: tuple[int, int], target: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = source, target
    if x2 > x1:
        start, end = (x1 + WIDTH, y1 + HEIGHT // 2), (x2 - 6, y2 + HEIGHT // 2)
        bend = (end[0] - start[0]) / 2
        curve = f"{start[0] + bend:g} {start[1]} {end[0] - bend:g} {end[1]}"
        # Edges of one node part near their ends.
        label_x, label_y = (start[0] + bend, end[1] - 6) if y1 == y2 else (end[0] - bend / 2, end[1] - 8)
        tip = f"M{end[0]} {end[1] - 4}L{end[0] + 6} {end[1]}L{end[0]} {end[1] + 4}Z"
    else:
        start, end = (x1 + WIDTH // 2 - 12, y1 + HEIGHT), (x2 + WIDTH // 2 + 12, y2 + HEIGHT + 6)
        depth = max(y1, y2) + HEIGHT + BACK
        curve = f"{start[0]} {depth} {end[0]} {depth}"
        # Below the curve, and near its end: edges to the next row pass its middle.
        label_x, label_y = end[0] + (start[0] - end[0]) / 4, depth + 2
        tip = f"M{end[0] - 4} {end[1]}L{end[0]} {end[1] - 6}L{end[0] + 4} {end[1]}Z"
    path = f'<path d="M{start[0]} {start[1]}C{curve} {end[0]} {end[1]}"/><path class="tip" d="{tip}"/>'
    label = _text(label_x, label_y, edge.label, EDGE_CHARS_MAX, "label") if edge.label else ""
    return f'<g class="{" ".join(filter(None, ("edge", edge.tone)))}">{path}{label}</g>'


def _text(x: float, y: float, text: str, chars_max: int, kind: str) -> str:
    whole = f"<title>{shown(text)}</title>" if len(text) > chars_max else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{shown(shortened(text, chars_max))}{whole}</text>'


def joined(words: Iterable[str]) -> str:
    """Return words that are not empty, with commas."""
    return ", ".join(word for word in words if word)
