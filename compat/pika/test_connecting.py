"""Connections with pika: refused logins, channels, heartbeats, and a broker that shuts down."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pika
import pytest
from pika.exceptions import (
    AMQPConnectionError,
    ConnectionClosedByBroker,
    NoFreeChannels,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until

Connect = Callable[..., pika.BlockingConnection]


@pytest.mark.parametrize("credentials", [("guest", "wrong"), ("nobody", "guest")])
def test_wrong_credentials_raise_probable_authentication_error(connect: Connect, credentials: tuple[str, str]) -> None:
    with pytest.raises(ProbableAuthenticationError) as raised:
        connect(credentials=pika.PlainCredentials(*credentials))
    assert "(403) 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN." in str(raised.value)


def test_an_unknown_vhost_is_not_allowed(connect: Connect) -> None:
    with pytest.raises(ProbableAccessDeniedError) as raised:
        connect(virtual_host="nowhere")
    assert "(530) 'NOT_ALLOWED - vhost nowhere not found'" in str(raised.value)


def test_the_broker_reports_rabbitmqs_properties(connection: pika.BlockingConnection) -> None:
    properties = connection._impl.server_properties
    assert properties["product"] == "RabbitMQ"
    assert connection.publisher_confirms_supported
    assert connection.basic_nack_supported
    assert connection.consumer_cancel_notify_supported
    assert connection.exchange_exchange_bindings_supported


def test_fifty_channels_share_a_connection(connection: pika.BlockingConnection) -> None:
    channels = [connection.channel() for _ in range(50)]
    received: dict[str, list[bytes]] = {}
    for channel in channels:
        queue = channel.queue_declare("", exclusive=True).method.queue
        received[queue] = []
        channel.basic_consume(queue, lambda _c, method, _p, body: received[method.routing_key].append(body), True)
    for n, queue in enumerate(received):
        channels[-1 - n].basic_publish("", queue, queue.encode())
    wait_until(lambda: all(received.values()), pause=connection.process_data_events)
    assert all(bodies == [queue.encode()] for queue, bodies in received.items())
    for channel in channels:
        channel.close()
    assert connection.is_open


def test_the_channel_limit_of_the_client_is_negotiated(connect: Connect) -> None:
    connection = connect(channel_max=3)
    for _ in range(3):
        connection.channel()
    with pytest.raises(NoFreeChannels):
        connection.channel()


def test_a_client_without_heartbeats_is_disconnected_and_its_message_redelivered(
    connect: Connect,
) -> None:
    queue = unique_name("heartbeat")
    alive, silent = connect(heartbeat=1), connect(heartbeat=1)
    watcher, hanging = alive.channel(), silent.channel()
    hanging.queue_declare(queue)
    hanging.confirm_delivery()
    hanging.basic_publish("", queue, b"held")
    assert hanging.basic_get(queue)[2] == b"held"
    redelivered: list[bool] = []
    watcher.basic_consume(queue, lambda _c, method, _p, _b: redelivered.append(method.redelivered), auto_ack=True)
    wait_until(lambda: redelivered == [True], timeout_s=10, pause=alive.process_data_events)
    assert watcher.is_open
    with pytest.raises(AMQPConnectionError):
        hanging.queue_declare(queue, passive=True)


def test_clients_of_a_stopping_broker_see_connection_forced(own_broker: BrokerProcess) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(own_broker.url))
    channel = connection.channel()
    channel.basic_consume(channel.queue_declare("", exclusive=True).method.queue, lambda *_: None)
    stopping = threading.Thread(target=own_broker.stop)
    stopping.start()
    with pytest.raises(ConnectionClosedByBroker) as raised:
        wait_until(lambda: False, timeout_s=30, pause=connection.process_data_events)
    stopping.join()
    assert raised.value.reply_code == 320
    assert raised.value.reply_text == "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
    with pytest.raises(AMQPConnectionError):
        pika.BlockingConnection(pika.URLParameters(own_broker.url))
