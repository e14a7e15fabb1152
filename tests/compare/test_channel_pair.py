from __future__ import annotations

from typing import Any

import pytest
from pamqp import base, commands

from amqp_broker.compare.channel_pair import QUIET_MS, UNKNOWN_TAGS
from tests.compare.three import Three, said

UPSTREAMS = "amq.gen-" + "u" * 22
LOCAL = "amq.gen-" + "o" * 22


@pytest.fixture
def three() -> Three:
    return Three().open()


def deliver(tag: int, body: bytes = b"m", consumer: str = "c", key: str = "q", **properties: Any) -> bytes:
    return said(
        commands.Basic.Deliver,
        body=body,
        delivery_tag=tag,
        consumer_tag=consumer,
        routing_key=key,
        properties=properties,
    )


def consume(three: Three, queue: str = "q", no_ack: bool = False) -> None:
    three.client(said(commands.Basic.Consume, queue=queue, consumer_tag="c", no_ack=no_ack))
    three.both(said(commands.Basic.ConsumeOk, consumer_tag="c"))
    three.played()


def declare(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue=""))
    three.local(said(commands.Queue.DeclareOk, queue=LOCAL))
    three.upstream(said(commands.Queue.DeclareOk, queue=UPSTREAMS))
    three.played()


def kinds(methods: list[Any]) -> list[type[base.Frame]]:
    return [type(method) for method in methods]


def test_a_frame_without_generated_names_is_played_unchanged(three: Three) -> None:
    octets = said(commands.Queue.Declare, queue="q", durable=True)
    three.client(octets[:9], octets[9:])
    assert three.octets() == octets


