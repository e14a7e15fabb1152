from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.management.documents.logged_events import encoded, event_row
from tests.peer import Lab


def test_the_row_of_an_event_has_its_message_and_a_part_of_the_body() -> None:
    lab = Lab()
    log = lab.broker.event_logs.start(lab.vhost)
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"a body", message_id="m-1")
    row = event_row(log.events[0], truncate=1)
    names = ("event", "message_number", "exchange", "routing_key", "queue", "routed_queues", "payload", "payload_bytes")
    assert [row[name] for name in names] == ["publish", 1, "", "q", None, ["q"], "a", 6]
    assert row["properties"] == {"message_id": "m-1"}


@pytest.mark.parametrize(
    ("body", "size", "expected"),
    [
        ("é".encode() * 10, 5, ("éé", "string")),
        ("é".encode() * 10, 4, ("éé", "string")),
        (b"\xff" * 10, 5, ("//////8=", "base64")),
        (b"ab\xc3", 3, ("YWLD", "base64")),
    ],
)
def test_a_letter_is_not_cut_in_two(body: bytes, size: int, expected: tuple[str, str]) -> None:
    lab = Lab()
    log = lab.broker.event_logs.start(lab.vhost)
    lab.connect().publish("q", body)
    row = event_row(log.events[0], truncate=size)
    assert (row["payload"], row["payload_encoding"]) == expected


@pytest.mark.parametrize(
    ("octets", "encoding", "expected"),
    [
        (b"abc", "auto", ("abc", "string")),
        (b"\xff", "auto", ("/w==", "base64")),
        (b"abc", "base64", ("YWJj", "base64")),
    ],
)
def test_octets_are_text_if_they_can_be(octets: bytes, encoding: str, expected: tuple[str, str]) -> None:
    assert encoded(octets, encoding) == expected
