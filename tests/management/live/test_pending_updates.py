from __future__ import annotations

import json
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.management.live.pending_updates import BODY_BYTES_MAX, EVENTS_MAX, OCTETS_MAX, PendingUpdates
from amqp_broker.management.live.updates import frame


class Ear:
    """Pending updates that count how often a page is woken."""

    def __init__(self) -> None:
        self.woken = 0
        self.pending = PendingUpdates(self.wake)

    def wake(self) -> None:
        self.woken += 1

    def hear(self, body: bytes = b"", event: str = "publish", **properties: Any) -> None:
        message = Message.build(Address("x", "key"), Properties(**properties), body)
        headers = {"properties": message.properties().as_dict(), "message_number": fields.Long(1)}
        self.pending.on_message(event, "x", headers, message, body)

    def messages(self) -> tuple[list[dict[str, Any]], int]:
        """Return the events as a browser gets them, and how many were skipped."""
        messages = dict(self.pending.take())["messages"]
        value = json.loads(frame("messages", messages).split(b"data: ")[1])
        return value["events"], value["skipped"]


def test_a_burst_of_changes_is_one_update() -> None:
    ear = Ear()
    for name in ("queue.created", "binding.created", "queue.deleted"):
        ear.pending.on_event(name, {})
    assert ear.woken == 1
    assert ear.pending.take() == [("topology", {"changed": ["queue", "binding"]})]
    assert ear.pending.take() == []
    ear.pending.on_event("user.created", {})
    assert ear.woken == 2


def test_a_slow_reader_loses_the_oldest_events_and_gets_their_number() -> None:
    ear = Ear()
    for number in range(EVENTS_MAX + 12):
        ear.hear(str(number).encode())
    events, skipped = ear.messages()
    assert (len(events), events[0]["payload"], skipped) == (EVENTS_MAX, "12", 12)
    ear.hear()
    assert ear.messages()[1] == 0


def test_the_ring_of_a_slow_reader_is_bounded_in_octets() -> None:
    ear = Ear()
    for _ in range(EVENTS_MAX):
        ear.hear(headers={"x": "y" * 7000})
    events, skipped = ear.messages()
    assert OCTETS_MAX * 0.9 < len(events) * 7000 <= OCTETS_MAX
    assert len(events) + skipped == EVENTS_MAX


def test_huge_properties_are_not_kept() -> None:
    ear = Ear()
    ear.hear(b"body", headers={"x": "y" * 9000})
    assert ear.messages()[0][0]["properties"] is None


@pytest.mark.parametrize(
    ("body", "payload", "encoding"),
    [
        (b"text", "text", "string"),
        (b"\xff\x00", "/wA=", "base64"),
        (b"", "", "string"),
        (b"a" * 1999 + "é".encode(), "a" * 1999, "string"),
        (b"a" * 1999 + b"\xff", "a" * 1999 + "", "base64"),
    ],
)
def test_a_payload_is_text_or_base64(body: bytes, payload: str, encoding: str) -> None:
    ear = Ear()
    ear.hear(body)
    (event,), _ = ear.messages()
    assert (event["payload_encoding"], event["payload_bytes"]) == (encoding, len(body))
    if encoding == "string" or len(body) < BODY_BYTES_MAX:
        assert event["payload"] == payload


def test_all_types_of_table_values_become_json() -> None:
    ear = Ear()
    table = {
        "nested": {"list": [fields.Short(1), None, True]},
        "octets": b"\xff",
        "decimal": fields.Decimal(2, 314),
        "infinite": float("inf"),
        "half": "\udcff",
        "time": fields.Timestamp(5),
    }
    ear.hear(headers=table)
    (event,), _ = ear.messages()
    headers = event["properties"]["headers"]
    assert headers["nested"] == {"list": [1, None, True]}
    assert (headers["octets"], headers["infinite"], headers["half"], headers["time"]) == ("�", None, "�", 5)
