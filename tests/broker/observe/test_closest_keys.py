from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.observe.closest_keys import hint
from tests.peer import Lab


@pytest.fixture(scope="module")
def lab() -> Lab:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="orders"))
    for type_ in ("direct", "topic", "headers", "fanout"):
        peer.send(commands.Exchange.Declare(exchange=f"bound {type_}", exchange_type=type_))
        for key in ("order.paid", "order.*.sent", "invoice", "invoice"):
            peer.send(commands.Queue.Bind(queue="orders", exchange=f"bound {type_}", routing_key=key))
    peer.send(commands.Exchange.Declare(exchange="unbound", exchange_type="topic"))
    return lab


@pytest.mark.parametrize(
    ("exchange", "routing_key", "expected"),
    [
        ("bound topic", "order.payed", "did you mean 'order.paid'?"),
        ("bound topic", "order.1.send", "did you mean 'order.*.sent'?"),
        ("bound direct", "Invoice", "did you mean 'invoice'?"),
        ("bound direct", "x", "its bindings have 'order.paid', 'order.*.sent', 'invoice'"),
        ("bound headers", "order.payed", ""),
        ("unbound", "order.paid", "the exchange has no bindings"),
        ("", "order", "did you mean 'orders'?"),
        ("", "x", ""),
        ("missing", "x", ""),
    ],
)
def test_a_hint_names_close_keys_and_queues(lab: Lab, exchange: str, routing_key: str, expected: str) -> None:
    assert hint(lab.vhost, exchange, routing_key) == expected


def test_a_hint_names_a_few_of_many_keys() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    for number in range(10):
        peer.send(commands.Queue.Bind(queue="q", exchange="amq.direct", routing_key=f"key {number}"))
    assert hint(lab.vhost, "amq.direct", "?") == "its bindings have 'key 0', 'key 1', 'key 2' and 7 more"
