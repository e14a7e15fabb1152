from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from amqp_broker.testing import EmbeddedBroker
from pyspark_amqp import arrow_rows
from pyspark_amqp.errors import ConnectionLost, DataLoss
from pyspark_amqp.offsets import Range
from pyspark_amqp.stream_range import RangeReader
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import SCHEMA, options_of


def read(at: At, wanted: Range, **given: object) -> list[tuple[int, bytes]]:
    reader = RangeReader(options_of(at, wanted.queue, queueType="stream", **given), wanted, SCHEMA)
    return [(row["offset"], row["body"]) for batch in reader.read() for row in batch.to_pylist()]


def test_a_range_has_the_messages_between_its_offsets(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, [b"%d" % number for number in range(3000)])
    expected = [(number, b"%d" % number) for number in range(3000)]
    assert read(broker, Range(queue, 0, 3000), prefetch=100) == expected
    assert read(broker, Range(queue, 1500, 2700)) == expected[1500:2700]
    assert read(broker, Range(queue, 2999, 3000)) == expected[2999:]
    assert read(broker, Range(queue, 7, 7)) == []


def test_huge_bodies_are_read_in_small_batches(broker: At) -> None:
    queue = broker.stream()
    bodies = [bytes((number,)) * (3 << 20) for number in range(4)]
    broker.publish(queue, bodies)
    options = options_of(broker, queue, queueType="stream")
    batches = list(RangeReader(options, Range(queue, 0, 4), SCHEMA).read())
    assert [row["body"] for batch in batches for row in batch.to_pylist()] == bodies
    assert max(batch.num_rows for batch in batches) <= 2


def retained(at: At) -> tuple[str, int]:
    """Return a stream whose first messages were removed, and its first offset."""
    queue = at.stream(**{"x-max-length-bytes": 100_000, "x-stream-max-segment-size-bytes": 50_000})
    for start in range(0, 400, 50):
        at.publish(queue, [b"%04d" % number + bytes(1000) for number in range(start, start + 50)])
    first = read(at, Range(queue, 0, 400), failOnDataLoss=False)[0][0]
    return queue, first


def test_messages_removed_by_retention_are_an_error_or_skipped(broker: At) -> None:
    queue, first = retained(broker)
    assert 0 < first < 400
    with pytest.raises(DataLoss, match=rf"offsets 0 to {first - 1} of queue '{queue}' are gone.*failOnDataLoss"):
        read(broker, Range(queue, 0, 400))
    skipping = read(broker, Range(queue, 0, 400), failOnDataLoss=False)
    offsets, numbers = [offset for offset, _ in skipping], [int(body[:4]) for _, body in skipping]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    # RabbitMQ starts a segment with an internal record, which takes an offset.
    assert offsets == sorted(set(offsets))
    assert (offsets[0], offsets[-1]) in ((first, 398), (first, 399))
    assert offsets[-1] - numbers[-1] <= 8
    assert read(broker, Range(queue, 0, first), failOnDataLoss=False) == []


@pytest.mark.parametrize("fails", [True, False])
def test_retention_that_overtakes_a_task_is_noticed(
    amqp_broker: At, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(arrow_rows, "BATCH_ROWS_MAX", 5)
    queue = amqp_broker.stream(**{"x-max-length-bytes": 100_000, "x-stream-max-segment-size-bytes": 50_000})
    amqp_broker.publish(queue, [bytes(1000)] * 50)
    options = options_of(amqp_broker, queue, queueType="stream", prefetch=4, failOnDataLoss=fails)
    batches = RangeReader(options, Range(queue, 0, 450), SCHEMA).read()
    found = next(batches).column("offset").to_pylist()
    for _ in range(8):
        amqp_broker.publish(queue, [bytes(1000)] * 50)
    if fails:
        with pytest.raises(DataLoss, match=rf"offsets \d+ to \d+ of queue '{queue}' are gone"):
            list(batches)
    else:
        found += [offset for batch in batches for offset in batch.column("offset").to_pylist()]
        assert (found[0], found[-1]) == (0, 449)
        assert len(found) < 450


def test_a_range_after_the_end_is_lost(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, [b"a"])
    with pytest.raises(DataLoss, match="offsets 5 to 8"):
        read(amqp_broker, Range(queue, 5, 9), pollTimeoutMs=50)


class Cutting:
    """A proxy that cuts each of the first connections after a number of octets."""

    def __init__(self, port: int, cuts: list[int]) -> None:
        self.broker_port = port
        self.cuts = cuts
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self.broker_port))
            left = self.cuts.pop(0) if self.cuts else 1 << 60
            threading.Thread(target=self._pass, args=(peer, broker, 1 << 60), daemon=True).start()
            threading.Thread(target=self._pass, args=(broker, peer, left), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, left: int) -> None:
        with contextlib.suppress(OSError):
            while left > 0 and (octets := source.recv(min(left, 65536))):
                left -= len(octets)
                target.sendall(octets)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_reading_resumes_after_a_lost_connection() -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.stream()
        at.publish(queue, [b"%d" % number for number in range(2000)])
        cutting = Cutting(broker.port, [20_000, 30_000, 40_000])
        at.url = at.url.replace(str(broker.port), str(cutting.port))
        found = read(at, Range(queue, 0, 2000))
        assert found == [(number, b"%d" % number) for number in range(2000)]
        assert cutting.cuts == []
        cutting.server.close()
        at.connection.close()


def test_a_repeatedly_lost_connection_is_an_error() -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.stream()
        at.publish(queue, [b"x" * 5000] * 2)
        cutting = Cutting(broker.port, [1500] * 10)
        at.url = at.url.replace(str(broker.port), str(cutting.port))
        with pytest.raises(ConnectionLost):
            read(at, Range(queue, 0, 2), reconnectTimeout="1s")
        cutting.server.close()
        at.connection.close()
