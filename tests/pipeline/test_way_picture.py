"""A picture has a lane for each client and queue, and an arrow or a dot for each event."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from typing import Any

from amqp_broker.pipeline.event_rows import FIELDS
from amqp_broker.pipeline.way_picture import picture
from tests.page.hostile import ATTACKS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def event(kind: str, number: int, at_ms: int, **more: Any) -> dict[str, Any]:
    of_all = dict.fromkeys(field.name for field in FIELDS)
    time = NOON + timedelta(milliseconds=at_ms)
    return {**of_all, "event": kind, "message_number": number, "numbered_since_us": 1, "time": time, **more}


def drawn(*events: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the lanes, and the texts of the events with their marks."""
    root = ET.fromstring(picture(list(events)))
    heads = [text[0].text or "" for text in root.iter("text") if text.get("class") == "head"]
    marks = [one.get("class") for one in root.iter() if one.tag in ("line", "circle") and one.get("class") != "lane"]
    texts = [text.text for text in root.iter("text") if text.get("class") not in ("head", "at")]
    return heads, [f"{mark}: {text}" for mark, text in zip(marks, texts, strict=True)]


def test_each_event_is_between_its_lanes() -> None:
    client = {"connection_name": "shop", "connection": "127.0.0.1:1"}
    worker = {"connection": "127.0.0.1:2", "queue": "q"}
    lanes, marks = drawn(
        event("publish", 1, 0, **client, exchange="x", routing_key="k", routed_queues=["q", "r"]),
        event("confirm", 1, 1, **client, is_ack=True),
        event("deliver", 1, 2, **worker),
        event("nack", 1, 3, **worker, requeue=True),
        event("deliver", 1, 4, **worker, redelivered=True),
        event("nack", 1, 5, **worker, requeue=False),
        event("dead_letter", 2, 6, queue="q", reason="rejected", routed_queues=["dead"]),
        event("expire", 2, 7, queue="dead"),
        event("ack", 1, 8, connection="127.0.0.1:3", queue="r"),
        event("publish", 3, 9, **client, exchange="", routing_key="gone", routed_queues=[]),
        event("return", 3, 9, **client, reply_text="NO_ROUTE"),
        event("drop", 2, 9, queue="dead", reason="maxlen"),
        event("confirm", 3, 9, **client, is_ack=False),
    )
    assert lanes == ["shop", "queue q", "queue r", "127.0.0.1:2", "queue dead", "127.0.0.1:3"]
    assert marks == [
        *("way: publish x k", "way: publish x k", "good: confirmed", "way: delivery", "bad: requeue"),
        *("way: redelivery", "bad: reject", "way: dead letter: rejected", "bad: expired", "good: ack"),
        *("bad: publish (default) gone: to no queue", "bad: returned: NO_ROUTE", "bad: dropped: maxlen", "bad: nacked"),
    ]


def test_an_event_has_its_time_and_the_number_of_its_message() -> None:
    root = ET.fromstring(picture([event("ack", 9, 0, queue="q"), event("ack", 4, 1500, queue="q")]))
    assert [text.text for text in root.iter("text") if text.get("class") == "at"] == ["0 ms, #1", "1,500 ms, #2"]


def test_names_are_text() -> None:
    queue = "".join(one for one in ATTACKS if one.isprintable())
    lanes, _ = drawn(event("ack", 1, 0, queue=queue, connection="c"))
    assert lanes[1] == f"queue {queue}"
