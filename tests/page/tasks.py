"""Tasks of an operator, done by hand on this broker's page (`ways_here.py`) and on RabbitMQ's 4.3 (`ways_there.py`).

Each begins at the start page, where an operator arrives, and takes the shortest way that the page offers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pika
from pika.adapters.blocking_connection import BlockingChannel

# Asks an HTTP API, which is the same at both brokers.
Ask = Callable[[str], Any]


class Task(NamedTuple):
    """A task: its preparation by a client, its function in both modules of ways, and whether it is done."""

    name: str
    prepare: Callable[[BlockingChannel], object]
    way: str
    is_done: Callable[[Ask], bool]


def nothing(channel: BlockingChannel) -> None:
    """Prepare nothing."""


def looked(ask: Ask) -> bool:
    """Return that a task is done which ends when the page shows something."""
    return True


def three_messages(channel: BlockingChannel) -> None:
    channel.queue_delete("orders")
    channel.queue_declare("orders", durable=True)
    for number in range(3):
        channel.basic_publish("", "orders", b"order %d" % number, pika.BasicProperties(delivery_mode=2))


def two_queues(channel: BlockingChannel) -> None:
    three_messages(channel)
    channel.queue_declare("parked", durable=True)


def an_exchange(channel: BlockingChannel) -> None:
    three_messages(channel)
    channel.exchange_declare("shop", "topic", durable=True)


def a_binding(channel: BlockingChannel) -> None:
    an_exchange(channel)
    channel.queue_bind("orders", "shop", "order.#")


def a_consumer(channel: BlockingChannel) -> None:
    three_messages(channel)
    channel.basic_qos(prefetch_count=2)
    channel.basic_consume("orders", lambda *_: None)
    channel.connection.process_data_events(0.1)


def depth(ask: Ask, queue: str = "orders") -> int:
    return int(ask(f"/api/queues/%2F/{queue}")["messages"])


TASKS = (
    Task("find a queue by a part of its name", two_queues, "find", looked),
    Task("look at the first message of a queue", three_messages, "look", looked),
    Task("see which client holds messages", a_consumer, "holder", looked),
    Task("publish to a queue", three_messages, "publish", lambda ask: depth(ask) == 4),
    Task("publish to an exchange", a_binding, "route", lambda ask: depth(ask) == 4),
    Task(
        "move messages to another queue",
        two_queues,
        "move",
        lambda ask: depth(ask, "parked") == 3,
    ),
    Task("purge a queue", three_messages, "purge", lambda ask: depth(ask) == 0),
    Task(
        "unbind a queue",
        a_binding,
        "unbind",
        lambda ask: ask("/api/exchanges/%2F/shop/bindings/source") == [],
    ),
    Task(
        "bind a queue",
        an_exchange,
        "bind",
        lambda ask: len(ask("/api/exchanges/%2F/shop/bindings/source")) == 1,
    ),
    Task(
        "delete an exchange",
        an_exchange,
        "delete_exchange",
        lambda ask: "shop" not in [row["name"] for row in ask("/api/exchanges/%2F")],
    ),
    Task(
        "add an exchange",
        nothing,
        "add_exchange",
        lambda ask: ask("/api/exchanges/%2F/market")["type"] == "topic",
    ),
    Task("add a queue", nothing, "add_queue", lambda ask: depth(ask, "fresh") == 0),
    Task(
        "delete a queue",
        three_messages,
        "delete_queue",
        lambda ask: "orders" not in [row["name"] for row in ask("/api/queues/%2F")],
    ),
    Task(
        "add a user",
        nothing,
        "add_user",
        lambda ask: ask("/api/users/otto")["tags"] == ["management"],
    ),
    Task(
        "permit a user everything",
        nothing,
        "permit",
        lambda ask: ask("/api/permissions/%2F/otto")["write"] == ".*",
    ),
    Task(
        "delete a user",
        nothing,
        "delete_user",
        lambda ask: [row["name"] for row in ask("/api/users")] == ["guest"],
    ),
    Task(
        "add a virtual host",
        nothing,
        "add_vhost",
        lambda ask: ask("/api/vhosts/shop")["name"] == "shop",
    ),
    Task(
        "limit queues by a policy",
        nothing,
        "add_policy",
        lambda ask: ask("/api/policies/%2F/short")["definition"] == {"max-length": 5},
    ),
    Task(
        "limit a virtual host",
        nothing,
        "limit",
        lambda ask: ask("/api/vhost-limits")[0]["value"]["max-connections"] == 100,
    ),
    Task("export definitions", nothing, "export", looked),
    Task("see memory by category", nothing, "memory", looked),
    # Last, since it ends the connection of the tasks.
    Task(
        "close a connection",
        nothing,
        "close",
        lambda ask: "running" not in [row["state"] for row in ask("/api/connections")],
    ),
)
