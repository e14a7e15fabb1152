from __future__ import annotations

from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.matching import EVENTS
from amqp_broker.run_report.sentences import sentence
from tests.run_report.reporting import logging_lab, report_of

ROW = {
    "exchange": "shop",
    "routing_keys": ["k"],
    "queue": "orders",
    "routed_queues": ["a", "b", "c", "d", "e", "f", "g"],
    "message_number": 1,
    "connection": "127.0.0.1:40000 -> 127.0.0.1:5672",
    "channel": 1,
    "consumer_tag": "",
    "redelivered": 1,
    "no_ack": True,
    "requeue": True,
    "ack": False,
    "reply_code": 312,
    "reply_text": "NO_ROUTE",
    "reason": "connection_closed",
    "rule_id": 1,
    "action": "drop_ack",
}


def test_each_event_has_words() -> None:
    assert {event: sentence({**ROW, "event": event}) for event in EVENTS} == {
        "publish": "published to exchange 'shop' with the key 'k' by 127.0.0.1:40000, channel 1, which led to 'a', "
        "'b', 'c', 'd', 'e', 2 more",
        "tx_publish": "published in a transaction to exchange 'shop' with the key 'k' by 127.0.0.1:40000, channel 1",
        "rollback": "not committed: connection closed",
        "route": "sent by exchange 'shop', which had kept it, to 'a', 'b', 'c', 'd', 'e', 2 more",
        "refuse": "refused by 'orders': connection closed",
        "confirm": "refused: its publisher got a nack",
        "return": "returned to its publisher: 312 NO_ROUTE",
        "deliver": "delivered again from 'orders' to 127.0.0.1:40000, channel 1, without ack",
        "ack": "acknowledged by 127.0.0.1:40000, channel 1",
        "nack": "rejected by 127.0.0.1:40000, channel 1: back to the queue",
        "requeue": "back in 'orders': connection closed",
        "delay": "not ready in 'orders' until its delay ends",
        "move": "moved from 'orders' to 'a', 'b', 'c', 'd', 'e', 2 more",
        "expire": "expired in 'orders'",
        "drop": "dropped by 'orders': connection closed",
        "dead_letter": "dead-lettered from 'orders' (connection closed) as message 1 to exchange 'shop', which led to "
        "'a', 'b', 'c', 'd', 'e', 2 more",
        "fault": "fault 1: drop_ack",
    }


def test_an_unknown_event_has_its_name() -> None:
    assert sentence({"event": "later"}) == "later"


def test_events_of_a_broker_have_all_that_the_words_need() -> None:
    lab = logging_lab()
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 1000}
    peer.send(commands.Queue.Declare(queue="q", arguments=dead), commands.Queue.Declare(queue="dead"))
    peer.send(commands.Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    peer.publish("q", b"nacked")
    peer.publish("q", b"rejected")
    peer.publish("x", b"lost", mandatory=True)
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(1, requeue=True))
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(2, requeue=False))
    peer.publish("q", b"expires")
    lab.advance(2000)
    peer.send(commands.Basic.Get(queue="dead"), commands.Basic.Ack(3), commands.Queue.Purge(queue="dead"))
    words = [sentence(event) for life in report_of(lab)["lives"] for event in life["events"]]
    address = peer.session.name.partition(" -> ")[0]
    published = f"published to the default exchange with the key 'q' by {address}, channel 1"
    assert words == [
        f"{published}; fault confirm_nack kept it from 'q'",
        "fault 1: confirm_nack",
        "refused: its publisher got a nack",
        f"{published}, which led to 'q'",
        "confirmed",
        f"delivered from 'q' to {address}, channel 1",
        f"rejected by {address}, channel 1: back to the queue",
        f"delivered again from 'q' to {address}, channel 1",
        f"rejected by {address}, channel 1, without requeue",
        "dead-lettered from 'q' (rejected) as message 4 to the default exchange, which led to 'dead'",
        f"delivered from 'dead' to {address}, channel 1",
        f"acknowledged by {address}, channel 1",
        f"published to the default exchange with the key 'x' by {address}, channel 1, which led to no queue",
        "returned to its publisher: 312 NO_ROUTE",
        "confirmed",
        f"{published}, which led to 'q'",
        "confirmed",
        "expired in 'q'",
        "dead-lettered from 'q' (expired) as message 6 to the default exchange, which led to 'dead'",
        "dropped by 'dead': purged",
    ]


def test_a_fault_that_came_before_the_broker_took_a_publish_names_it() -> None:
    lab = logging_lab()
    peer = lab.connect()
    lab.broker.faults.add(Rule("reset", on="publish", times=1))
    peer.publish("q", b"x")
    [life] = report_of(lab)["lives"]
    address = peer.session.name.partition(" -> ")[0]
    assert [sentence(event) for event in life["events"]] == [
        f"fault 1: reset, before the broker took the publish to the default exchange with the key 'q' by {address}, "
        "channel 1"
    ]
