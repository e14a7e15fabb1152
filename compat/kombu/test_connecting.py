"""Connections of kombu: refusals, retry policies, lost sockets, heartbeats."""

from __future__ import annotations

import contextlib
import socket
import time

import amqp
import pytest
from kombu import Connection, Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.transport.pyamqp import Channel

from compat.brokers import BrokerProcess, free_port
from compat.unique_names import unique_name
from compat.waiting import wait_until


def cut(connection: Connection) -> None:
    """Lose the TCP connection without a word, under the client's feet."""
    connection.connection.transport.sock.shutdown(socket.SHUT_RDWR)


def test_wrong_password_is_access_refused(broker: BrokerProcess) -> None:
    with pytest.raises(amqp.AccessRefused) as raised:
        Connection(broker.url.replace("guest:guest", "guest:wrong")).connect()
    assert raised.value.reply_code == 403
    assert "Login was refused using authentication mechanism PLAIN" in str(raised.value)


def test_amqplain_logs_in(broker: BrokerProcess) -> None:
    with Connection(broker.url, login_method="AMQPLAIN") as connection:
        assert connection.connect().connected
    with pytest.raises(amqp.AccessRefused, match="using authentication mechanism AMQPLAIN"):
        Connection(broker.url.replace("guest:guest", "guest:wrong"), login_method="AMQPLAIN").connect()


def test_unknown_vhost_is_not_allowed(broker: BrokerProcess) -> None:
    with pytest.raises(amqp.NotAllowed, match="vhost nowhere not found") as raised:
        Connection(broker.url, virtual_host="nowhere").connect()
    assert raised.value.reply_code == 530


def test_unreachable_broker_is_retried_by_the_policy() -> None:
    attempts: list[Exception] = []
    connection = Connection(f"amqp://127.0.0.1:{free_port()}")
    with pytest.raises(OperationalError):
        connection.ensure_connection(
            errback=lambda exception, _interval: attempts.append(exception),
            max_retries=3,
            interval_start=0.01,
            interval_step=0.01,
        )
    assert [type(attempt) for attempt in attempts] == [ConnectionRefusedError] * 3


def test_failover_tries_the_next_url(broker: BrokerProcess) -> None:
    with Connection([f"amqp://127.0.0.1:{free_port()}", broker.url], failover_strategy="round-robin") as connection:
        connection.ensure_connection(max_retries=3, interval_start=0.01)
        assert connection.connected
        assert connection.port == broker.port


def test_publish_with_retry_survives_a_lost_connection(connection: Connection) -> None:
    name = unique_name("retry")
    queue = Queue(name, Exchange(name), routing_key=name)
    producer = connection.Producer()
    options = {"exchange": queue.exchange, "routing_key": name, "declare": [queue]}
    retry = {"retry": True, "retry_policy": {"max_retries": 5, "interval_start": 0, "interval_step": 0.1}}
    producer.publish("before", **options, **retry)
    cut(connection)
    producer.publish("after", **options, **retry)
    bound = queue(connection.channel())
    assert [bound.get(no_ack=True).decode() for _ in range(2)] == ["before", "after"]


def test_ensure_applies_a_function_again_on_a_new_channel(connection: Connection) -> None:
    revived: list[Channel] = []
    producer = connection.Producer()
    declare = connection.ensure(
        producer,
        lambda name: Queue(name, exclusive=True)(producer.channel).declare(),
        max_retries=5,
        interval_start=0,
        on_revive=revived.append,
    )
    assert declare(unique_name("ensured"))
    cut(connection)
    assert declare(unique_name("ensured again"))
    assert len(revived) == 1


def test_autoretry_gives_the_function_a_working_channel(connection: Connection) -> None:
    name = unique_name("autoretry")

    def declare(channel: Channel) -> str:
        return str(Queue(name, exclusive=True)(channel).declare())

    _, channel = connection.autoretry(declare)()
    cut(connection)
    declared, other_channel = connection.autoretry(declare, channel, interval_start=0)()
    assert declared == name
    assert other_channel is not channel


def test_channel_error_leaves_the_connection_usable(connection: Connection) -> None:
    missing = unique_name("missing")
    with pytest.raises(amqp.NotFound, match=f"no queue '{missing}' in vhost '/'") as raised:
        Queue(missing)(connection.channel()).queue_declare(passive=True)
    assert raised.value.reply_code == 404
    assert connection.connected
    assert Queue("", exclusive=True)(connection.channel()).queue_declare().queue.startswith("amq.gen-")


def test_exclusive_queue_is_locked_for_another_connection(broker: BrokerProcess, channel: Channel) -> None:
    queue = Queue(unique_name("exclusive"), exclusive=True)
    queue(channel).declare()
    with Connection(broker.url) as other, pytest.raises(amqp.exceptions.ResourceLocked) as raised:
        queue(other.default_channel).declare()
    assert raised.value.reply_code == 405


def test_idle_connection_lives_on_heartbeats_of_both_sides(broker: BrokerProcess) -> None:
    with Connection(broker.url, heartbeat=1) as connection:
        assert connection.connect().heartbeat == 1
        before = connection.connection.bytes_recv
        silent_since = time.monotonic()

        def beat(seconds: float) -> None:
            with contextlib.suppress(TimeoutError):
                connection.drain_events(timeout=seconds)
            connection.heartbeat_check()

        # Frames, in spite of its name: the broker sends nothing here but a heartbeat each half second.
        wait_until(lambda: connection.connection.bytes_recv >= before + 6, pause=beat)
        assert time.monotonic() - silent_since >= 2
        assert connection.connected


def test_many_channels_open_and_close_on_one_connection(connection: Connection) -> None:
    channels = [connection.channel() for _ in range(50)]
    for channel in channels[::2]:
        channel.close()
    reused = [connection.channel() for _ in range(25)]
    assert len({channel.channel_id for channel in channels[1::2] + reused}) == 50
    for channel in reused:
        Queue("", exclusive=True)(channel).queue_declare()
