"""The archive beside a real broker, in this process and in the shared session of Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pyarrow.parquet as pq
import pytest

from amqp_broker.pipeline.archive import Archive, Progress
from amqp_broker.pipeline.event_rows import FIELDS
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_table import LakeRefused, LakeTable
from amqp_broker.pipeline.local_archive import LocalArchive
from amqp_broker.pipeline.spark_archive import SparkArchive
from amqp_broker.pipeline.spark_lake import SparkLake
from tests.pipeline import delta_log
from tests.pipeline.traced_broker import channel_at, trace_to, work, written_events
from tests.running import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningServer]:
    with RunningServer() as running:
        trace_to(running)
        yield running


Start = Callable[..., Archive]


@pytest.fixture(scope="module", params=["local", "spark"])
def start(request: pytest.FixtureRequest) -> Start:
    """Return a function that makes an archive of an engine, with the lake's path, options and more."""
    if request.param == "local":
        return lambda folder, options, job="trace", **more: LocalArchive(Lake(str(folder)), options, job, **more)
    spark: SparkSession = request.getfixturevalue("spark")
    return lambda folder, options, job="trace", **more: SparkArchive(
        SparkLake(spark, str(folder)), options, job, **more
    )


class Failing(LakeTable):
    """Fails after the commit of its second batch, before the engine commits that batch."""

    def commit(self, folder: str, batches: Mapping[str, int], writer: str) -> int:
        count = super().commit(folder, batches, writer)
        if 1 in batches.values():
            raise OSError("the disk is gone")
        return count


def failing(archive: Archive) -> Archive:
    """Return the archive with a table of events that fails."""
    table = archive.lake.tables["events"]
    archive.lake.tables["events"] = Failing(table.place, table.fields, table.options)
    return archive


def events_in(lake: Lake, *columns: str) -> list[dict[str, Any]]:
    """Return the rows of the table of events, in the order of their places in the trace."""
    rows: list[dict[str, Any]] = lake.dataset().to_table(columns=list(columns) or None).to_pylist()
    return sorted(rows, key=lambda row: (row.get("trace_offset"), row.get("trace_index", 0)))


@pytest.fixture(scope="module")
def archived(broker: RunningServer, start: Start, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Run four times: fail after the second batch, continue, archive later events, and find nothing new."""
    folder, options = tmp_path_factory.mktemp("lake"), {"url": broker.url, "queue": "trace"}
    options["maxOffsetsPerTrigger"] = "2"
    with channel_at(broker.url) as channel:
        for _ in range(2):
            work(channel, 100)
            written_events(broker)
        channel.queue_bind("trace", "amq.topic", "#")
        channel.basic_publish("amq.topic", "publish.x", b"poison")
    with pytest.raises(Exception, match="the disk is gone"):
        failing(start(folder, options)).run()
    start(folder, options).run()
    with channel_at(broker.url) as channel:
        channel.queue_unbind("trace", "amq.topic", "#")
        work(channel, 25)
        written_events(broker)
    start(folder, options).run()
    nothing = start(folder, options)
    nothing.run()
    assert (nothing.events, nothing.poisoned) == (0, 0)
    return Lake(str(folder))


def test_each_event_is_archived_once_despite_failures(archived: Lake, broker: RunningServer) -> None:
    found = [tuple(row.values()) for row in events_in(archived, "trace_offset", "trace_index")]
    assert len(set(found)) == len(found) == written_events(broker)
    assert len(found) > 4 * 225


def test_a_poisoned_message_is_kept_with_its_reason(archived: Lake) -> None:
    poisoned = archived.dataset("poisoned").to_table().to_pylist()
    assert {row["reason"] for row in poisoned} == {"header 'vhost' is missing"}
    assert {(row["routing_key"], row["body"], row["trace_queue"]) for row in poisoned} == {
        ("publish.x", b"poison", "trace")
    }
    assert len({row["trace_offset"] for row in poisoned}) == len(poisoned)


def test_other_readers_see_the_same_events(archived: Lake) -> None:
    found = [row["trace_offset"] for row in events_in(archived, "trace_offset")]
    assert delta_log.offsets(Path(archived.path, "events")) == found


@pytest.mark.parametrize("job", ["trace", "second"])
def test_a_second_archive_of_a_queue_is_refused(archived: Lake, broker: RunningServer, start: Start, job: str) -> None:
    """By another job, or by the same from another checkpoint."""
    folder = Path(archived.path)
    (folder / "checkpoints").rename(folder / "kept")
    try:
        with pytest.raises(LakeRefused, match=r"^'trace' is archived in '.*' by the job 'trace'.*would store its"):
            start(folder, {"url": broker.url, "queue": "trace"}, job).run()
    finally:
        shutil.rmtree(folder / "checkpoints")
        (folder / "kept").rename(folder / "checkpoints")


def test_an_event_has_the_data_of_the_trace(archived: Lake, broker: RunningServer) -> None:
    story = [row for row in events_in(archived) if row["message_number"] == 1]
    assert [row["event"] for row in story] == ["publish", "confirm", "deliver", "ack"]
    publish, confirm, deliver, ack = story
    names = ("exchange", "routing_key", "queue", "routed_queues", "body", "body_bytes", "time_source")
    assert [publish[name] for name in names] == ["", "q", None, ["q"], b"body 0", 6, "broker"]
    assert '"content_type": "text/plain"' in publish["properties"]
    assert [confirm[name] for name in ("is_ack", "publish_number", "body_bytes")] == [True, 1, None]
    facts = ("queue", "redelivered", "no_ack", "body", "body_bytes")
    assert [deliver[name] for name in facts] == ["q", False, False, None, 6]
    assert [ack[name] for name in ("vhost", "user", "channel", "connection_name")] == ["/", "guest", 1, "worker"]
    assert publish["time"] < deliver["time"] < ack["time"]
    assert publish["numbered_since_us"] == ack["numbered_since_us"] > 0


def test_a_lake_has_its_schema(archived: Lake) -> None:
    files = [f"{archived.path}/events/{file.path}" for file in archived.tables["events"].files()]
    names = [field.name for field in FIELDS]
    assert {tuple(pq.read_schema(file).names) for file in files} == {tuple(names)}


def test_a_following_archive_takes_new_events(start: Start, tmp_path: Path) -> None:
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

        job = start(tmp_path, {"url": broker.url, "queue": "trace"}, with_bodies=False)
        with pytest.raises(KeyboardInterrupt):
            job.run(follow=True, every_s=1, on_progress=stop)
        assert (job.events, job.poisoned) == (written_events(broker), 0)
    assert seen[0].rows_per_s > 0
    assert {row["body"] for row in events_in(Lake(str(tmp_path)))} == {None}


def test_a_classic_queue_is_archived_once_despite_a_failure(
    start: Start, broker: RunningServer, tmp_path: Path
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
        failing(start(tmp_path, options)).run()
    start(tmp_path, options).run()
    keys = [row["routing_key"] for row in events_in(Lake(str(tmp_path)))]
    assert sorted(map(int, keys)) == list(range(20))
    with channel_at(broker.url) as channel:
        assert channel.queue_declare("copies", passive=True).method.message_count == 0
