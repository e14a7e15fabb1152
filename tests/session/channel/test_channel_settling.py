"""ack, nack and reject: what is settled, what goes back where, and which tags there are."""

from __future__ import annotations

import pytest
from pamqp import base, frame
from pamqp.commands import Basic, Channel, Queue

from tests.peer import Lab, Peer, blamed, shown

TAG_MAX = 2**63 - 1  # pamqp's


@pytest.fixture
def holder(lab: Lab) -> Peer:
    """A client that holds 1 to 4 of 5 messages of queue q."""
    peer = lab.connect()
    peer.declare("q")
    for body in (b"1", b"2", b"3", b"4", b"5"):
        peer.publish("q", body)
    for _ in range(4):
        assert peer.get("q", no_ack=False) is not None
    return peer


def counts(lab: Lab) -> tuple[int, int]:
    """Ready and unacked of q."""
    queue = lab.vhost.queues["q"]
    return queue.ready_count, queue.unacked_count


def left(peer: Peer) -> str:
    """Return the bodies in q, those redelivered in brackets."""
    text = ""
    while (got := peer.get("q")) is not None:
        answer, content = got
        text += f"({content.body.decode()})" if answer.redelivered else content.body.decode()
    return text


@pytest.mark.parametrize(
    ("methods", "unacked"),
    [
        ([Basic.Ack(1), Basic.Ack(3)], 2),
        ([Basic.Ack(3, multiple=True)], 1),
        ([Basic.Ack(0, multiple=True)], 0),
        ([Basic.Ack(2), Basic.Ack(3, multiple=True)], 1),
        ([Basic.Reject(1, requeue=False)], 3),
        ([Basic.Reject(1, requeue=False), Basic.Nack(3, multiple=True, requeue=False)], 1),
        ([Basic.Nack(0, multiple=True, requeue=False)], 0),
        ([Basic.Ack(4), Basic.Ack(1), Basic.Ack(3), Basic.Ack(2)], 0),
    ],
    ids=shown,
)
def test_a_settled_message_leaves_the_queue(lab: Lab, holder: Peer, methods: list[base.Frame], unacked: int) -> None:
    holder.send(*methods)
    holder.expect_nothing()
    assert counts(lab) == (1, unacked)
    holder.call(Channel.Close(200, "bye", 0, 0))
    assert counts(lab) == (1 + unacked, 0)


@pytest.mark.parametrize(
    ("methods", "queue"),
    [
        ([Basic.Nack(2, requeue=True), Basic.Reject(4, requeue=True)], "(2)(4)5"),
        ([Basic.Reject(tag, requeue=True) for tag in (3, 1, 4, 2)], "(1)(2)(3)(4)5"),
        ([Basic.Nack(3, multiple=True, requeue=True)], "(1)(2)(3)5"),
        ([Basic.Nack(0, multiple=True, requeue=True)], "(1)(2)(3)(4)5"),
        ([Basic.Recover(requeue=True)], "(1)(2)(3)(4)5"),
        ([Basic.Ack(2), Basic.Recover(requeue=True)], "(1)(3)(4)5"),
    ],
    ids=shown,
)
def test_a_requeued_message_takes_its_original_position(
    lab: Lab, holder: Peer, methods: list[base.Frame], queue: str
) -> None:
    holder.send(*methods)
    if isinstance(methods[-1], Basic.Recover):
        holder.expect(Basic.RecoverOk)
    assert left(holder) == queue


def test_the_old_recover_is_not_answered(holder: Peer) -> None:
    with pytest.deprecated_call():
        recover = Basic.RecoverAsync(requeue=True)
    holder.send(recover)
    assert left(holder) == "(1)(2)(3)(4)5"


def test_a_message_requeued_twice_keeps_its_position(holder: Peer) -> None:
    holder.send(Basic.Nack(0, multiple=True, requeue=True))
    holder.send(
        Basic.Get(queue="q"), Basic.Get(queue="q"), Basic.Reject(6, requeue=True), Basic.Reject(5, requeue=True)
    )
    for _ in range(2):
        holder.expect(Basic.GetOk)
        holder.expect_content()
    assert left(holder) == "(1)(2)(3)(4)5"


