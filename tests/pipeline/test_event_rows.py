"""Messages of the firehose become events, and others poisoned rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from amqp_broker.pipeline.event_rows import ARROW, FIELDS, POISONED
from amqp_broker.pipeline.trace_records import decoded

READ = pa.schema(
    {
        "body": pa.binary(),
        "queue": pa.string(),
        "routing_key": pa.string(),
        "offset": pa.int64(),
        "headers": pa.map_(pa.string(), pa.string()),
        "error": pa.string(),
    }
)
OF_ALL = {"vhost": "/", "exchange_name": "x", "node": "rabbit@here", "routing_keys": '["k", "cc"]'}
# Cases by name: routing key, headers, body, and the error of decoding.
EVENTS: dict[str, tuple[Any, ...]] = {
    "publish": (
        "publish.x",
        OF_ALL | {"routed_queues": '["a", "b.c"]', "properties": '{"type": "t"}', "user": "me", "channel": "3"},
        b"12345",
        None,
    ),
    "dotted": ("deliver.a.b", OF_ALL | {"redelivered": "1", "properties": "{}"}, b"123", None),
    "seconds": ("publish.x", OF_ALL | {"properties": '{"timestamp": 1700000000}'}, b"1", None),
    "intercepted": (
        "publish.x",
        OF_ALL | {"properties": '{"headers": {"timestamp_in_ms": 1700000000123}, "timestamp": 5}'},
        b"1",
        None,
    ),
    "timeless": ("deliver.a", OF_ALL | {"properties": '{"timestamp": -4}'}, b"", None),
    "odd": ("deliver.a", OF_ALL | {"properties": "{"}, b"", None),
}
POISON: dict[str, tuple[str, tuple[Any, ...]]] = {
    "other": ("unknown event 'orders'", ("orders", OF_ALL, b"x", None)),
    "keyless": ("the routing key is missing", (None, OF_ALL, b"", None)),
    "bare": ("header 'vhost' is missing", ("publish.x", None, b"", None)),
    "empty": ("header 'vhost' is missing", ("publish.x", {}, b"", None)),
    "no_exchange": ("header 'exchange_name' is missing", ("publish.x", {"vhost": "/"}, b"", None)),
    "wide": (
        "header 'channel' is not a valid int: 99999999999",
        ("deliver.q", OF_ALL | {"channel": "9" * 11}, b"", None),
    ),
    "truth": (
        "header 'redelivered' is not a valid boolean: perhaps",
        ("deliver.q", OF_ALL | {"redelivered": "perhaps"}, b"", None),
    ),
    "list": (
        "header 'routed_queues' is not a valid array<string>: [",
        ("publish.x", OF_ALL | {"routed_queues": "["}, b"", None),
    ),
    "torn": ("headers that are cut off", ("publish.x", None, b"", "headers that are cut off")),
    "record": ("a record of an unknown version", ("records", None, b"x" * 12, None)),
}


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """Return decoded rows by the names of the cases (in the column of the queue)."""
    cases = {**EVENTS, **{name: row for name, (_, row) in POISON.items()}}
    messages = [
        dict(zip(READ.names, (body, name, key, number, headers, error), strict=True))
        for number, (name, (key, headers, body, error)) in enumerate(cases.items())
    ]
    batches = decoded(iter([pa.RecordBatch.from_pylist(messages, READ)]), ARROW)
    return {row["trace_queue"]: row for batch in batches for row in batch.to_pylist()}


def test_every_row_is_an_event_or_poisoned(rows: dict[str, dict[str, Any]]) -> None:
    poisoned = {name: row["poison"] for name, row in rows.items() if row["poison"] is not None}
    assert set(rows) - set(poisoned) == set(EVENTS)
    assert poisoned == {name: why for name, (why, _) in POISON.items()}


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
                "message_number": None,
                "routed_queues": ["a", "b.c"],
                "properties": '{"type": "t"}',
                "body": b"12345",
                "body_bytes": 5,
                "time_source": "archive",
                "channel": 3,
                "user": "me",
                "node": "rabbit@here",
            },
        ),
        ("dotted", {"queue": "a.b", "redelivered": True, "body": None, "body_bytes": 3, "properties": None}),
        ("seconds", {"time_source": "message", "time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)}),
        ("intercepted", {"time_source": "message", "time": datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)}),
        ("timeless", {"time_source": "archive", "time": None}),
        ("odd", {"time_source": "archive"}),
    ],
)
def test_an_event_has_the_values_of_its_headers(
    rows: dict[str, dict[str, Any]], name: str, expected: dict[str, Any]
) -> None:
    assert {column: rows[name][column] for column in expected} == expected


def test_a_poisoned_message_is_kept_whole(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["other"]["raw"] == {"routing_key": "orders", "headers": list(OF_ALL.items()), "body": b"x"}


def test_column_names_are_unique() -> None:
    for fields in (FIELDS, POISONED):
        assert len({field.name for field in fields}) == len(fields)
