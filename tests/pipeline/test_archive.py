"""The archive beside a real broker, in the shared session of Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest

from amqp_broker.pipeline.archive import Archive, Progress
from amqp_broker.pipeline.event_rows import FIELDS
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_table import LakeRefused
from tests.pipeline import delta_log
from tests.pipeline.traced_broker import channel_at, trace_to, work, written_events
from tests.running import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningServer]:
    with RunningServer() as running:
        trace_to(running)
        yield running


class Failing(Lake):
    """Fails after the second batch of a table, before Spark commits it."""

    def append(self, table: str, rows: DataFrame, query: str, batch: int, writer: str) -> int:
        count = super().append(table, rows, query, batch, writer)
        if batch == 1:
            raise OSError("the disk is gone")
        return count


@pytest.fixture(scope="module")
def archived(spark: SparkSession, broker: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Run four times: fail after the second batch, continue, archive later events, and find nothing new."""
    folder = str(tmp_path_factory.mktemp("lake"))
    lake, options = Lake(spark, folder), {"url": broker.url, "queue": "trace", "maxOffsetsPerTrigger": "2"}
    with channel_at(broker.url) as channel:
        for _ in range(2):
            work(channel, 100)
            written_events(broker)
        channel.queue_bind("trace", "amq.topic", "#")
        channel.basic_publish("amq.topic", "publish.x", b"poison")
    with pytest.raises(Exception, match="the disk is gone"):
        Archive(spark, Failing(spark, folder), options).run()
    Archive(spark, lake, options).run()
    with channel_at(broker.url) as channel:
        channel.queue_unbind("trace", "amq.topic", "#")
        work(channel, 25)
        written_events(broker)
    Archive(spark, lake, options).run()
    nothing = Archive(spark, lake, options)
    nothing.run()
    assert (nothing.events, nothing.poisoned) == (0, 0)
    return lake


def test_each_event_is_archived_once_despite_failures(archived: Lake, broker: RunningServer) -> None:
    found = [tuple(row) for row in archived.read().select("trace_offset", "trace_index").collect()]
    assert len(set(found)) == len(found) == written_events(broker) > 4 * 225


def test_a_poisoned_message_is_kept_with_its_reason(archived: Lake) -> None:
    [row] = archived.read("poisoned").collect()
    assert row.reason == "header 'vhost' is missing"
    assert (row.routing_key, bytes(row.body), row.trace_queue) == ("publish.x", b"poison", "trace")


def test_other_readers_see_the_same_events(archived: Lake) -> None:
    found = sorted(row.trace_offset for row in archived.read().select("trace_offset").collect())
    assert delta_log.offsets(Path(archived.path, "events")) == found


@pytest.mark.parametrize("job", ["trace", "second"])
def test_a_second_archive_of_a_queue_is_refused(archived: Lake, broker: RunningServer, job: str) -> None:
    """By another job, or by the same from another checkpoint."""
    folder = Path(archived.path)
    (folder / "checkpoints").rename(folder / "kept")
    try:
        with pytest.raises(LakeRefused, match=r"^'trace' is archived in '.*' by the job 'trace'.*would store its"):
            Archive(archived.spark, archived, {"url": broker.url, "queue": "trace"}, job).run()
    finally:
        shutil.rmtree(folder / "checkpoints")
        (folder / "kept").rename(folder / "checkpoints")


def test_an_event_has_the_data_of_the_trace(archived: Lake, broker: RunningServer) -> None:
    story = archived.read().where("message_number = 1").orderBy("trace_offset", "trace_index").collect()
    assert [row.event for row in story] == ["publish", "confirm", "deliver", "ack"]
    publish, confirm, deliver, ack = story
    assert (publish.exchange, publish.routing_key, publish.queue, publish.routed_queues) == ("", "q", None, ["q"])
    assert (bytes(publish.body), publish.body_bytes, publish.time_source) == (b"body 0", 6, "broker")
    assert '"content_type": "text/plain"' in publish.properties
    assert (confirm.is_ack, confirm.publish_number, confirm.body_bytes) == (True, 1, None)
    assert (deliver.queue, deliver.redelivered, deliver.no_ack, deliver.body, deliver.body_bytes) == (
        *("q", False, False, None),
        6,
    )
    assert (ack.vhost, ack.user, ack.channel) == ("/", "guest", 1)
    assert publish.time < deliver.time < ack.time
    assert publish.numbered_since_us == ack.numbered_since_us > 0


def test_a_lake_has_its_schema(archived: Lake) -> None:
    files = [f"{archived.path}/events/{file.path}" for file in archived.tables["events"].files()]
    columns = archived.spark.read.parquet(*files).dtypes
    assert columns == [(field.name, field.type) for field in FIELDS]


def test_a_following_archive_takes_new_events(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path))
    seen: list[Progress] = []
    with RunningServer() as broker:
        trace_to(broker)
        with channel_at(broker.url) as channel:
            work(channel, 5)

        def stop(progress: Progress) -> None:
            seen.append(progress)
            if len(seen) == 1:
                with channel_at(broker.url) as channel:
                    work(channel, 5)
            elif progress.rows >= written_events(broker):
                raise KeyboardInterrupt

        job = Archive(spark, lake, {"url": broker.url, "queue": "trace"}, with_bodies=False)
        with pytest.raises(KeyboardInterrupt):
            job.run(follow=True, every_s=1, on_progress=stop)
        assert (job.events, job.poisoned) == (written_events(broker), 0)
    assert seen[0].rows_per_s > 0
    assert lake.read().where("body IS NOT NULL").count() == 0


def test_a_classic_queue_is_archived_once_despite_a_failure(
    spark: SparkSession, broker: RunningServer, tmp_path: Path
) -> None:
    """RabbitMQ's firehose goes to a classic queue. The test publishes the events itself."""
    with channel_at(broker.url) as channel:
        channel.queue_declare("copies")
        channel.queue_bind("copies", "amq.direct", "publish.x")
        for number in range(20):
            headers = {"vhost": "/", "exchange_name": "x", "properties": {}, "routing_keys": [str(number)]}
            channel.basic_publish("amq.direct", "publish.x", b"", pika.BasicProperties(headers=headers))
    options = {"url": broker.url, "queue": "copies", "queueType": "classic", "maxOffsetsPerTrigger": "8"}
    with pytest.raises(Exception, match="the disk is gone"):
        Archive(spark, Failing(spark, str(tmp_path)), options).run()
    lake = Lake(spark, str(tmp_path))
    Archive(spark, lake, options).run()
    keys = [row.routing_key for row in lake.read().select("routing_key").collect()]
    assert sorted(map(int, keys)) == list(range(20))
    with channel_at(broker.url) as channel:
        assert channel.queue_declare("copies", passive=True).method.message_count == 0
