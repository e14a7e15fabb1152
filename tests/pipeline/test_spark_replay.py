"""From `trace on` to a replay, with amqp-broker and with RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pika
import pytest

from amqp_broker.pipeline import spark_replay
from amqp_broker.pipeline.lake_slice import Replayed, Slice
from amqp_broker.pipeline.local_engine import LocalEngine
from amqp_broker.pipeline.spark_archive import SparkArchive
from amqp_broker.pipeline.spark_engine import SparkEngine
from amqp_broker.pipeline.spark_lake import SparkLake
from compat.oracles.rabbitmq import RabbitMQ
from tests.cli.program import run, serving
from tests.pipeline.traced_broker import channel_at, work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 40


class Traced(NamedTuple):
    """A broker, the lake of its trace, and the output of `trace`."""

    url: str
    is_ours: bool
    lake: SparkLake
    told: list[str]


@pytest.fixture(scope="module", params=["amqp-broker", pytest.param("RabbitMQ", marks=pytest.mark.verify)])
def traced(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "amqp-broker":
        with serving(folder, "--management-port", "0") as broker:
            yield archived(spark, folder, broker.port, broker.ports["management"], is_ours=True)
        return
    if not RabbitMQ.is_installed():
        pytest.skip("needs RabbitMQ")
    rabbitmq = RabbitMQ(folder, plugins=("rabbitmq_management",))
    rabbitmq.start()
    try:
        yield archived(spark, folder, rabbitmq.port, rabbitmq.management_port, is_ours=False)
    finally:
        rabbitmq.kill()


def archived(spark: SparkSession, folder: Any, port: int, http_port: int, *, is_ours: bool) -> Traced:
    url, api = f"amqp://guest:guest@127.0.0.1:{port}/", f"http://guest:guest@127.0.0.1:{http_port}"
    told = []

    def trace(*words: str) -> None:
        done = run("trace", *words, "--url", api)
        assert (done.returncode, done.stderr) == (0, "")
        told.append(done.stdout)

    trace("on", "--max-age", "1D")
    trace("on", "--max-age", "1D")
    with channel_at(url) as channel:
        work(channel, COUNT)
    trace("off")
    trace("status")
    lake = SparkLake(spark, str(folder / "lake"))
    SparkArchive(lake, {"url": url, "queue": "trace", "queueType": "stream" if is_ours else "classic"}).run()
    return Traced(url, is_ours, lake, told)


def test_trace_reports_its_state(traced: Traced) -> None:
    what, queue = ("trace", "stream") if traced.is_ours else ("firehose", "classic queue")
    on = f"The {what} of vhost '/' is on and goes to the {queue} 'trace'.\n"
    assert traced.told[:2] == [on, on]
    is_off = "The trace of vhost '/' is off"
    if traced.is_ours:
        assert traced.told[2:] == [f"{is_off}: {4 * COUNT} events in the stream 'trace'.\n", f"{is_off}.\n"]
    else:
        assert traced.told[2] == f"{is_off}.\n"
        assert traced.told[3].startswith(f"{is_off}.\nclassic queue 'trace': ")


def test_the_events_are_those_of_the_brokers_trace(traced: Traced) -> None:
    counts = {row.event: row["count"] for row in traced.lake.read().groupBy("event").count().collect()}
    told = ("publish", "deliver", "confirm", "ack") if traced.is_ours else ("publish", "deliver")
    assert counts == dict.fromkeys(told, COUNT)
    sources = {row.time_source for row in traced.lake.read().select("time_source").distinct().collect()}
    # The publisher's timestamp is the only time in a firehose.
    assert sources == {"broker" if traced.is_ours else "message"}


@pytest.mark.parametrize("engine", [LocalEngine, SparkEngine])
def test_messages_are_published_again_unchanged_and_in_order(
    traced: Traced, engine: type[LocalEngine] | type[SparkEngine]
) -> None:
    with channel_at(traced.url) as channel:
        channel.queue_declare("again")
        replayed = Replayed(Slice(vhost="/"), exchange="", routing_key="q")
        options = {"url": traced.url, "exchange": "", "routingKey": "again"}
        assert engine(traced.lake).replay(replayed, options) == COUNT
        got = [channel.basic_get("again", auto_ack=True) for _ in range(COUNT)]
        assert channel.basic_get("again", auto_ack=True) == (None, None, None)
    assert [body for _, _, body in got] == [b"body %d" % number for number in range(COUNT)]
    properties = got[3][1]
    assert isinstance(properties, pika.BasicProperties)
    assert (properties.content_type, properties.timestamp, properties.message_id) == ("text/plain", 7, None)
    assert properties.headers == {"number": "3"}


def test_only_selected_messages_are_published_again(traced: Traced) -> None:
    assert spark_replay.messages(traced.lake.read(), exchange="other").count() == 0
    assert spark_replay.messages(traced.lake.read(), routing_key="other").count() == 0
