"""Messages of the trace become events or poisoned rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from amqp_broker.pipeline.event_rows import FIELDS, POISONED, TRACE_SCHEMA, events_of, parse, poisoned_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

OF_ALL = {"vhost": "/", "exchange_name": "x", "node": "rabbit@here", "routing_keys": '["k", "cc"]'}
TOLD = OF_ALL | {"message_number": "7", "time_us": "1790000000123456", "numbered_since_us": "1789000000000000"}
# Cases by name: routing key, headers, body, and the error of decoding.
EVENTS: dict[str, tuple[Any, ...]] = {
    "publish": (
        "publish.x",
        TOLD | {"routed_queues": '["a", "b.c"]', "properties": '{"type": "t"}', "user": "me", "channel": "3"},
        b"12345",
        None,
    ),
    "dotted": ("deliver.a.b", TOLD | {"redelivered": "1", "no_ack": "true", "properties": "{}"}, b"123", None),
    "nack": ("nack.a", TOLD | {"requeue": "false"}, b"", None),
    "confirm": ("confirm.x", TOLD | {"ack": "true", "delivery_tag": "12"}, b"", None),
    "return": ("return.x", TOLD | {"reply_code": "312", "reply_text": "NO_ROUTE"}, b"", None),
    "dead_letter": (
        "dead_letter.a",
        TOLD | {"from_message_number": "6", "death_count": "2", "reason": "expired", "routed_queues": "[]"},
        b"",
        None,
    ),
    "old": ("deliver.a", TOLD | {"message_number": "0"}, b"", None),
    "firehose": ("publish.x", OF_ALL | {"properties": '{"timestamp": 1700000000}'}, b"1", None),
    "intercepted": (
        "publish.x",
        OF_ALL | {"properties": '{"headers": {"timestamp_in_ms": 1700000000123}, "timestamp": 5}'},
        b"1",
        None,
    ),
    "timeless": ("deliver.a", OF_ALL | {"properties": '{"timestamp": -4}'}, b"", None),
}
POISON: dict[str, tuple[str, tuple[Any, ...]]] = {
    "other": ("unknown event 'orders'", ("orders", TOLD, b"x", None)),
    "keyless": ("the routing key is missing", (None, TOLD, b"", None)),
    "bare": ("header 'vhost' is missing", ("publish.x", None, b"", None)),
    "empty": ("header 'vhost' is missing", ("publish.x", {}, b"", None)),
    "no_exchange": ("header 'exchange_name' is missing", ("publish.x", {"vhost": "/"}, b"", None)),
    "late": ("header 'time_us' is not a valid bigint: soon", ("ack.q", TOLD | {"time_us": "soon"}, b"", None)),
    "never": (
        "header 'time_us' is not a valid time: 999999999999999999",
        ("ack.q", TOLD | {"time_us": "9" * 18}, b"", None),
    ),
    "before": ("header 'time_us' is not a valid time: -1", ("ack.q", TOLD | {"time_us": "-1"}, b"", None)),
    "wide": ("header 'channel' is not a valid int: 99999999999", ("ack.q", TOLD | {"channel": "9" * 11}, b"", None)),
    "truth": ("header 'requeue' is not a valid boolean: perhaps", ("nack.q", TOLD | {"requeue": "perhaps"}, b"", None)),
    "list": (
        "header 'routed_queues' is not a valid array<string>: [",
        ("publish.x", TOLD | {"routed_queues": "["}, b"", None),
    ),
    "torn": ("headers that are cut off", ("publish.x", None, b"", "headers that are cut off")),
}


@pytest.fixture(scope="module")
def parsed(spark: SparkSession) -> tuple[dict[str, Row], dict[str, Row]]:
    """Return events and poisoned rows by the names of the cases (in the column of the queue)."""
    cases = {**EVENTS, **{name: row for name, (_, row) in POISON.items()}}
    rows = [
        (body, name, key, number, headers, error)
        for number, (name, (key, headers, body, error)) in enumerate(cases.items())
    ]
    all_rows = parse(spark.createDataFrame(rows, TRACE_SCHEMA))
    events, poisoned = events_of(all_rows).collect(), poisoned_of(all_rows).collect()
    return {row.trace_queue: row for row in events}, {row.trace_queue: row for row in poisoned}


def test_every_row_is_an_event_or_poisoned(parsed: tuple[dict[str, Row], dict[str, Row]]) -> None:
    events, poisoned = parsed
    assert set(events) == set(EVENTS)
    assert {name: row.reason for name, row in poisoned.items()} == {name: why for name, (why, _) in POISON.items()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "publish",
            {
                "event": "publish",
                "exchange": "x",
                "routing_key": "k",
                "queue": None,
                "message_number": 7,
                "routed_queues": ["a", "b.c"],
                "properties": '{"type": "t"}',
                "body": b"12345",
                "body_bytes": 5,
                "time": datetime(2026, 9, 21, 14, 13, 20, 123456),
                "time_source": "broker",
                "channel": 3,
                "user": "me",
                "numbered_since_us": 1789000000000000,
                "node": "rabbit@here",
            },
        ),
        (
            "dotted",
            {
                "queue": "a.b",
                "redelivered": True,
                "no_ack": True,
                "body": None,
                "body_bytes": 3,
                "properties": None,
            },
        ),
        ("nack", {"queue": "a", "requeue": False, "body_bytes": None}),
        ("confirm", {"queue": None, "is_ack": True, "publish_number": 12}),
        ("return", {"reply_code": 312, "reply_text": "NO_ROUTE"}),
        (
            "dead_letter",
            {"queue": "a", "from_message_number": 6, "death_count": 2, "reason": "expired", "routed_queues": []},
        ),
        ("old", {"message_number": None}),
        (
            "firehose",
            {"message_number": None, "time_source": "message", "time": datetime(2023, 11, 14, 22, 13, 20)},
        ),
        ("intercepted", {"time_source": "message", "time": datetime(2023, 11, 14, 22, 13, 20, 123000)}),
        ("timeless", {"time_source": "archive"}),
    ],
)
def test_an_event_has_the_values_of_its_headers(
    parsed: tuple[dict[str, Row], dict[str, Row]], name: str, expected: dict[str, Any]
) -> None:
    row = parsed[0][name].asDict()
    assert {column: row[column] for column in expected} == expected


def test_a_poisoned_message_is_kept_whole(parsed: tuple[dict[str, Row], dict[str, Row]]) -> None:
    row = parsed[1]["other"]
    assert (row.routing_key, row.headers, row.body) == ("orders", TOLD, b"x")
    assert abs(row.archived_at.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() < 600


def test_column_names_are_unique() -> None:
    for fields in (FIELDS, POISONED):
        assert len({field.name for field in fields}) == len(fields)
