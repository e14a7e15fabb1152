"""A channel of the scenarios' client, at a broker."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab
from tests.conformance.broker_under_test import BrokerUnderTest, transcript


def test_both_directions_are_recorded(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.channel().declare(lab.name("q"), exclusive=True)

    assert transcript(play, broker) == [
        "a1> queue.declare queue='q' exclusive=true",
        "a1< queue.declare-ok queue='q' message_count=0 consumer_count=0",
    ]


def test_a_close_ends_the_wait_for_an_answer(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.channel().call(Queue.Declare, queue=lab.name("q"), passive=True)

    sent, received = transcript(play, broker)
    assert sent == "a1> queue.declare queue='q' passive=true"
    assert received.startswith("a1< channel.close reply_code=404 reply_text=")


def test_any_queue_is_durable_for_a_version_that_refuses_others(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.channel().call(Queue.Declare, queue=lab.name("q"))

    assert transcript(play, broker)[0] == "a1> queue.declare queue='q' durable=true"
    assert transcript(play, broker, declares_durable=False)[0] == "a1> queue.declare queue='q'"


def test_input_is_recorded_where_the_scenario_waits_for_it(broker: BrokerUnderTest) -> None:
    """Frames of different channels arrive in no fixed order."""

    def play(lab: Lab) -> None:
        connection = lab.connect()
        one, other = connection.channel(), connection.channel()
        queue = one.declare(lab.name("q"), exclusive=True)
        one.consume(queue, "c", no_ack=True)
        one.publish(b"x", routing_key=queue)
        other.sync(queue)
        other.call(Queue.Purge, queue=queue)
        one.expect(Basic.Deliver)

    lines = transcript(play, broker)
    assert [line.split(" ")[:2] for line in lines if "< " in line][-3:] == [
        ["a2<", "queue.purge-ok"],
        ["a1<", "basic.deliver"],
        ["a1<", ""],
    ]


def test_the_grouping_of_confirms_is_not_recorded(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        channel = lab.channel()
        channel.call(Confirm.Select)
        for _ in range(3):
            channel.publish(b"", routing_key=lab.name("none"))
        channel.confirms(1, 3)

    assert transcript(play, broker)[-1] == "a1< basic.ack for 1, 2, 3"


def test_a_queue_is_pulled_empty(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        channel, queue = lab.channel(), lab.queue()
        lab.put(queue, b"1", b"2")
        channel.drain(queue)

    methods = [line.split(" ")[1] for line in transcript(play, broker) if line.startswith("a1<") and "<  " not in line]
    assert methods == ["basic.get-ok", "basic.get-ok", "basic.get-empty"]
