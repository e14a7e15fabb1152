"""Names of the places in which outputs of the tools differ: compat/ctl/comparing.py."""

from __future__ import annotations

import pytest

from compat.ctl import comparing


@pytest.mark.parametrize(
    ("question", "amqp_broker", "places"),
    [
        ("lists/rabbitmqctl list_users", ["b", "a", "exit code 0"], set()),
        ("changes/rabbitmqctl add_user x", ["b", "a", "exit code 0"], {"output"}),
        ("lists/rabbitmqctl list_users", ["a", "b", "! wrong", "exit code 1"], {"errors", "exit code"}),
    ],
)
def test_outputs_differ_in_their_parts(question: str, amqp_broker: list[str], places: set[str]) -> None:
    assert comparing.fields(question, ["a", "b", "exit code 0"], amqp_broker) == places
