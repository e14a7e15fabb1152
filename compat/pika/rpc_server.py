"""The server of pika's RPC tutorial: answers each number with its Fibonacci number."""

from __future__ import annotations

import os

import pika
from pika.adapters.blocking_connection import BlockingChannel


def fibonacci(number: int) -> int:
    a, b = 0, 1
    for _ in range(number):
        a, b = b, a + b
    return a


def on_request(
    channel: BlockingChannel, method: pika.spec.Basic.Deliver, properties: pika.BasicProperties, body: bytes
) -> None:
    reply = pika.BasicProperties(correlation_id=properties.correlation_id)
    channel.basic_publish("", properties.reply_to, str(fibonacci(int(body))).encode(), reply)
    channel.basic_ack(method.delivery_tag)


def main() -> None:
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
    channel = connection.channel()
    channel.queue_declare(os.environ["RPC_QUEUE"])
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(os.environ["RPC_QUEUE"], on_request)
    channel.start_consuming()


if __name__ == "__main__":
    main()
