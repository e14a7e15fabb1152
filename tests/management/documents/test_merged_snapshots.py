from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.management.documents.merged_snapshots import merged
from amqp_broker.management.documents.snapshots import Snapshot, SnapshotError, read_snapshot, restore, take_snapshot
from tests.peer import Lab


def queue(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "classic", "durable": True, "auto_delete": False, "arguments": {}, **more}


def message(body: str) -> dict[str, Any]:
    return {"exchange": "", "routing_key": "q", "properties": "AAA=", "body": body}


def snapshot(*bodies: str, streams: list[dict[str, Any]] | None = None, **definitions: Any) -> Snapshot:
    """Return a snapshot of a queue q with messages of these bodies (base64)."""
    streams = streams or []
    queues = [queue("q"), *(queue(stream["name"], type="stream") for stream in streams)]
    return read_snapshot(
        {
            "format": 1,
            "definitions": {"queues": queues, "exchanges": [], "bindings": [], "limits": {}, **definitions},
            "queues": [{"name": "q", "messages": [message(body) for body in bodies]}],
            "streams": streams,
            "exchanges": [],
        }
    )


def stream(*bodies: str) -> dict[str, Any]:
    chunks = [{"age_ms": 1, "messages": [message(body)]} for body in bodies]
    return {"name": "s", "first_offset": 0, "chunks": chunks}


def test_messages_of_a_queue_follow_each_other() -> None:
    [joined] = merged([snapshot("YQ==", "Yg=="), snapshot("Yw==")]).queues
    assert [one.body for one in joined.messages] == [b"a", b"b", b"c"]


def test_objects_are_those_of_all_snapshots_once() -> None:
    binding = {"source": "x", "destination": "q", "destination_type": "queue", "routing_key": "k", "arguments": {}}
    first = snapshot(bindings=[binding], policies=[{"name": "p", "pattern": "a"}], limits={"max-queues": 5})
    second = snapshot(bindings=[binding, {**binding, "routing_key": "l"}], limits={"max-connections": 7})
    definitions = merged([first, second]).definitions
    assert [one["routing_key"] for one in definitions["bindings"]] == ["k", "l"]
    assert [one["name"] for one in definitions["queues"]] == ["q"]
    assert (definitions["policies"], definitions["limits"]) == (
        [{"name": "p", "pattern": "a"}],
        {"max-queues": 5, "max-connections": 7},
    )


def test_a_merged_snapshot_can_be_restored() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q", durable=True)
    peer.publish("q", b"one")
    taken = read_snapshot(take_snapshot(lab.broker, "/"))
    there = Lab()
    restore(there.broker, merged([taken, taken]), "/")
    assert there.vhost.queues["q"].ready_count == 2


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (snapshot(), snapshot(queues=[queue("q", durable=False)]), "'q' of the queues has durable True and False"),
        (snapshot(limits={"max-queues": 1}), snapshot(limits={"max-queues": 2}), "the limit max-queues is 1 and 2"),
        (
            snapshot(streams=[stream("YQ==")]),
            snapshot(streams=[stream("Yg==")]),
            "stream 's' has messages in two snapshots",
        ),
        (snapshot(), snapshot(policies=[5]), "the policies of its definitions are no list of objects"),
        (snapshot(bindings={}), snapshot(), "the bindings of its definitions are no list of objects"),
        (snapshot(limits=[]), snapshot(), "the limits of its definitions are no object"),
    ],
    ids=["queue", "limit", "stream", "policies", "bindings", "limits"],
)
def test_snapshots_that_disagree_are_refused(first: Snapshot, second: Snapshot, reason: str) -> None:
    with pytest.raises(SnapshotError, match=reason):
        merged([first, second])


def test_a_stream_that_is_empty_in_one_snapshot_has_the_messages_of_the_other() -> None:
    filled, empty = snapshot(streams=[stream("YQ==")]), snapshot(streams=[stream()])
    for order in ([filled, empty], [empty, filled]):
        [found] = merged(order).streams
        assert [one.body for chunk in found.chunks for one in chunk.messages] == [b"a"]
