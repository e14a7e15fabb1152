"""What becomes of messages of the trace, and why some are no events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from amqp_broker.pipeline.events import FIELDS, POISONED, TRACE_SCHEMA, events_of, parse, poisoned_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

OF_ALL = {"vhost": "/", "exchange_name": "x", "node": "rabbit@here", "routing_keys": '["k", "cc"]'}
TOLD = OF_ALL | {"message_number": "7", "time_us": "1790000000123456", "numbered_since_us": "1789000000000000"}
# Name of a case: routing key, headers, body, and why the row could not be decoded.
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
    "other": ("no event is called 'orders'", ("orders", TOLD, b"x", None)),
    "keyless": ("it has no routing key", (None, TOLD, b"", None)),
    "bare": ("it has no header 'vhost'", ("publish.x", None, b"", None)),
    "empty": ("it has no header 'vhost'", ("publish.x", {}, b"", None)),
    "no_exchange": ("it has no header 'exchange_name'", ("publish.x", {"vhost": "/"}, b"", None)),
    "late": ("header 'time_us' is no bigint: soon", ("ack.q", TOLD | {"time_us": "soon"}, b"", None)),
    "never": (
        "header 'time_us' is no time: 999999999999999999",
        ("ack.q", TOLD | {"time_us": "9" * 18}, b"", None),
    ),
    "before": ("header 'time_us' is no time: -1", ("ack.q", TOLD | {"time_us": "-1"}, b"", None)),
    "wide": ("header 'channel' is no int: 99999999999", ("ack.q", TOLD | {"channel": "9" * 11}, b"", None)),
    "truth": ("header 'requeue' is no boolean: perhaps", ("nack.q", TOLD | {"requeue": "perhaps"}, b"", None)),
    "list": ("header 'routed_queues' is no array<string>: [", ("publish.x", TOLD | {"routed_queues": "["}, b"", None)),
    "torn": ("headers that are cut off", ("publish.x", None, b"", "headers that are cut off")),
}


@pytest.fixture(scope="module")
def parsed(spark: SparkSession) -> tuple[dict[str, Row], dict[str, Row]]:
    """The events and what is poisoned, by the names of the cases (in the column of the queue)."""
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
def test_an_event_has_what_its_headers_say(
    parsed: tuple[dict[str, Row], dict[str, Row]], name: str, expected: dict[str, Any]
) -> None:
    row = parsed[0][name].asDict()
    assert {column: row[column] for column in expected} == expected


def test_what_is_poisoned_is_kept_whole(parsed: tuple[dict[str, Row], dict[str, Row]]) -> None:
    row = parsed[1]["other"]
    assert (row.routing_key, row.headers, row.body) == ("orders", TOLD, b"x")
    assert abs(row.archived_at.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() < 600


def test_columns_are_named_once() -> None:
    for fields in (FIELDS, POISONED):
        assert len({field.name for field in fields}) == len(fields)