def test_a_requeued_message_precedes_newer_messages(holder: Peer) -> None:
    holder.publish("q", b"6")
    holder.send(Basic.Nack(0, multiple=True, requeue=True))
    assert left(holder) == "(1)(2)(3)(4)56"


@pytest.mark.parametrize(
    ("tag", "kind", "options"),
    [
        *((tag, Basic.Ack, {"multiple": False}) for tag in (0, 5, 42, TAG_MAX)),
        *((tag, Basic.Nack, {"multiple": False, "requeue": True}) for tag in (0, 5)),
        *((tag, Basic.Reject, {"requeue": False}) for tag in (0, 5)),
    ],
)
def test_an_unknown_tag_closes_the_channel(
    lab: Lab, holder: Peer, tag: int, kind: type[Basic.Ack | Basic.Nack | Basic.Reject], options: dict[str, bool]
) -> None:
    holder.send(kind(delivery_tag=tag, **options))
    close = holder.expect(Channel.Close)
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")
    assert blamed(close) == kind.index
    assert counts(lab) == (5, 0)


def test_the_largest_tag_is_unknown(peer: Peer) -> None:
    peer.send_bytes(b"\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50" + b"\xff" * 8 + b"\x00\xce")
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 18446744073709551615"


@pytest.mark.parametrize("kind", [Basic.Ack, Basic.Nack])
@pytest.mark.parametrize("tag", [5, TAG_MAX])
def test_an_unknown_tag_with_multiple_closes_the_channel(
    lab: Lab, holder: Peer, kind: type[Basic.Ack | Basic.Nack], tag: int
) -> None:
    holder.send(kind(delivery_tag=tag, multiple=True))
    assert holder.expect_channel_close(406) == f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    assert counts(lab) == (5, 0)


@pytest.mark.parametrize(
    "again", [Basic.Ack(2), Basic.Ack(2, multiple=True), Basic.Reject(2), Basic.Nack(2)], ids=shown
)
@pytest.mark.parametrize("first", [Basic.Ack(2), Basic.Reject(2, requeue=True)], ids=shown)
def test_a_tag_can_be_settled_once(holder: Peer, first: base.Frame, again: base.Frame) -> None:
    holder.send(first)
    holder.expect_nothing()
    holder.send(again)
    assert holder.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 2"


def test_settling_all_deliveries_without_any_succeeds(peer: Peer) -> None:
    peer.send(Basic.Ack(0, multiple=True), Basic.Nack(0, multiple=True))
    peer.expect_nothing()


def test_a_tag_belongs_to_its_channel(lab: Lab, holder: Peer) -> None:
    holder.open_channel(2)
    holder.send(Basic.Ack(1), channel=2)
    holder.expect_channel_close(406, channel=2)
    assert counts(lab) == (1, 4)
    holder.send(Basic.Ack(1))
    assert counts(lab) == (1, 3)


def test_a_delivery_without_acks_cannot_be_acked(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"1")
    assert peer.get("q", no_ack=True) is not None
    peer.send(Basic.Ack(1))
    peer.expect_channel_close(406)


