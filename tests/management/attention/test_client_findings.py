from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.counting.incident import RECENT_MS
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.attention.client_findings import findings_about_clients, findings_of_exchange
from amqp_broker.management.attention.finding import Finding
from tests.peer import Lab


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.broker.now = lab.now
    return lab


def unroutable(lab: Lab, exchange: str) -> list[Finding]:
    lab.broker.collect_counts()
    finished(lab.broker.incidents.look())
    return list(findings_of_exchange(lab.vhost, lab.vhost.exchanges[exchange], lab.broker.real_now()))


def test_the_closest_queue_is_named_for_a_message_that_none_got(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("orders")
    for _ in range(2):
        peer.publish("ordrs")
    [finding] = unroutable(lab, "")
    assert (finding.kind, finding.level, finding.since_ms) == ("unroutable", "warning", lab.now)
    assert finding.sentence == (
        "2 messages published to the default exchange reached no queue, such as with routing key 'ordrs': "
        "did you mean 'orders'?"
    )
    assert finding.remedy == "Declare a queue of this name, or publish with the name of another."
    assert finding.place == {"vhost": "/", "exchange": "", "routing_key": "ordrs"}


def test_the_closest_binding_is_named_for_a_key_without_one(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("orders")
    peer.call(commands.Queue.Bind(queue="orders", exchange="amq.topic", routing_key="order.paid"))
    peer.publish("order.payed", exchange="amq.topic")
    [finding] = unroutable(lab, "amq.topic")
    assert finding.sentence == (
        "1 message published to exchange 'amq.topic' reached no queue, such as with routing key 'order.payed': "
        "did you mean 'order.paid'?"
    )


def test_a_key_that_resembles_no_other_has_no_guess(lab: Lab) -> None:
    lab.connect().publish("x")
    assert unroutable(lab, "")[0].sentence.endswith("such as with routing key 'x'.")


@pytest.mark.parametrize("kind", ["topic", "headers"])
def test_messages_to_an_exchange_without_bindings_are_a_finding_without_a_key(lab: Lab, kind: str) -> None:
    lab.connect().publish("order.new", exchange=f"amq.{kind}")
    [finding] = unroutable(lab, f"amq.{kind}")
    assert finding.sentence == f"1 message published to exchange 'amq.{kind}' reached no queue: it has no bindings."
    assert (finding.remedy, finding.place) == ("Bind a queue to it.", {"vhost": "/", "exchange": f"amq.{kind}"})
    peer = lab.connect()
    peer.declare("orders")
    peer.call(commands.Queue.Bind(queue="orders", exchange=f"amq.{kind}", routing_key="order.new"))
    assert unroutable(lab, f"amq.{kind}")[0].sentence.endswith("reached no queue: it had no bindings then.")


def test_messages_to_a_direct_exchange_without_bindings_are_a_finding(lab: Lab) -> None:
    lab.connect().publish("order.new", exchange="amq.direct")
    [finding] = unroutable(lab, "amq.direct")
    assert finding.sentence.endswith("such as with routing key 'order.new': the exchange has no bindings")


def test_a_fanout_is_silent_until_its_first_binding_and_heard_when_it_has_lost_all(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("orders")
    peer.publish("", exchange="amq.fanout")
    assert unroutable(lab, "amq.fanout") == []
    # Published since the last look.
    peer.publish("", exchange="amq.fanout")
    peer.call(commands.Queue.Bind(queue="orders", exchange="amq.fanout"))
    assert unroutable(lab, "amq.fanout") == []
    peer.call(commands.Queue.Unbind(queue="orders", exchange="amq.fanout"))
    for _ in range(3):
        peer.publish("", exchange="amq.fanout")
    [finding] = unroutable(lab, "amq.fanout")
    assert finding.sentence == "3 messages published to exchange 'amq.fanout' reached no queue: it has no bindings."


def test_unroutable_messages_are_no_finding_any_more_after_a_time(lab: Lab) -> None:
    lab.connect().publish("x")
    assert unroutable(lab, "")
    lab.broker.now += RECENT_MS
    assert unroutable(lab, "") == []


def test_returned_messages_are_no_finding_since_their_publisher_knows(lab: Lab) -> None:
    lab.connect().publish("x", mandatory=True)
    assert unroutable(lab, "") == []


def test_a_client_that_loses_its_connections_is_named(lab: Lab) -> None:
    for _ in range(4):
        lab.connect().disconnect()
    [finding] = findings_about_clients(lab.broker.incidents)
    assert (finding.kind, finding.since_ms) == ("lost-connections", lab.now)
    assert finding.sentence == (
        "A client at 127.0.0.1 (user 'guest') has lost 4 connections. The reason of the last: "
        "client unexpectedly closed TCP connection."
    )
    assert finding.place == {"vhost": "/", "user": "guest", "host": "127.0.0.1"}


def test_a_client_that_is_not_let_in_is_named_with_the_reason(lab: Lab) -> None:
    for _ in range(3):
        peer = lab.peer("10.0.0.7")
        peer.send_bytes(b"AMQP\x00\x00\x09\x01")
        peer.send(commands.Connection.StartOk({"connection_name": "shop"}, "PLAIN", "\0guest\0wrong"), channel=0)
    [finding] = findings_about_clients(lab.broker.incidents)
    assert finding.kind == "refused-client"
    assert finding.sentence == (
        "Client 'shop' at 10.0.0.7 (user 'guest') was refused 3 times: user 'guest' - invalid credentials."
    )


def test_a_client_whose_channels_an_error_closes_is_named_with_rabbitmqs_text(lab: Lab) -> None:
    peer = lab.connect()
    for number, method in ((2, commands.Basic.Consume(queue="x")), (3, commands.Basic.Ack(7))):
        peer.open_channel(number)
        peer.send(method, channel=number)
        peer.expect(commands.Channel.Close, channel=number)
    [finding] = findings_about_clients(lab.broker.incidents)
    assert (finding.kind, finding.level, finding.since_ms) == ("channel-errors", "warning", lab.now)
    assert finding.sentence == (
        "A client at 127.0.0.1 (user 'guest') has had 2 channels closed by an error. The reason of the last: "
        "PRECONDITION_FAILED - unknown delivery tag 7."
    )
    assert finding.place == {"vhost": "/", "user": "guest", "host": "127.0.0.1"}
