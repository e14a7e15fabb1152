from __future__ import annotations

import time

import pytest

from pyspark_amqp.address import from_url
from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.delivery_run import Run, total_count
from pyspark_amqp.errors import OptionError
from pyspark_amqp.stream_probe import StreamProbe, begin
from tests.pyspark_amqp.conftest import At


def test_an_empty_stream_starts_and_ends_at_0(broker: At) -> None:
    probe = StreamProbe(broker.stream(), 0.03)
    with Connection(from_url(broker.url)) as connection:
        assert (probe.first(connection), probe.look(connection)) == (0, 0)


def test_the_tail_follows_the_last_message_at_once(broker: At) -> None:
    queue = broker.stream()
    probe = StreamProbe(queue, 0.03)
    with Connection(from_url(broker.url)) as connection:
        assert probe.look(connection) == 0
        for expected in (500, 1000):
            broker.publish(queue, [b"x"] * 500)
            assert probe.look(connection, quiet_s=0.5) == expected
        assert StreamProbe(queue, 0.5).look(connection) == 1000


def test_the_brokers_count_is_reached_despite_pauses(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, [b"x"] * 50)
    with Connection(from_url(amqp_broker.url)) as connection:
        assert StreamProbe(queue, 0.0).look(connection) == 50


@pytest.mark.parametrize("count", [100, 900, 9000])
def test_a_tail_is_found_with_one_new_message_and_the_last_chunk(
    amqp_broker: At, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    queue = amqp_broker.stream()
    probe = StreamProbe(queue, 0.03)
    received: list[int] = []
    real = Connection.poll

    def noting(connection: Connection, timeout_s: float) -> list[Run]:
        runs = real(connection, timeout_s)
        received.append(total_count(runs))
        return runs

    with Connection(from_url(amqp_broker.url)) as connection:
        probe.look(connection)
        amqp_broker.publish(queue, [b"x"] * (count - 1))
        # A chunk of its own: it comes after the confirms.
        amqp_broker.publish(queue, [b"x"])
        monkeypatch.setattr(Connection, "poll", noting)
        assert probe.look(connection) == count
    assert sum(received) <= 1 + count // 10


def test_a_probe_may_wait_for_the_next_message(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    probe = StreamProbe(queue, 0.01)
    with Connection(from_url(amqp_broker.url)) as connection:
        probe.look(connection)
        started = time.monotonic()
        assert probe.look(connection, wait_s=0.1) == 0
        assert time.monotonic() - started >= 0.1


def test_another_queue_is_refused_and_its_messages_are_untouched(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, [b"a"])
    is_refused = pytest.raises(OptionError, match=r"'queueType'.*is not a stream")
    with Connection(from_url(broker.url)) as connection, is_refused:
        begin(connection, queue, "first", 1)
    method, _, _ = broker.channel.basic_get(queue, auto_ack=True)
    assert not method.redelivered


def test_a_time_is_converted_to_an_offset(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, [b"a", b"b"])
    probe = StreamProbe(queue, 0.03)
    with Connection(from_url(broker.url)) as connection:
        assert probe.at(connection, 0) == 0
        assert probe.at(connection, int(time.time() + 3600) * 1000) == 2
