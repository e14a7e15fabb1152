from __future__ import annotations

from typing import Any

import pytest
from pamqp import base, commands

from amqp_broker.compare.channel import QUIET_MS, UNKNOWN_TAGS
from tests.compare.three import Three, said

UPSTREAMS = "amq.gen-" + "u" * 22
OURS = "amq.gen-" + "o" * 22


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
    three.ours(said(commands.Queue.DeclareOk, queue=OURS))
    three.upstream(said(commands.Queue.DeclareOk, queue=UPSTREAMS))
    three.played()


def kinds(methods: list[Any]) -> list[type[base.Frame]]:
    return [type(method) for method in methods]


def test_what_needs_no_translation_is_played_as_it_came(three: Three) -> None:
    octets = said(commands.Queue.Declare, queue="q", durable=True)
    three.client(octets[:9], octets[9:])
    assert three.octets() == octets


def test_equal_answers_are_no_difference(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    assert three.found == []
    assert three.book.report.compared_count == 3


def test_another_answer_is_told_with_place_and_question(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.ours(said(commands.Queue.DeclareOk, queue="r"))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert three.lines == [
        "connection 1 (shop), channel 1: queue.declare queue='q'\n"
        "  upstream: queue.declare-ok queue='q' message_count=0 consumer_count=0\n"
        "  ours:     queue.declare-ok queue='r' message_count=0 consumer_count=0"
    ]


def test_a_name_that_the_upstream_made_up_is_played_as_ours(three: Three) -> None:
    declare(three)
    three.client(said(commands.Queue.Bind, queue=UPSTREAMS, exchange="amq.direct", routing_key=UPSTREAMS))
    (bind,) = three.played()
    assert (bind.queue, bind.routing_key) == (OURS, OURS)
    three.client(said(commands.Basic.Publish, routing_key=UPSTREAMS, body=b"m"))
    (publish,) = three.played()
    assert publish.routing_key == OURS
    assert three.found == []


def test_keys_in_cc_are_played_as_ours(three: Three) -> None:
    declare(three)
    three.client(said(commands.Basic.Publish, body=b"m", properties={"headers": {"CC": [UPSTREAMS]}}))
    octets = three.octets()
    assert OURS.encode() in octets
    assert UPSTREAMS.encode() not in octets


def test_texts_with_names_that_were_made_up_are_equal(three: Three) -> None:
    declare(three)
    three.client(said(commands.Queue.Delete, queue=UPSTREAMS, if_unused=True))
    three.ours(said(commands.Channel.Close, reply_code=406, reply_text=f"queue '{OURS}' in use"))
    three.upstream(said(commands.Channel.Close, reply_code=406, reply_text=f"queue '{UPSTREAMS}' in use"))
    assert three.found == []


def test_an_ack_reaches_the_same_message_at_ours_whatever_its_tag(three: Three) -> None:
    consume(three)
    three.ours(deliver(1, b"a"), deliver(2, b"b"))
    three.upstream(deliver(1, b"b"), deliver(2, b"a"))
    three.client(said(commands.Basic.Ack, delivery_tag=1))
    (ack,) = three.played()
    assert (type(ack), ack.delivery_tag) == (commands.Basic.Ack, 2)


def test_an_ack_of_several_acks_only_what_the_upstream_has_delivered(three: Three) -> None:
    consume(three)
    three.ours(*(deliver(tag, b"%d" % tag) for tag in range(1, 6)))
    three.upstream(*(deliver(tag, b"%d" % tag) for tag in range(1, 4)))
    three.client(said(commands.Basic.Ack, delivery_tag=0, multiple=True))
    assert [ack.delivery_tag for ack in three.played()] == [1, 2, 3]


def test_an_ack_waits_for_the_message_at_ours(three: Three) -> None:
    consume(three)
    three.upstream(deliver(1))
    three.client(said(commands.Basic.Nack, delivery_tag=1, requeue=True))
    assert three.played() == []
    three.ours(deliver(7))
    (nack,) = three.played()
    assert (nack.delivery_tag, nack.requeue, nack.multiple) == (7, True, False)


def test_an_ack_of_no_delivery_hits_none_at_ours_either(three: Three) -> None:
    consume(three)
    three.ours(deliver(1))
    three.client(said(commands.Basic.Ack, delivery_tag=1))
    (ack,) = three.played()
    assert ack.delivery_tag == 1 + UNKNOWN_TAGS
    text = "PRECONDITION_FAILED - unknown delivery tag "
    three.ours(said(commands.Channel.Close, reply_code=406, reply_text=f"{text}{ack.delivery_tag}"))
    three.upstream(said(commands.Channel.Close, reply_code=406, reply_text=f"{text}1"))
    assert three.found == []


def test_confirms_are_equal_however_they_are_grouped(three: Three) -> None:
    three.client(said(commands.Confirm.Select))
    three.both(said(commands.Confirm.SelectOk))
    for _ in range(3):
        three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.ours(said(commands.Basic.Ack, delivery_tag=3, multiple=True))
    three.upstream(*(said(commands.Basic.Ack, delivery_tag=tag) for tag in (2, 1, 3)))
    three.wait()
    assert three.found == []


def test_a_nack_where_the_upstream_confirms_is_a_difference(three: Three) -> None:
    three.client(said(commands.Confirm.Select))
    three.both(said(commands.Confirm.SelectOk))
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.ours(said(commands.Basic.Nack, delivery_tag=1))
    three.upstream(said(commands.Basic.Ack, delivery_tag=1))
    assert three.found == [("basic.ack delivery_tag=1", "basic.nack delivery_tag=1")]
    assert three.book.report.differences[0].asked.startswith("basic.publish routing_key='q'")


def test_a_confirm_that_never_comes_is_a_difference(three: Three) -> None:
    three.client(said(commands.Confirm.Select))
    three.both(said(commands.Confirm.SelectOk))
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.upstream(said(commands.Basic.Ack, delivery_tag=1))
    three.wait()
    assert three.found == [("basic.ack delivery_tag=1", "nothing")]


def test_a_return_of_another_message_is_a_difference(three: Three) -> None:
    three.client(said(commands.Basic.Publish, routing_key="q", mandatory=True, body=b"m"))
    for say, body in ((three.ours, b"x"), (three.upstream, b"m")):
        say(said(commands.Basic.Return, reply_code=312, reply_text="NO_ROUTE", routing_key="q", body=body))
    assert len(three.found) == 1


def test_counts_are_compared_only_when_nothing_has_happened_for_a_while(three: Three) -> None:
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    for after_ms, differences in ((0, 0), (QUIET_MS, 1)):
        three.now += after_ms
        three.client(said(commands.Queue.Declare, queue="q", passive=True))
        three.ours(said(commands.Queue.DeclareOk, queue="q", message_count=2))
        three.upstream(said(commands.Queue.DeclareOk, queue="q", message_count=1))
        assert len(three.found) == differences


def test_ours_follows_when_only_the_upstream_closes_the_channel(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.ours(said(commands.Queue.DeclareOk, queue="q"))
    three.upstream(said(commands.Channel.Close, reply_code=406, reply_text="no", class_id=50, method_id=10))
    three.played()
    three.client(said(commands.Channel.CloseOk), said(commands.Channel.Open))
    assert kinds(three.played()) == [commands.Channel.Close, commands.Channel.Open]
    three.ours(said(commands.Channel.CloseOk))
    three.both(said(commands.Channel.OpenOk))
    three.client(said(commands.Queue.Declare, queue="q"))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    assert len(three.found) == 1


def test_after_ours_alone_has_closed_the_channel_it_is_not_compared_until_it_is_opened_again(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q"))
    three.ours(said(commands.Channel.Close, reply_code=406, reply_text="no", class_id=50, method_id=10))
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


def test_a_close_that_only_ours_says_is_told_after_a_while(three: Three) -> None:
    three.client(said(commands.Basic.Publish, exchange="x", body=b"m"))
    three.ours(said(commands.Channel.Close, reply_code=404, reply_text="no", class_id=60, method_id=40))
    three.wait()
    assert [upstream for upstream, _ in three.found] == ["nothing"]
    assert three.book.report.differences[0].asked.startswith("basic.publish exchange='x'")


def test_what_the_client_settles_does_not_come_within_its_content(three: Three) -> None:
    consume(three)
    three.upstream(deliver(1))
    three.client(said(commands.Basic.Ack, delivery_tag=1))
    publish = said(commands.Basic.Publish, routing_key="q", body=b"body")
    three.client(publish[:-12])
    three.ours(deliver(1))
    assert commands.Basic.Ack not in kinds(three.played())
    three.client(publish[-12:])
    assert commands.Basic.Ack in kinds(three.played())


def test_a_queue_that_is_just_deleting_itself_is_no_difference(three: Three) -> None:
    three.client(said(commands.Queue.Declare, queue="q", auto_delete=True))
    three.both(said(commands.Queue.DeclareOk, queue="q"))
    three.client(said(commands.Basic.Cancel, consumer_tag="c"))
    three.both(said(commands.Basic.CancelOk, consumer_tag="c"))
    three.client(said(commands.Queue.Declare, queue="q", passive=True))
    three.ours(said(commands.Channel.Close, reply_code=404, reply_text="no", class_id=50, method_id=10))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert three.found == []
    assert len(three.book.report.notes) == 1


def test_a_queue_that_was_never_at_ours_is_a_difference_whatever_is_deleted_meanwhile(three: Three) -> None:
    three.client(said(commands.Basic.Cancel, consumer_tag="c"))
    three.both(said(commands.Basic.CancelOk, consumer_tag="c"))
    three.client(said(commands.Queue.Declare, queue="q", passive=True))
    three.ours(said(commands.Channel.Close, reply_code=404, reply_text="no", class_id=50, method_id=10))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    assert len(three.found) == 1
