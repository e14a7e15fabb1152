"""Differences of two answers: compat/oracle/comparing.py."""

from __future__ import annotations

import pytest

from compat.oracle.comparing import compare, fields
from compat.oracle.suite import Answer

A, B = {"name": "a", "n": 1}, {"name": "b", "n": 1}


@pytest.mark.parametrize(
    ("rabbitmq", "amqp_broker", "told"),
    [
        ([A, B], [B, A], []),
        ([A], [{**A, "n": 2}], ["q[].n: 1, here 2"]),
        ([A, B], [A], ['q[["b"]]: not here']),
        ([A], [A, B], ['q[["b"]]: only here']),
        ([A], [A, A], ["q: 1 there, 2 here"]),
        ({"x": 1}, {"x": True}, ["q.x: 1, here true"]),
        ({"x": 0}, {"x": 0.0}, ["q.x: 0, here 0.0"]),
        ({"x": []}, {"x": {}}, ["q.x: [], here {}"]),
    ],
)
def test_each_difference_is_found(rabbitmq: Answer, amqp_broker: Answer, told: list[str]) -> None:
    assert compare(rabbitmq, amqp_broker, "q") == told


@pytest.mark.parametrize(
    ("rabbitmq", "amqp_broker", "places"),
    [
        ({"x": [A]}, {"x": [{**A, "n": 2}]}, {".x[].n"}),
        ({"x": 1}, {"y": 1}, {".x: not here", ".y: only here"}),
        (1, 2, {"all"}),
        (A, A, set()),
        ({"status": 500, "value": None, "x": 1}, {"status": 400, "value": "no", "x": 2}, {"crash", ".x"}),
        ({"status": 500, "value": None}, {"status": 204, "value": None}, {".status"}),
    ],
)
def test_a_place_is_named_without_its_values(rabbitmq: Answer, amqp_broker: Answer, places: set[str]) -> None:
    assert fields("q: a question", rabbitmq, amqp_broker) == places
