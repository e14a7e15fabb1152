"""Windows: what RabbitMQ leaves open is the same in the lines of equal brokers."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm

from amqp_broker.conformance.duel.windows import Ledger, Window
from amqp_broker.conformance.received import Received


def delivery(consumer: str, tag: int, body: bytes) -> Received:
    fields = {"consumer_tag": consumer, "delivery_tag": tag}
    return Received(Basic.Deliver, fields, properties={}, body=body)


def ack(tag: int, *, multiple: bool) -> Received:
    return Received(Basic.Ack, {"delivery_tag": tag, "multiple": multiple})


def window(*received: Received) -> Window:
    one = Window()
    for each in received:
        one.add(each)
    return one


def ledger_with_consumers() -> Ledger:
    ledger = Ledger()
    ledger.note(window(*(Received(Basic.ConsumeOk, {"consumer_tag": tag}) for tag in ("a", "b"))), no_ack=False)
    return ledger


def confirming(count: int) -> Ledger:
    ledger = Ledger()
    ledger.note(window(Received(Confirm.SelectOk)), no_ack=False)
    for _ in range(count):
        ledger.count_publish()
    return ledger


def test_deliveries_to_two_consumers_may_mix_in_any_order() -> None:
    one = window(delivery("b", 1, b"1"), delivery("a", 2, b"2"), delivery("b", 3, b"3"))
    other = window(delivery("a", 1, b"2"), delivery("b", 2, b"1"), delivery("b", 3, b"3"))
    assert [*ledger_with_consumers().lines(one)] == [*ledger_with_consumers().lines(other)]


def test_deliveries_to_one_consumer_are_in_order() -> None:
    one = window(delivery("a", 1, b"1"), delivery("a", 2, b"2"))
    other = window(delivery("a", 1, b"2"), delivery("a", 2, b"1"))
    assert [*ledger_with_consumers().lines(one)] != [*ledger_with_consumers().lines(other)]


def test_confirms_may_be_grouped_in_any_way() -> None:
    one = window(ack(3, multiple=True))
    other = window(ack(2, multiple=False), ack(1, multiple=False), ack(3, multiple=False))
    assert [*confirming(3).lines(one)] == [*confirming(3).lines(other)] == ["basic.ack for 1, 2, 3"]


def test_a_second_confirm_of_a_publish_is_seen() -> None:
    assert "basic.ack of nothing" in [*confirming(1).lines(window(ack(1, multiple=False), ack(1, multiple=False)))]


def test_deliveries_of_consumers_that_settle_nothing_are_not_unacked() -> None:
    ledger = Ledger()
    ledger.note(window(Received(Basic.ConsumeOk, {"consumer_tag": "a"}), delivery("a", 1, b"1")), no_ack=True)
    assert ledger.unacked == []
