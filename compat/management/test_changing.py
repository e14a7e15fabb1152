"""What both brokers answer to who changes something, or asks for what is not there: status, reason and where it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pika.exceptions
import pytest

from compat.management.asking import connect
from compat.management.conftest import Pair, filled
from compat.waiting import wait_until

Q, X, B = "queues/%2F/", "exchanges/%2F/", "bindings/%2F/e/"

# In this order.
STEPS: tuple[tuple[str, str, Any], ...] = (
    ("PUT", Q + "n1", {}),
    ("PUT", Q + "n1", {}),
    ("PUT", Q + "n1", {"durable": False}),
    ("PUT", Q + "n1", {"auto_delete": True}),
    ("PUT", Q + "n1", {"durable": True}),
    ("PUT", Q + "n1", {"arguments": {"x-max-length": 3}}),
    ("PUT", Q + "n2", {"arguments": {"x-max-length": "a"}}),
    ("PUT", Q + "n2", {"durable": "maybe"}),
    ("PUT", Q + "n2", {"durable": 1}),
    ("PUT", Q + "n2", {"arguments": {"n": None}}),
    ("PUT", Q + "n3", {"arguments": []}),
    ("PUT", Q + "n4", b"{"),
    ("PUT", Q + "n4", b"[]"),
    ("PUT", Q + "n4", b'"x"'),
    ("PUT", Q + "n5", b""),
    ("PUT", Q + "n6", b"null"),
    (
        "PUT",
        Q + "n7",
        {"durable": "true", "arguments": {"f": 1.5, "l": [1, "a"], "t": {"a": 1}, "b": True, "g": 2**40}},
    ),
    ("GET", Q + "n7?disable_stats=true&columns=durable,arguments", None),
    ("PUT", Q + "n8", {"exclusive": True}),
    ("GET", Q + "n8?disable_stats=true&columns=durable,exclusive", None),
    ("PUT", Q + "n9", {"name": "other", "vhost": "zzz"}),
    ("PUT", Q + "n10", {"arguments": {"x-queue-type": "zork"}}),
    ("PUT", Q + "n10", {"arguments": {"x-dead-letter-exchange": 5}}),
    ("PUT", Q + "n11", {"node": "rabbit@nope"}),
    ("PUT", Q + "amq.foo", {}),
    ("PUT", Q + "q3", {}),
    ("PUT", "queues/nov/n", {}),
    ("GET", "queues/nov/n", None),
    ("GET", "queues/nov", None),
    ("PUT", Q + "x" * 256, {}),
    ("PUT", Q + "a%0Ab", {}),
    ("PUT", Q + "a%00b", {}),
    ("PUT", Q + "%ff", {}),
    ("GET", Q + "%ff?disable_stats=true&columns=name", None),
    ("PUT", Q + "a%252Fb", {}),
    ("GET", Q + "a%252Fb?disable_stats=true&columns=name", None),
    ("GET", "queues/%2f/n1?disable_stats=true&columns=name", None),
    ("GET", "queues/%252F/n1", None),
    ("GET", "./whoami?columns=name", None),
    ("GET", "whoami/?columns=name", None),
    ("GET", "/whoami", None),
    ("DELETE", Q + "nope", None),
    ("DELETE", Q + "q3", None),
    ("DELETE", Q + "q1?if-empty=true", None),
    ("DELETE", Q + "q2?if-unused=true", None),
    ("DELETE", Q + "n1?if-empty=true&if-unused=true", None),
    ("DELETE", Q + "n1", None),
    ("PUT", X + "y1", {}),
    ("PUT", X + "y1", {"type": "direct"}),
    ("PUT", X + "y1", {"type": "fanout"}),
    ("PUT", X + "y1", {"type": "direct", "durable": True}),
    ("PUT", X + "y1", {"type": "direct", "internal": True}),
    ("PUT", X + "y2", {"type": "zork"}),
    ("PUT", X + "amq.zork", {"type": "direct"}),
    ("PUT", X + "amq.default", {"type": "direct"}),
    ("PUT", X + "amq.direct", {"type": "direct"}),
    ("PUT", X + "y3", {"type": "direct", "arguments": {"alternate-exchange": 5}}),
    ("DELETE", X + "nope", None),
    ("DELETE", X + "amq.direct", None),
    ("DELETE", X + "amq.default", None),
    ("DELETE", X + "x1?if-unused=true", None),
    ("DELETE", X + "y1?if-unused=true", None),
    ("POST", B + "x1/q/q1", {"routing_key": "zz"}),
    ("POST", B + "x1/q/q1", {"routing_key": "zz"}),
    ("POST", B + "x1/q/q1", {}),
    ("POST", B + "x1/q/q1", b""),
    ("POST", B + "x1/q/q1", {"routing_key": "a / ~"}),
    ("POST", B + "x1/q/q1", {"routing_key": 5}),
    ("POST", B + "x1/q/sp%20ace%2Fsl~%25", {"routing_key": "zz"}),
    ("POST", B + "x1/q/nope", {"routing_key": "zz"}),
    ("POST", B + "nope/q/q1", {"routing_key": "zz"}),
    ("POST", B + "amq.default/q/q1", {"routing_key": "zz"}),
    ("POST", B + "x1/e/x3", {"routing_key": "f"}),
    ("POST", B + "x1/e/amq.default", {"routing_key": "f"}),
    ("POST", B + "x1/q/q3", {"routing_key": "zz"}),
    ("GET", B + "x1/q/q1/zz", None),
    ("GET", B + "x1/q/q1/nope", None),
    ("GET", B + "x1/q/q1/~", None),
    ("GET", B + "x1/q/q1/a.%2523", None),
    ("GET", B + "x1/q/q1/a.%23", None),
    ("DELETE", B + "x1/q/q1/zz", None),
    ("DELETE", B + "x1/q/q1/zz", None),
    ("DELETE", B + "x1/q/q1/a.%2523~nope", None),
    ("DELETE", B + "amq.default/q/q1/q1", None),
    ("GET", "bindings/nov", None),
    ("GET", "exchanges/nov", None),
    ("GET", "exchanges/%2F/nope", None),
    ("GET", "exchanges/%2F/nope/bindings/source", None),
    ("GET", "consumers/nov", None),
    ("GET", "vhosts/nov/connections", None),
    ("GET", "connections/nope", None),
    ("GET", "channels/nope", None),
    ("GET", "channels?disable_stats=true", None),
    ("GET", "connections/username/nobody", None),
    ("DELETE", "connections/nope", None),
    ("DELETE", "connections/username/nobody", None),
    ("GET", "queues?page=99", None),
    ("GET", "queues?page=0", None),
    ("GET", "queues?page=a", None),
    ("GET", "queues?page=1&page_size=501", None),
    ("GET", "queues?page=1&page_size=0", None),
    ("GET", "queues?page=1&name=(&use_regex=true", None),
    ("GET", "exchanges?page=0", None),
    ("GET", "channels?page=0", None),
    ("PUT", "cluster-name", {"name": "zork"}),
    ("GET", "cluster-name", None),
    ("PUT", "cluster-name", {}),
    ("OPTIONS", "queues", None),
    ("OPTIONS", Q + "q1", None),
    ("OPTIONS", B + "x1/q/q1", None),
    ("OPTIONS", "cluster-name", None),
)


@pytest.fixture(scope="module")
def brokers(pair: Pair) -> Iterator[Pair]:
    with filled(pair):
        yield pair


def test_both_answer_the_same(brokers: Pair) -> None:
    differing = []
    for method, path, body in STEPS:
        theirs, ours = (api.ask(method, path, body) for api in brokers)
        told = [
            (reply.status, reply.value, reply.headers.get("location"), reply.headers.get("allow"))
            for reply in (theirs, ours)
        ]
        if told[0] != told[1]:
            differing.append((method, path, body, *told))
    assert differing == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "overview"), ("POST", Q + "n5"), ("PUT", B + "x1/q/q1/zz"), ("DELETE", B + "x1/q/q1"), ("PUT", "queues")],
)
def test_both_refuse_the_same_methods(brokers: Pair, method: str, path: str) -> None:
    theirs, ours = (api.ask(method, path, {}) for api in brokers)
    assert (theirs.status, theirs.headers["allow"]) == (ours.status, ours.headers["allow"])
    # RabbitMQ says no more than that; we say it in JSON, too.
    assert (theirs.value, ours.value["error"]) == (None, "method_not_allowed")


@pytest.mark.parametrize("reason", ["", "because"])
def test_who_closes_a_connection_tells_why(pair: Pair, reason: str) -> None:
    told = []
    for api in pair:
        known = {connection["name"] for connection in api.get("connections?disable_stats=true")}
        connection = connect(api.broker)
        names: set[str] = set()

        def has_come(names: set[str] = names, known: set[str] = known, api: Any = api) -> bool:
            names |= {row["name"] for row in api.get("connections?disable_stats=true")} - known
            return bool(names) and api.ask("GET", "connections/" + quote(min(names), safe="")).status == 200

        wait_until(has_come)
        headers = {"X-Reason": reason} if reason else {}
        assert api.ask("DELETE", "connections/" + quote(names.pop(), safe=""), headers=headers).status == 204
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
            connection.process_data_events(10)
        told.append((caught.value.reply_code, caught.value.reply_text))
    assert told[0] == told[1]
