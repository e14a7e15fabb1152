from __future__ import annotations

import re
from xml.etree import ElementTree as XML

import pytest

from amqp_broker.run_report.drawing import Edge, Graph, Node, joined, shortened


def corners(svg: str) -> list[tuple[int, int]]:
    """Return the left upper corners of the boxes."""
    return [(int(x), int(y)) for x, y in re.findall(r'<rect x="(\d+)" y="(\d+)"', svg)]


def test_a_node_is_in_the_column_after_the_edge_that_leads_to_it() -> None:
    nodes = {name: Node("queue", name) for name in "abc"}
    svg = Graph(nodes, [Edge("a", "b"), Edge("a", "c")]).svg("A graph")
    (a_x, a_y), (b_x, b_y), (c_x, c_y) = corners(svg)
    assert a_x < b_x == c_x
    assert a_y == b_y < c_y


def test_a_node_without_edges_is_in_its_own_column() -> None:
    svg = Graph({"a": Node("exchange", "a"), "b": Node("queue", "b", column=1)}).svg("A graph")
    (a_x, _), (b_x, _) = corners(svg)
    assert a_x < b_x


def test_an_edge_that_leads_back_fits_into_the_drawing() -> None:
    nodes = {name: Node("queue", name) for name in "ab"}
    forward = Graph(nodes, [Edge("a", "b")]).svg("A graph")
    back = Graph(nodes, [Edge("a", "b"), Edge("b", "a", "requeued", "back")]).svg("A graph")
    heights = [int(XML.fromstring(svg).attrib["height"]) for svg in (forward, back)]
    assert heights[0] < heights[1]
    assert max(int(y) for y in re.findall(r"C\d+ (\d+)", back)) <= heights[1]


def test_a_drawing_says_what_it_shows_and_is_xml_whatever_the_names() -> None:
    graph = Graph({"a": Node("queue", "<&'\"\u202e\ud800>", "\x00")}, [])
    drawing = XML.fromstring(graph.svg("A <graph>"))
    assert [one.text for one in drawing.iter("title")] == ["A <graph>"]
    assert [one.text for one in drawing.iter("text")] == ["<&'\"\\u202e\\ud800>", "\\x00"]


def test_a_long_label_is_shortened_and_whole_in_its_title() -> None:
    name = "orders-of-customers-in-europe"
    drawing = XML.fromstring(Graph({"a": Node("queue", name)}).svg("A graph"))
    [label] = drawing.iter("text")
    assert (label.text, label[0].text) == (shortened(name, 20), name)


@pytest.mark.parametrize(
    ("text", "expected"), [("orders", "orders"), ("0123456789", "0123456789"), ("0123456789a", "01234…789a")]
)
def test_a_text_loses_its_middle(text: str, expected: str) -> None:
    assert shortened(text, 10) == expected


def test_words_are_joined_by_commas_without_empty_ones() -> None:
    assert joined(["acked", "", "2 times"]) == "acked, 2 times"
