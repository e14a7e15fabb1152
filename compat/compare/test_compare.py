"""Real clients, a real RabbitMQ and `amqp-broker compare`: a correct application has no differences."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.server.server import Server
from compat.oracles.rabbitmq import RabbitMQ
from compat.unique_names import unique_name
from tests.compare.proxy_run import RunningProxy

pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(not RabbitMQ.is_installed(), reason="needs RabbitMQ"),
    pytest.mark.timeout(200),
]


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    running = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))
    running.start()
    yield running
    running.kill()


def connect(proxy: RunningProxy) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", proxy.port))


def test_a_correct_application_has_no_differences(rabbitmq: RabbitMQ) -> None:
    with RunningProxy(rabbitmq.url) as proxy, connect(proxy) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_qos(prefetch_count=10)
        letters = channel.queue_declare("", exclusive=True).method.queue
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters}
        work = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
        channel.queue_bind(work, "amq.topic", "a.#")
        for number in range(100):
            properties = pika.BasicProperties(message_id=str(number), headers={"n": number})
            channel.basic_publish("amq.topic", "a.b", b"m", properties, mandatory=True)
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("amq.topic", "nowhere", b"m", mandatory=True)
        for method, _, _ in channel.consume(work):
            if method.delivery_tag % 10 == 0:
                channel.basic_nack(method.delivery_tag, requeue=False)
            elif method.delivery_tag % 5 == 0:
                channel.basic_ack(method.delivery_tag, multiple=True)
            if method.delivery_tag == 100:
                break
        channel.cancel()
        while channel.basic_get(letters, auto_ack=True)[0] is not None:
            pass
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare(work, durable=True)
        connection.channel().queue_delete(work)
    assert proxy.found == []
    # Confirms and deliveries of 100 messages, 10 dead letters, and all requests.
    assert proxy.report.compared_count > 220


def test_a_message_that_amqp_broker_loses_is_reported_with_its_place(rabbitmq: RabbitMQ) -> None:
    queue = unique_name("queue")

    def fault(server: Server) -> None:
        server.broker.faults.add(Rule("confirm_nack", routing_key=queue, after=4, times=2))

    with RunningProxy(rabbitmq.url, fault) as proxy, connect(proxy) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue)
        for _ in range(10):
            channel.basic_publish("", queue, b"m")
        proxy.until(lambda: len(proxy.report.differences) == 2)
        channel.queue_delete(queue)
    assert [difference.upstream for difference in proxy.report.differences][:1] == ["basic.ack delivery_tag=5"]
    assert {difference.asked for difference in proxy.report.differences} == {f"basic.publish routing_key='{queue}'"}


def test_rpc_over_direct_replies_and_queues_has_no_differences(rabbitmq: RabbitMQ) -> None:
    with RunningProxy(rabbitmq.url) as proxy, connect(proxy) as server, connect(proxy) as client:
        answering, asking = server.channel(), client.channel()
        requests = answering.queue_declare("", auto_delete=True).method.queue
        own = asking.queue_declare("", exclusive=True).method.queue
        answers: list[bytes] = []
        asking.basic_consume("amq.rabbitmq.reply-to", lambda *given: answers.append(given[3]), auto_ack=True)
        asking.basic_consume(own, lambda *given: answers.append(given[3]), auto_ack=True)
        for number in range(20):
            reply_to = own if number % 2 else "amq.rabbitmq.reply-to"
            asking.basic_publish("", requests, b"%d" % number, pika.BasicProperties(reply_to=reply_to))
        for method, properties, body in answering.consume(requests):
            assert properties.reply_to is not None
            answering.basic_publish("", properties.reply_to, body)
            answering.basic_ack(method.delivery_tag)
            if method.delivery_tag == 20:
                break
        while len(answers) < 20:
            client.process_data_events(1)
    assert proxy.found == []


def test_competing_consumers_under_load_have_no_differences(rabbitmq: RabbitMQ) -> None:
    queue, count, done = unique_name("queue"), 1000, threading.Event()
    got: list[bytes] = []

    def consume() -> None:
        with connect(proxy) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=20)
            for method, _, body in channel.consume(queue, inactivity_timeout=0.2):
                if method is None:
                    if done.is_set():
                        return
                    continue
                if b"7" in body and not method.redelivered:
                    channel.basic_nack(method.delivery_tag, requeue=True)
                    continue
                got.append(body)
                channel.basic_ack(method.delivery_tag)

    def publish(number: int) -> None:
        with connect(proxy) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for one in range(count):
                channel.basic_publish("", queue, b"%d-%d" % (number, one))

    with RunningProxy(rabbitmq.url) as proxy:
        with connect(proxy) as connection:
            connection.channel().queue_declare(queue)
        threads = [threading.Thread(target=consume) for _ in range(4)]
        publishers = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
        for thread in (*threads, *publishers):
            thread.start()
        for thread in publishers:
            thread.join(100)
        proxy.until(lambda: len(got) >= 4 * count)
        done.set()
        for thread in threads:
            thread.join(30)
        with connect(proxy) as connection:
            connection.channel().queue_delete(queue)
    assert len(set(got)) == 4 * count
    assert proxy.found == []


def test_a_killed_upstream_is_not_a_difference(tmp_path: Path) -> None:
    own = RabbitMQ(tmp_path)
    own.start()
    try:
        with RunningProxy(own.url) as proxy:
            connection = connect(proxy)
            connection.channel().queue_declare("q")
            own.kill()
            with pytest.raises(pika.exceptions.AMQPError):
                connection.process_data_events(10)
    finally:
        own.kill()
    assert proxy.found == []
