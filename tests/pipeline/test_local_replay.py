"""Properties of a message become those of its copy; test_spark_replay.py publishes with both engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import EVERYTHING, Replayed
from amqp_broker.pipeline.local_replay import messages, properties_of
from amqp_broker.pipeline.spark_lake import SparkLake
from amqp_broker.pipeline.spark_replay import messages as messages_of_spark
from tests.pipeline import generated
from tests.pipeline.generated import START_US

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [
    None,
    "{}",
    '{"headers": {"a": 1, "b": "x", "c": {"d": [1, "e"]}, "f": true, "g": null}, "timestamp": 7, "priority": 3}',
    '{"content_type": "text/plain", "delivery_mode": 2, "message_id": "m", "correlation_id": "é"}',
]


def publishes() -> list[dict[str, Any]]:
    of_all = {"event": "publish", "exchange": "x", "routing_key": "k", "time_us": START_US}
    places = [3, 1, 2, 0]
    return [
        {**of_all, "body": b"%d" % place, "properties": text, "trace_offset": place}
        for place, text in zip(places, TEXTS, strict=True)
    ]


def test_both_engines_take_the_same_messages_in_the_same_order(spark: SparkSession, tmp_path: Path) -> None:
    generated.write(publishes(), tmp_path)
    ours = [row for rows in messages(Lake(str(tmp_path)), Replayed(EVERYTHING)) for row in rows.to_pylist()]
    theirs = messages_of_spark(SparkLake(spark, str(tmp_path)).read()).toArrow().to_pylist()
    for row in (*ours, *theirs):
        row["headers"] = dict(row["headers"] or ())
    assert ours == theirs
    assert [row["body"] for row in ours] == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("exchange", "routing_key", "count"), [("x", None, 4), ("y", None, 0), (None, "k", 4), ("x", "l", 0)]
)
def test_messages_are_chosen_by_exchange_and_key(
    tmp_path: Path, exchange: str | None, routing_key: str | None, count: int
) -> None:
    generated.write(publishes(), tmp_path)
    found = messages(Lake(str(tmp_path)), Replayed(EVERYTHING, exchange, routing_key))
    assert sum(len(rows) for rows in found) == count


def test_a_property_of_another_type_is_left_out() -> None:
    found = properties_of('{"priority": "high", "headers": [], "timestamp": true, "type": 5}')
    assert {name: value for name, value in found.items() if value} == {"type": "5"}