def test_equal_answers_are_not_a_difference(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    assert three.found == []
    assert three.state.report.compared_count == 3


def test_a_different_answer_is_reported_with_place_and_request(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.local(said(commands.Queue.DeclareOk, queue="r"))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert three.lines == [
        "connection 1 (shop), channel 1: queue.declare queue='q'\n"
        "  upstream:    queue.declare-ok queue='q' message_count=0 consumer_count=0\n"
        "  amqp-broker: queue.declare-ok queue='r' message_count=0 consumer_count=0"
    ]


def test_a_generated_upstream_name_is_played_as_the_local_one(three: Three) -> None:
    declare(three)
    three.client(said(commands.Queue.Bind, queue=UPSTREAMS, exchange="amq.direct", routing_key=UPSTREAMS))
    (bind,) = three.played()
    assert (bind.queue, bind.routing_key) == (LOCAL, LOCAL)
    three.client(said(commands.Basic.Publish, routing_key=UPSTREAMS, body=b"m"))
    (publish,) = three.played()
    assert publish.routing_key == LOCAL
    assert three.found == []


def test_routing_keys_in_cc_are_translated(three: Three) -> None:
    declare(three)
    three.client(said(commands.Basic.Publish, body=b"m", properties={"headers": {"CC": [UPSTREAMS]}}))
    octets = three.octets()
    assert LOCAL.encode() in octets
    assert UPSTREAMS.encode() not in octets


def test_texts_with_paired_generated_names_are_equal(three: Three) -> None:
    declare(three)
    three.client(said(commands.Queue.Delete, queue=UPSTREAMS, if_unused=True))
    three.local(said(commands.Channel.Close, reply_code=406, reply_text=f"queue '{LOCAL}' in use"))
    three.upstream(said(commands.Channel.Close, reply_code=406, reply_text=f"queue '{UPSTREAMS}' in use"))
    assert three.found == []


def test_an_ack_applies_to_the_same_local_message_despite_another_tag(three: Three) -> None:
    consume(three)
    three.local(deliver(1, b"a"), deliver(2, b"b"))
    three.upstream(deliver(1, b"b"), deliver(2, b"a"))
    three.client(said(commands.Basic.Ack, delivery_tag=1))
    (ack,) = three.played()
    assert (type(ack), ack.delivery_tag) == (commands.Basic.Ack, 2)


def test_a_multiple_ack_covers_only_messages_of_the_upstream(three: Three) -> None:
    consume(three)
    three.local(*(deliver(tag, b"%d" % tag) for tag in range(1, 6)))
    three.upstream(*(deliver(tag, b"%d" % tag) for tag in range(1, 4)))
    three.client(said(commands.Basic.Ack, delivery_tag=0, multiple=True))
    assert [ack.delivery_tag for ack in three.played()] == [1, 2, 3]


def test_an_ack_waits_for_the_local_delivery(three: Three) -> None:
    consume(three)
    three.upstream(deliver(1))
    three.client(said(commands.Basic.Nack, delivery_tag=1, requeue=True))
    assert three.played() == []
    three.local(deliver(7))
    (nack,) = three.played()
    assert (nack.delivery_tag, nack.requeue, nack.multiple) == (7, True, False)


def test_an_unknown_tag_is_unknown_at_the_local_broker_as_well(three: Three) -> None:
    consume(three)
    three.local(deliver(1))
    three.client(said(commands.Basic.Ack, delivery_tag=1))
    (ack,) = three.played()
    assert ack.delivery_tag == 1 + UNKNOWN_TAGS
    text = "PRECONDITION_FAILED - unknown delivery tag "
    three.local(said(commands.Channel.Close, reply_code=406, reply_text=f"{text}{ack.delivery_tag}"))
    three.upstream(said(commands.Channel.Close, reply_code=406, reply_text=f"{text}1"))
    assert three.found == []


def test_the_grouping_of_confirms_is_not_compared(three: Three) -> None:
    three.client(said(commands.Confirm.Select))
    three.both(said(commands.Confirm.SelectOk))
    for _ in range(3):
        three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.local(said(commands.Basic.Ack, delivery_tag=3, multiple=True))
    three.upstream(*(said(commands.Basic.Ack, delivery_tag=tag) for tag in (2, 1, 3)))
    three.wait()
    assert three.found == []


def test_a_nack_where_the_upstream_confirms_is_a_difference(three: Three) -> None:
    three.client(said(commands.Confirm.Select))
    three.both(said(commands.Confirm.SelectOk))
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.local(said(commands.Basic.Nack, delivery_tag=1))
    three.upstream(said(commands.Basic.Ack, delivery_tag=1))
    assert three.found == [("basic.ack delivery_tag=1", "basic.nack delivery_tag=1")]
    assert three.state.report.differences[0].asked.startswith("basic.publish routing_key='q'")


def test_a_missing_confirm_is_a_difference(three: Three) -> None:
    three.client(said(commands.Confirm.Select))
    three.both(said(commands.Confirm.SelectOk))
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.upstream(said(commands.Basic.Ack, delivery_tag=1))
    three.wait()
    assert three.found == [("basic.ack delivery_tag=1", "nothing")]


def test_a_return_of_another_message_is_a_difference(three: Three) -> None:
    three.client(said(commands.Basic.Publish, routing_key="q", mandatory=True, body=b"m"))
    for say, body in ((three.local, b"x"), (three.upstream, b"m")):
        say(said(commands.Basic.Return, reply_code=312, reply_text="NO_ROUTE", routing_key="q", body=body))
    assert len(three.found) == 1


def test_counts_are_compared_only_in_a_quiet_vhost(three: Three) -> None:
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    for after_ms, differences in ((0, 0), (QUIET_MS, 1)):
        three.now += after_ms
        three.client(said(commands.Queue.Declare, queue="q", passive=True))
        three.local(said(commands.Queue.DeclareOk, queue="q", message_count=2))
        three.upstream(said(commands.Queue.DeclareOk, queue="q", message_count=1))
        assert len(three.found) == differences


def test_the_local_channel_is_closed_when_only_the_upstream_closes_it(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.local(said(commands.Queue.DeclareOk, queue="q"))
    three.upstream(said(commands.Channel.Close, reply_code=406, reply_text="no", class_id=50, method_id=10))
    three.played()
    three.client(said(commands.Channel.CloseOk), said(commands.Channel.Open))
    assert kinds(three.played()) == [commands.Channel.Close, commands.Channel.Open]
    three.local(said(commands.Channel.CloseOk))
    three.both(said(commands.Channel.OpenOk))
    three.client(said(commands.Queue.Declare, queue="q"))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    assert len(three.found) == 1


def test_a_channel_that_only_the_local_broker_closed_is_not_compared_until_reopened(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.local(said(commands.Channel.Close, reply_code=406, reply_text="no", class_id=50, method_id=10))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert kinds(three.played())[-1] is commands.Channel.CloseOk
    three.client(said(commands.Queue.Bind, queue="q", exchange="amq.direct"))
    three.upstream(said(commands.Queue.BindOk))
    assert three.played() == []
    three.client(said(commands.Channel.Close, reply_code=200))
    three.upstream(said(commands.Channel.CloseOk))
    three.client(said(commands.Channel.Open))
    assert kinds(three.played()) == [commands.Channel.Open]
    three.both(said(commands.Channel.OpenOk))
    three.client(said(commands.Queue.Declare, queue="q"))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    assert len(three.found) == 1


def test_a_close_by_the_local_broker_alone_is_reported_after_a_while(three: Three) -> None:
    three.client(said(commands.Basic.Publish, exchange="x", body=b"m"))
    three.local(said(commands.Channel.Close, reply_code=404, reply_text="no", class_id=60, method_id=40))
    three.wait()
    assert [upstream for upstream, _ in three.found] == ["nothing"]
    assert three.state.report.differences[0].asked.startswith("basic.publish exchange='x'")


def test_a_settle_is_not_played_within_the_content_of_a_publish(three: Three) -> None:
    consume(three)
    three.upstream(deliver(1))
    three.client(said(commands.Basic.Ack, delivery_tag=1))
    publish = said(commands.Basic.Publish, routing_key="q", body=b"body")
    three.client(publish[:-12])
    three.local(deliver(1))
    assert commands.Basic.Ack not in kinds(three.played())
    three.client(publish[-12:])
    assert commands.Basic.Ack in kinds(three.played())


def test_a_queue_that_is_auto_deleting_is_not_a_difference(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q", auto_delete=True))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    three.client(said(commands.Basic.Cancel, consumer_tag="c"))
    three.both(said(commands.Basic.CancelOk, consumer_tag="c"))
    three.client(said(commands.Queue.Declare, queue="q", passive=True))
    three.local(said(commands.Channel.Close, reply_code=404, reply_text="no", class_id=50, method_id=10))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert three.found == []
    assert len(three.state.report.notes) == 1


def test_a_queue_that_the_local_broker_never_declared_is_a_difference(three: Three) -> None:
    three.client(said(commands.Basic.Cancel, consumer_tag="c"))
    three.both(said(commands.Basic.CancelOk, consumer_tag="c"))
    three.client(said(commands.Queue.Declare, queue="q", passive=True))
    three.local(said(commands.Channel.Close, reply_code=404, reply_text="no", class_id=50, method_id=10))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert len(three.found) == 1
