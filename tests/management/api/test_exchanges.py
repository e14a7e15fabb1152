from __future__ import annotations

import pytest
from pamqp import commands

from tests.management.asking import Desk

X = "/api/exchanges/%2F/"


def test_a_declared_exchange_is_listed_at_once() -> None:
    desk = Desk()
    desk.broker.events.actor = "guest"
    body = {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "amq.fanout"}}
    assert desk.ask("PUT", X + "x", body) == (201, None)
    assert desk.ask("PUT", X + "x", body) == (204, None)
    assert desk.get(X + "x") == (
        200,
        {
            "arguments": {"alternate-exchange": "amq.fanout"},
            "auto_delete": False,
            "durable": True,
            "incoming": [],
            "internal": False,
            "name": "x",
            "outgoing": [],
            "type": "topic",
            "user_who_performed_action": "guest",
            "vhost": "/",
        },
    )
    assert desk.get(X + "amq.topic")[1]["user_who_performed_action"] == "rmq-internal"


def test_counters_are_listed_by_channel_and_queue() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.fanout"))
    peer.publish(exchange="amq.fanout")
    exchange = desk.get(X + "amq.fanout")[1]
    assert (exchange["message_stats"]["publish_in"], exchange["message_stats"]["publish_out"]) == (1, 1)
    assert exchange["incoming"][0]["stats"]["publish"] == 1
    assert exchange["outgoing"] == [
        {"queue": {"name": "q", "vhost": "/"}, "stats": {"publish": 1, "publish_details": {"rate": 0.0}}}
    ]


def test_delayed_messages_are_counted() -> None:
    desk = Desk()
    arguments = {"x-delayed-type": "direct"}
    assert desk.ask("PUT", X + "d", {"type": "x-delayed-message", "arguments": arguments})[0] == 201
    desk.lab.connect().publish(exchange="d", headers={"x-delay": 1000})
    assert desk.get(X + "d")[1]["messages_delayed"] == 1
    desk.lab.advance(1000)
    assert desk.get(X + "d")[1]["messages_delayed"] == 0


def test_the_default_exchange_is_amq_default_in_a_path() -> None:
    assert Desk().get(X + "amq.default", columns="name,type") == (200, {"name": "", "type": "direct"})


@pytest.mark.parametrize(
    ("name", "body", "status", "reason"),
    [
        ("amq.direct", {}, 400, "inequivalent arg 'durable' for exchange 'amq.direct' in vhost '/': received 'false'"),
        ("x", {"type": "zork"}, 400, "unknown exchange type 'zork'"),
        ("x", {"type": 5}, 400, ["not_string", "type"]),
        ("x", {"arguments": {"alternate-exchange": 5}}, 400, "invalid type 'long' for arg 'alternate-exchange'"),
        ("amq.x", {}, 401, "Access refused."),
        ("amq.default", {}, 401, "Access refused."),
        ("x" * 256, {}, 400, "exchange should be less than 255 bytes, actually was 256\n"),
    ],
)
def test_an_invalid_exchange_is_refused(name: str, body: object, status: int, reason: object) -> None:
    told = Desk().ask("PUT", X + name, body)
    assert told[0] == status
    assert told[1] == reason or told[1].startswith(reason)


def test_an_exchange_is_deleted_unless_it_is_in_use() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Exchange.Declare(exchange="x"))
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Queue.Bind(queue="q", exchange="x"))
    assert desk.ask("DELETE", X + "x", query={"if-unused": "true"}) == (400, "exchange 'x' in vhost '/' in use")
    assert desk.ask("DELETE", X + "x") == (204, None)
    assert desk.ask("DELETE", X + "x") == (404, "Not Found")
    assert desk.ask("DELETE", X + "amq.direct") == (401, "Access refused.")
    assert desk.ask("DELETE", X + "amq.default") == (401, "Access refused.")


def test_an_exchange_lists_its_policy() -> None:
    from amqp_broker.broker.admin.policies import Policy

    desk = Desk()
    desk.lab.vhost.policies.set(Policy("p", "^amq.topic$", {"alternate-exchange": "amq.fanout"}))
    assert desk.get(X + "amq.topic")[1]["policy"] == "p"
    assert "policy" not in desk.get(X + "amq.direct")[1]


def test_the_messages_that_led_to_no_queue_are_counted_beside_rabbitmqs_counts() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.publish("nowhere", b"dropped", exchange="amq.topic")
    peer.publish("nowhere", b"returned", exchange="amq.topic", mandatory=True)
    assert set(desk.get(X + "amq.topic")[1]["message_stats"]) == {"publish_in", "publish_in_details"}
    status, answer = desk.get("/_broker/unroutable/%2F/amq.topic")
    assert (status, answer["message_stats"]["drop_unroutable"], answer["message_stats"]["return_unroutable"]) == (
        200,
        1,
        1,
    )
    assert desk.get("/_broker/unroutable/%2F/amq.direct") == (200, {"message_stats": {}})
    assert desk.get("/_broker/unroutable/%2F/missing")[0] == 404
