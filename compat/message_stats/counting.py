"""Performs every counted operation at a broker, and reads the counts."""

from __future__ import annotations

import contextlib

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from compat.management.http_asking import Api
from compat.oracle.suite import Answer

# Prefix of all object names.
NAME = "count"


def work(api: Api, name: str = NAME) -> pika.BlockingConnection:
    """Perform every counted operation, with objects named after `name`; return the open connection."""
    connection = pika.BlockingConnection(pika.URLParameters(api.broker.url))
    plain, confirming = connection.channel(), connection.channel()
    for queue in ("a", "b", "c", "tx", "a", "gone"):
        plain.queue_declare(f"{name}.{queue}", exclusive=True)
    plain.queue_declare(f"{name}.a", passive=True)
    plain.exchange_declare(f"{name}.fanout", "fanout")
    plain.exchange_declare(f"{name}.source", "topic")
    plain.exchange_declare(f"{name}.alternate", "fanout", arguments={"alternate-exchange": f"{name}.fanout"})
    plain.queue_bind(f"{name}.a", f"{name}.fanout")
    plain.queue_bind(f"{name}.b", f"{name}.fanout")
    plain.exchange_bind(f"{name}.fanout", f"{name}.source", "news.#")
    # Publishes: to one queue, to two, through another exchange, through the alternate one, with CC, and unroutable.
    for _ in range(7):
        plain.basic_publish("", f"{name}.a", b"")
    for _ in range(3):
        plain.basic_publish(f"{name}.fanout", "", b"x")
        plain.basic_publish(f"{name}.source", "news.today", b"x")
        plain.basic_publish(f"{name}.alternate", "", b"x")
    copies = pika.BasicProperties(headers={"CC": [f"{name}.c"]})
    plain.basic_publish("", f"{name}.b", b"x", copies)
    for _ in range(2):
        plain.basic_publish("", f"{name}.nowhere", b"x")
        plain.basic_publish(f"{name}.source", "weather", b"x", mandatory=True)
    plain.basic_publish("", f"{name}.c", b"x", pika.BasicProperties(reply_to="somebody"), mandatory=True)
    # With confirms.
    confirming.confirm_delivery()
    for _ in range(4):
        confirming.basic_publish("", f"{name}.c", b"x")
    confirming.basic_publish(f"{name}.fanout", "", b"x")
    confirming.basic_publish(f"{name}.source", "weather", b"x")
    with contextlib.suppress(pika.exceptions.UnroutableError):
        confirming.basic_publish("", f"{name}.nowhere", b"x", mandatory=True)
    receive(connection, plain, confirming, name)
    in_the_end(connection, plain, name)
    return connection


def receive(
    connection: pika.BlockingConnection, plain: BlockingChannel, confirming: BlockingChannel, name: str
) -> None:
    # Gets: with and without ack, redelivered, and of an empty queue.
    plain.basic_get(f"{name}.c", auto_ack=True)
    method, _, _ = plain.basic_get(f"{name}.c")
    plain.basic_nack(method.delivery_tag, requeue=True)
    method, _, _ = plain.basic_get(f"{name}.c")
    plain.basic_ack(method.delivery_tag)
    plain.basic_get(f"{name}.c")
    plain.basic_get(f"{name}.tx")
    # Deliveries: single and multiple acks, rejects with and without requeue, and no acks.
    tags: list[int] = []
    consumer = confirming.basic_consume(f"{name}.a", lambda _, method, *__: tags.append(method.delivery_tag))
    while len(tags) < 17:
        connection.process_data_events(0.1)
    confirming.basic_ack(tags[0])
    confirming.basic_ack(tags[4], multiple=True)
    confirming.basic_reject(tags[5], requeue=False)
    confirming.basic_cancel(consumer)
    confirming.basic_nack(tags[6], requeue=True)
    confirming.basic_ack(tags[7])
    seen: list[bool] = []
    plain.basic_consume(f"{name}.b", lambda _, method, *__: seen.append(method.redelivered), auto_ack=True)
    while len(seen) < 11:
        connection.process_data_events(0.1)


def in_the_end(connection: pika.BlockingConnection, plain: BlockingChannel, name: str) -> None:
    # Transactions, one of them rolled back.
    transactional = connection.channel()
    transactional.tx_select()
    transactional.basic_publish("", f"{name}.tx", b"x")
    transactional.tx_commit()
    transactional.basic_publish("", f"{name}.tx", b"x")
    method, _, _ = transactional.basic_get(f"{name}.tx")
    transactional.basic_ack(method.delivery_tag)
    transactional.tx_rollback()
    transactional.basic_ack(method.delivery_tag)
    transactional.tx_commit()
    # Counts of channels and queues remain after their end.
    transactional.close()
    passing = connection.channel()
    passing.basic_publish("", f"{name}.gone", b"x")
    passing.basic_get(f"{name}.gone", auto_ack=True)
    passing.close()
    plain.queue_delete(f"{name}.gone")


def told(api: Api) -> dict[str, Answer]:
    """Return the counts that are not 0: RabbitMQ reports zeros arbitrarily."""
    overview = api.get("overview")
    return {
        # Its store is not about messages.
        "overview": {key: count for key, count in stats(overview).items() if not key.startswith("disk_")},
        "churn": counts(overview["churn_rates"]),
        "vhost": stats(api.get("vhosts/%2F")),
        "channels": {str(item["number"]): stats(item) for item in api.get("channels")},
        "queues": {item["name"]: stats(item) for item in api.get("queues")},
        "exchanges": {item["name"]: stats(item) for item in api.get("exchanges") if item["name"].startswith(NAME)},
        "default exchange": stats(api.get("exchanges/%2F/amq.default")),
    }


def stats(item: Answer) -> dict[str, int]:
    return counts(item.get("message_stats", {}))


def counts(numbers: dict[str, Answer]) -> dict[str, int]:
    """Return the counts without rates."""
    return {key: count for key, count in numbers.items() if isinstance(count, int) and count}
