"""basic.publish: bodies in any frames arrive complete in their queues, or are returned."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import pytest
from pamqp import commands, frame
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.broker.routing.route_cache import ROUTES_MAX
from amqp_broker.session.methods import basic_publish
from tests.peer import Lab, Peer, publish_bytes

PROPERTIES: dict[str, Any] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"n": 1, "deep": {"list": [1, "x", None]}},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "message_type": "t",
    "user_id": "guest",
    "app_id": "a",
}


def cut(data: bytes, step: int) -> list[bytes]:
    return [data[start : start + step] for start in range(0, len(data), step)]


def present(properties: Basic.Properties) -> dict[str, Any]:
    """The properties that a message has; pamqp invents an empty cluster_id."""
    return {name: value for name, value in properties if value not in (None, "")}


def body_of(peer: Peer, queue: str = "q") -> bytes:
    got = peer.get(queue)
    assert got is not None
    return got[1].body


# Bodies and frames


@pytest.mark.parametrize(
    ("size", "frame_size"),
    [
        *((0, 1000), (1, 1000), (999, 1000), (1000, 1000), (1001, 1000), (2000, 1000), (2001, 1000)),
        *((131_063, 131_064), (131_064, 131_064), (131_065, 131_064), (300_000, 131_064), (300_000, 1000)),
    ],
)
def test_a_body_of_any_size_in_frames_of_any_size_comes_back_whole(peer: Peer, size: int, frame_size: int) -> None:
    peer.declare("q")
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    peer.publish("q", body, frame_size=frame_size)
    assert body_of(peer) == body


@pytest.mark.parametrize("read_size", [1, 5, 8, 30])
@pytest.mark.parametrize(("size", "frame_size"), [(0, 100), (100, 3), (100, 100)])
def test_a_message_may_come_in_reads_of_any_size(peer: Peer, size: int, frame_size: int, read_size: int) -> None:
    peer.declare("q")
    data = publish_bytes("q", bytes(range(size)), frame_size=frame_size) * 3
    for piece in cut(data, read_size):
        peer.send_bytes(piece)
    assert [body_of(peer) for _ in range(3)] == [bytes(range(size))] * 3


def test_empty_body_frames_are_ignored(peer: Peer) -> None:
    peer.declare("q")
    data = publish_bytes("q", b"12", frame_size=1)
    empty = b"\x03\x00\x01\x00\x00\x00\x00\xce"
    first = len(data) - 18
    peer.send_bytes(data[:first] + empty + data[first : first + 9] + empty + data[first + 9 :])
    assert body_of(peer) == b"12"


def test_an_empty_body_has_no_body_frame(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    peer.publish("q", b"")
    output = b"".join(peer.session.outbox.take())
    assert output.count(b"\x02\x00\x01") == 1
    assert b"\x03\x00\x01" not in output


def test_contents_of_channels_may_be_interleaved(peer: Peer) -> None:
    channels = (1, 2, 3)
    for number in channels[1:]:
        peer.open_channel(number)
    peer.declare("q")
    frames = []
    for number in channels:
        data = publish_bytes("q", b"%d" % number * 10, channel=number, frame_size=1)
        method, header = len(frame.marshal(Basic.Publish(routing_key="q"), number)), 22
        frames.append([data[:method], data[method : method + header], *cut(data[method + header :], 9)])
    for turn in zip_longest(*frames, fillvalue=b""):
        peer.send_bytes(b"".join(turn))
    assert [body_of(peer) for _ in channels] == [b"1" * 10, b"2" * 10, b"3" * 10]


def test_a_method_on_another_channel_may_come_between_the_frames_of_a_message(peer: Peer) -> None:
    peer.open_channel(2)
    peer.declare("q")
    # The client may wait for this answer before it goes on with its message.
    data = publish_bytes("q", bytes(1000))
    for at in (len(frame.marshal(Basic.Publish(routing_key="q"), 1)), len(data) - 1008):
        peer.send_bytes(data[:at])
        peer.call(Queue.Declare(queue="p"), channel=2)
        peer.send_bytes(data[at:])
        assert body_of(peer) == bytes(1000)


@pytest.mark.parametrize("number", [1, 2, 500, 65535])
def test_a_message_arrives_on_the_consumers_channel_whatever_the_publishers(lab: Lab, other: Peer, number: int) -> None:
    peer = lab.peer()
    peer.open()
    peer.open_channel(number)
    other.declare("q")
    peer.consume("q", channel=number)
    other.publish("q", b"whole")
    other.publish("q", b"in frames", frame_size=4)
    other.publish("q", b"")
    assert peer.bodies(channel=number) == [b"whole", b"in frames", b""]


@pytest.mark.parametrize("size", [0, 100, 8184, 8185, 100_000])
def test_a_consumer_with_smaller_frames_gets_the_body_in_them(lab: Lab, other: Peer, size: int) -> None:
    peer = lab.connect(frame_max=8192)
    other.declare("q")
    peer.consume("q")
    other.publish("q", bytes(size))
    sizes = []
    output = b"".join(peer.session.outbox.take())
    while output:
        length = int.from_bytes(output[3:7], "big") + 8
        sizes.append(length)
        peer._received += output[:length]
        output = output[length:]
    assert max(sizes) <= 8192
    assert len(sizes) == 2 + -(-size // 8184)
    assert peer.bodies() == [bytes(size)]


def test_a_consumer_with_larger_frames_than_the_publisher_gets_the_same_body(lab: Lab, other: Peer) -> None:
    peer = lab.connect(frame_max=8192)
    other.declare("q")
    other.consume("q")
    body = bytes(range(256)) * 200
    peer.publish("q", body, frame_size=8184)
    peer.publish("q", body[:8184], frame_size=8184)
    assert other.bodies() == [body, body[:8184]]


def test_properties_come_back_as_they_were(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"x", **PROPERTIES)
    got = peer.get("q")
    assert got is not None
    assert present(got[1].properties) == PROPERTIES


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_property_comes_back_alone(peer: Peer, name: str) -> None:
    peer.declare("q")
    peer.publish("q", b"x", **{name: PROPERTIES[name]})
    got = peer.get("q")
    assert got is not None
    assert present(got[1].properties) == {name: PROPERTIES[name]}


# Routes


def test_a_delivery_names_the_exchange_and_key_it_was_published_with(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#"))
    peer.consume("q")
    peer.publish("a.b", exchange="amq.topic")
    deliver, _ = peer.expect_delivery()
    assert (deliver.exchange, deliver.routing_key) == ("amq.topic", "a.b")


def test_a_routing_key_may_be_any_octets(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.fanout"))
    data = publish_bytes("??", b"1", exchange="amq.fanout").replace(b"??", b"\xff\xfe")
    peer.send_bytes(data)
    peer.send(Basic.Get(queue="q", no_ack=True))
    assert b"\x02\xff\xfe" in b"".join(peer.session.outbox.take())


def change_topology(peer: Peer, name: str) -> None:
    match name:
        case "bind":
            peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
        case "unbind":
            peer.call(Queue.Unbind(queue="q", exchange="x", routing_key="k"))
        case "declare queue":
            peer.declare("k")
        case "delete queue":
            peer.call(Queue.Delete(queue="q"))
        case "delete exchange":
            peer.call(Exchange.Delete(exchange="x"))


def test_a_change_of_topology_applies_to_the_next_message_of_every_connection(
    lab: Lab, peer: Peer, other: Peer
) -> None:
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x"))
    routed = []
    for change in ("", "bind", "unbind", "bind", "declare queue", "delete queue"):
        change_topology(peer, change)
        other.publish("k", b"x", exchange="x", mandatory=True)
        other.publish("k", b"x", mandatory=True)
        routed.append("".join("-" if returned else "+" for returned in returns(other, 2)))
    assert routed == ["--", "+-", "--", "+-", "++", "-+"]
    change_topology(peer, "delete exchange")
    other.publish("k", b"x", exchange="x")
    assert other.expect_channel_close(404) == "NOT_FOUND - no exchange 'x' in vhost '/'"


def returns(peer: Peer, count: int) -> list[bool]:
    """Which of the last `count` publishes (to x, then to the default exchange) came back."""
    came_back = [False] * count
    while peer.session.outbox.pieces or peer._received:
        came_back[peer.expect(Basic.Return).exchange == ""] = True
        peer.expect_content()
    return came_back


def test_a_queue_gets_one_copy_however_many_bindings_match(peer: Peer) -> None:
    peer.declare("q")
    for key in ("#", "a.*", "*.b", "a.b"):
        peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key=key))
    peer.publish("a.b", exchange="amq.topic")
    assert peer.declare("q").message_count == 1


def test_the_routes_that_are_not_counted_yet_stay_bounded(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic_publish, "PENDING_MAX", 4)
    counts = peer.lab.vhost.counts
    for number in range(20):
        peer.publish(f"key {number}")
        assert len(counts.pending_routes) <= 4
    counts.collect()
    assert counts.publishes.publish >= 16


def test_the_cache_of_routes_stays_bounded(peer: Peer) -> None:
    peer.publish("key")
    (route,) = peer.session.routes.values()
    peer.session.routes.update((number.to_bytes(3, "big"), route) for number in range(ROUTES_MAX - 1))
    peer.publish("another key")
    assert len(peer.session.routes) <= ROUTES_MAX


def test_the_headers_of_each_message_are_sorted(peer: Peer) -> None:
    peer.declare("q")
    for number in range(3):
        # Alone, in a run of equal messages, and in frames that arrive apart.
        for text in ("x", "x", "y"):
            peer.publish("q", headers={"b": text * (number + 1), "a": number})
    peer.publish("q", bytes(300_000), headers={"b": "", "a": 3})
    for number, text in [(0, "x"), (0, "x"), (0, "y"), (1, "xx"), (1, "xx"), (1, "yy")]:
        peer.send(Basic.Get(queue="q", no_ack=True))
        peer.expect(Basic.GetOk)
        assert list((peer.expect_content().properties.headers or {}).items()) == [("a", number), ("b", text)]


# Mandatory


@pytest.mark.parametrize(
    ("exchange", "key", "body", "properties"),
    [("", "missing", b"x", PROPERTIES), ("amq.topic", "a.b", b"", {}), ("amq.fanout", "k", bytes(200_000), {})],
)
def test_an_unroutable_mandatory_message_is_returned_unchanged(
    peer: Peer, exchange: str, key: str, body: bytes, properties: dict[str, Any]
) -> None:
    for _ in range(2):
        peer.publish(key, body, exchange=exchange, mandatory=True, **properties)
        returned = peer.expect(Basic.Return)
        assert (returned.reply_code, returned.reply_text) == (312, "NO_ROUTE")
        assert (returned.exchange, returned.routing_key) == (exchange, key)
        content = peer.expect_content()
        assert content.body == body
        assert present(content.properties) == properties


def test_a_return_is_cut_for_a_client_with_small_frames(lab: Lab) -> None:
    peer = lab.connect(frame_max=8192)
    peer.publish("missing", bytes(8192), frame_size=8192, mandatory=True)
    peer.expect(Basic.Return)
    assert max(map(len, cut_frames(peer))) <= 8192


def cut_frames(peer: Peer) -> list[bytes]:
    output, frames = peer._received + b"".join(peer.session.outbox.take()), []
    while output:
        length = int.from_bytes(output[3:7], "big") + 8
        frames.append(output[:length])
        output = output[length:]
    return frames


def test_a_routed_message_is_not_returned(peer: Peer) -> None:
    peer.declare("q")
    for _ in range(2):
        peer.publish("q", mandatory=True)
    peer.expect_nothing()


def test_an_unroutable_message_is_dropped(peer: Peer) -> None:
    for _ in range(2):
        peer.publish("missing")
    peer.expect_nothing()


def test_a_full_queue_that_refuses_a_mandatory_message_returns_nothing(peer: Peer) -> None:
    peer.declare("q", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.publish("q", mandatory=True)
    peer.expect_nothing()


def test_one_body_is_kept_however_many_queues_get_it(lab: Lab, peer: Peer) -> None:
    for number in range(3):
        peer.declare(f"q{number}")
        peer.call(Queue.Bind(queue=f"q{number}", exchange="amq.fanout"))
    peer.publish(exchange="amq.fanout", message=bytes(1000))
    assert len({id(next(queue.messages())) for queue in lab.vhost.queues.values()}) == 1


def test_publishing_is_possible_while_consuming_on_the_same_channel(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    peer.send_bytes(publish_bytes("q", b"1") + frame.marshal(commands.Channel.Flow(True), 1) + publish_bytes("q", b"2"))
    assert peer.expect_delivery()[1].body == b"1"
    peer.expect(commands.Channel.FlowOk)
    assert peer.expect_delivery()[1].body == b"2"
