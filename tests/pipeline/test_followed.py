"""The way of a message leads through retries, dead letters and tasks; both engines find the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amqp_broker.pipeline.followed import followed
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import EVERYTHING
from amqp_broker.pipeline.local_engine import LocalEngine
from amqp_broker.pipeline.spark_engine import SparkEngine
from amqp_broker.pipeline.spark_lake import SparkLake
from tests.pipeline import generated
from tests.pipeline.generated import START_US

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_ALL = {"vhost": "/", "node": "n", "numbered_since_us": 5}
# Event, number of the message, and more; the place is the time.
STORY: list[tuple[str, int | None, dict[str, Any]]] = [
    ("publish", 1, {"routed_queues": ["q"], "properties": '{"message_id": "it\'s \\\\ 1"}'}),
    ("publish", 2, {"routed_queues": ["q"], "properties": '{"correlation_id": "task"}'}),
    ("deliver", 1, {"queue": "q"}),
    ("nack", 1, {"queue": "q", "requeue": False}),
    ("dead_letter", 3, {"queue": "q", "from_message_number": 1, "reason": "rejected", "routed_queues": ["dead"]}),
    ("expire", 3, {"queue": "dead"}),
    ("dead_letter", 4, {"queue": "dead", "from_message_number": 3, "reason": "expired", "routed_queues": []}),
    ("publish", 5, {"routed_queues": [], "properties": '{"headers": {"root_id": "task"}}'}),
    ("publish", 6, {"routed_queues": [], "properties": "{"}),
    ("publish", None, {"routed_queues": ["q"], "properties": '{"message_id": "plain"}'}),
]
# The numbers of the events' messages on the ways of ids.
WAYS = {"it's \\ 1": [1, 1, 1, 3, 3, 4], "task": [2, 5], "plain": [], "none": []}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("story")
    events = [
        {**OF_ALL, "event": event, "message_number": number, "time_us": START_US + place, "trace_offset": place, **more}
        for place, (event, number, more) in enumerate(STORY)
    ]
    generated.write(events, folder)
    return str(folder)


@pytest.mark.parametrize("id_", WAYS)
def test_a_way_has_the_messages_with_an_id_and_their_dead_letters(story: str, id_: str) -> None:
    with LocalEngine(Lake(story)).report(EVERYTHING) as report:
        assert [row["message_number"] for row in followed(report, id_)] == WAYS[id_]


def test_spark_finds_the_same_ways(spark: SparkSession, story: str) -> None:
    with SparkEngine(SparkLake(spark, story)).report(EVERYTHING) as report:
        assert {id_: [row["message_number"] for row in followed(report, id_)] for id_ in WAYS} == WAYS


def test_a_way_of_dead_letters_in_a_loop_ends(tmp_path: Path) -> None:
    of_each = {**OF_ALL, "event": "dead_letter", "queue": "q", "reason": "rejected", "routed_queues": ["q"]}
    first = {**OF_ALL, "event": "publish", "message_number": 1, "properties": '{"message_id": "m"}'}
    events = [{**first, "routed_queues": ["q"], "time_us": START_US, "trace_offset": 0}]
    for place in range(1, 400):
        numbers = {"message_number": place + 1, "from_message_number": place}
        events.append({**of_each, **numbers, "time_us": START_US + place, "trace_offset": place})
    generated.write(events, tmp_path)
    with LocalEngine(Lake(str(tmp_path))).report(EVERYTHING) as report:
        assert len(followed(report, "m")) == 200