def test_a_requeued_message_is_delivered_under_a_new_tag(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    peer.publish("q", b"1")
    for tag in (1, 2, 3):
        deliver, content = peer.expect_delivery()
        assert (deliver.delivery_tag, deliver.redelivered, content.body) == (tag, tag > 1, b"1")
        peer.send(Basic.Reject(tag, requeue=True) if tag % 2 else Basic.Nack(tag, requeue=True))


def test_one_ack_settles_deliveries_of_several_queues_and_consumers(lab: Lab, peer: Peer) -> None:
    peer.call(Basic.Qos(prefetch_count=2))
    for queue in ("p", "q"):
        peer.declare(queue)
        for _ in range(4):
            peer.publish(queue)
    for queue in ("p", "q"):
        peer.send(Basic.Consume(queue=queue, consumer_tag=queue, nowait=True))
    assert len(peer.deliveries()) == 4
    peer.send(Basic.Ack(3, multiple=True))
    assert [deliver.consumer_tag for deliver, _ in peer.deliveries()] == ["p", "p", "q"]
    assert [lab.vhost.queues[name].unacked_count for name in ("p", "q")] == [2, 2]


def test_deliveries_of_a_deleted_queue_can_be_settled(lab: Lab, holder: Peer, other: Peer) -> None:
    other.call(Queue.Delete(queue="q"))
    holder.declare("q")
    holder.send(Basic.Ack(1), Basic.Nack(2, requeue=True), Basic.Reject(3, requeue=False))
    holder.expect_nothing()
    holder.call(Channel.Close(200, "bye", 0, 0))
    assert counts(lab) == (0, 0)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("has_second", [False, True])
def test_the_next_active_consumer_gets_what_the_last_one_held_first(lab: Lab, kind: str, has_second: bool) -> None:
    # Source: rabbit_amqqueue_process.erl, handle_ch_down; rabbit_fifo.erl, cancel_consumer.
    one, other = lab.connect(), lab.connect()
    one.declare("q", durable=True, arguments={"x-queue-type": kind, "x-single-active-consumer": True})
    one.call(Basic.Qos(prefetch_count=2))
    for body in (b"1", b"2", b"3", b"4"):
        one.publish("q", body)
    one.consume("q")
    assert one.bodies() == [b"1", b"2"]
    if has_second:
        one.open_channel(2)
        one.consume("q", channel=2)
    other.consume("q")
    one.disconnect()
    lab.drain()
    found = [(content.body, method.redelivered) for method, content in other.deliveries()]
    assert found == [(b"1", True), (b"2", True), (b"3", False), (b"4", False)]


# Many acks in one read


def acks(*tags: int, channel: int = 1) -> bytes:
    return b"".join(frame.marshal(Basic.Ack(tag), channel) for tag in tags)


def test_acks_are_read_however_reads_divide_them(lab: Lab) -> None:
    data = acks(1, 2, 3, 4)
    for cut in range(len(data)):
        peer = lab.connect()
        peer.declare("q")
        for _ in range(4):
            peer.publish("q")
            assert peer.get("q", no_ack=False) is not None
        peer.send_bytes(data[:cut])
        assert counts(lab) == (0, 4 - cut // 21)
        peer.send_bytes(data[cut:])
        assert counts(lab) == (0, 0)
        peer.expect_nothing()


def test_an_unknown_tag_among_acks_closes_the_channel_and_those_before_it_count(lab: Lab, holder: Peer) -> None:
    holder.send_bytes(acks(1, 2, 9, 3))
    assert holder.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 9"
    assert counts(lab) == (3, 0)


def test_a_broken_frame_among_acks_closes_the_connection_and_those_before_it_count(lab: Lab, holder: Peer) -> None:
    broken = bytearray(acks(1, 2, 3, 4))
    broken[3 * 21 - 1] = 0
    holder.send_bytes(bytes(broken))
    assert "FRAME_ERROR" in holder.expect_connection_close(501)
    assert counts(lab) == (3, 0)


def test_acks_of_two_channels_take_turns(lab: Lab, holder: Peer) -> None:
    holder.open_channel(2)
    holder.send(Basic.Get(queue="q"), channel=2)
    holder.expect(Basic.GetOk, channel=2)
    for _ in ("header", "body"):
        holder.next()
    holder.send_bytes(acks(1) + acks(1, channel=2) + acks(2, 3))
    holder.expect_nothing()
    assert counts(lab) == (0, 1)


def test_only_the_first_bit_of_an_ack_has_a_meaning(lab: Lab, holder: Peer) -> None:
    one, two = bytearray(acks(2)), bytearray(acks(4))
    one[-2] = two[-2] = 0b11
    holder.send_bytes(bytes(one))
    assert counts(lab) == (1, 2)
    holder.send_bytes(acks(3) + bytes(two))
    assert counts(lab) == (1, 0)
