"""Topic permissions, asked for at every publish to a topic exchange.

RabbitMQ 3.10 checks the publish's own routing key only, before it looks at expiration and CC, and its text lacks
`write`. The order of most tests here is that of 4.x (rabbit_channel.erl, basic.publish,
check_write_permitted_on_topics).
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.broker.admin.access import TopicPermission
from amqp_broker.broker.scheduling.portions import WORK_MAX
from tests.peer import Lab, Peer


def refused(key: str) -> str:
    return (
        f"ACCESS_REFUSED - write access to topic '{key}' in exchange 'amq.topic' in vhost '/' refused for user 'guest'"
    )


@pytest.fixture
def peer(lab: Lab) -> Peer:
    """A client that may write to its own topics, and a queue that gets all of them."""
    peer = lab.connect()
    peer.declare("q")
    for exchange in ("amq.topic", "amq.fanout"):
        peer.call(Queue.Bind(queue="q", exchange=exchange, routing_key="#"))
    permit(lab, "^{username}\\.")
    return peer


def permit(lab: Lab, write: str) -> None:
    guest = lab.broker.users["guest"]
    lab.broker.users.set_topic_permission(guest, "/", "amq.topic", TopicPermission(write=write))


def test_a_permitted_topic_may_be_published_repeatedly(peer: Peer) -> None:
    for _ in range(3):
        peer.publish("guest.a", b"x", exchange="amq.topic")
    assert peer.declare("q").message_count == 3


@pytest.mark.parametrize("body", [b"", b"x", b"x" * 200_000])
def test_a_forbidden_topic_is_refused(peer: Peer, body: bytes) -> None:
    peer.publish("other.a", body, exchange="amq.topic")
    assert peer.expect_channel_close(403) == refused("other.a")
    peer.open_channel(1)
    assert peer.declare("q").message_count == 0


def test_a_forbidden_topic_is_refused_each_time(peer: Peer) -> None:
    for _ in range(2):
        peer.publish("other.a", b"x", exchange="amq.topic")
        assert peer.expect_channel_close(403) == refused("other.a")
        peer.open_channel(1)


def test_a_refused_message_is_not_confirmed(peer: Peer) -> None:
    peer.call(Confirm.Select())
    peer.publish("other.a", b"x", exchange="amq.topic")
    peer.expect_channel_close(403)
    peer.expect_nothing()


def test_a_refusal_in_a_transaction_is_reported_at_once(peer: Peer) -> None:
    peer.call(Tx.Select())
    peer.publish("other.a", b"x", exchange="amq.topic")
    assert peer.expect_channel_close(403) == refused("other.a")


@pytest.mark.parametrize("exchange", ["amq.fanout", ""])
def test_exchanges_of_other_types_have_no_topics(lab: Lab, peer: Peer, exchange: str) -> None:
    guest = lab.broker.users["guest"]
    lab.broker.users.set_topic_permission(guest, "/", exchange, TopicPermission("", ""))
    peer.publish("q", b"x", exchange=exchange)
    assert peer.declare("q").message_count == 1


def test_topic_permissions_do_not_apply_behind_another_exchange(peer: Peer) -> None:
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"))
    peer.call(Exchange.Bind(source="x", destination="amq.topic"))
    peer.publish("other.a", b"x", exchange="x")
    assert peer.declare("q").message_count == 1


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_further_routing_keys_need_permission(peer: Peer, header: str) -> None:
    peer.publish("guest.a", b"x", exchange="amq.topic", headers={header: ["guest.b"]})
    assert peer.declare("q").message_count == 1
    peer.publish("guest.a", b"x", exchange="amq.topic", headers={header: ["guest.b", "other.b"]})
    assert peer.expect_channel_close(403) == refused("other.b")


@pytest.mark.parametrize(
    ("properties", "code", "text"),
    [
        ({"expiration": "x"}, 406, "PRECONDITION_FAILED - invalid expiration 'x': no_integer"),
        (
            {"headers": {"CC": "x"}},
            406,
            'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}',
        ),
        ({"user_id": "x"}, 403, refused("other.a")),
    ],
)
def test_topics_are_checked_after_the_headers_and_before_the_user_id(
    peer: Peer, properties: dict[str, Any], code: int, text: str
) -> None:
    peer.publish("other.a", b"x", exchange="amq.topic", **properties)
    assert peer.expect_channel_close(code) == text


@pytest.fixture
def old() -> Peer:
    """A client of a broker as RabbitMQ 3.13, that may write to its own topics."""
    lab = Lab(compat="3.13")
    peer = lab.connect()
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#"))
    permit(lab, "^{username}\\.")
    return peer


@pytest.mark.parametrize("properties", [{}, {"expiration": "x"}, {"headers": {"CC": "x"}}, {"user_id": "x"}])
def test_before_4_0_topics_are_checked_before_the_properties(old: Peer, properties: dict[str, Any]) -> None:
    old.publish("other.a", b"x", exchange="amq.topic", **properties)
    assert old.expect_channel_close(403) == refused("other.a").replace("write access", "access")


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_before_4_0_further_routing_keys_need_no_permission(old: Peer, header: str) -> None:
    old.publish("guest.a", b"x", exchange="amq.topic", headers={header: ["other.b"]})
    assert old.declare("q").message_count == 1


def test_before_4_0_the_user_id_is_checked_before_the_expiration(old: Peer) -> None:
    old.publish("q", b"x", user_id="other", expiration="x")
    assert "user_id property set to 'other'" in old.expect_channel_close(406)


def test_a_change_of_topic_permissions_applies_to_the_next_message(lab: Lab, peer: Peer) -> None:
    peer.publish("guest.a", b"x", exchange="amq.topic")
    permit(lab, "^other\\.")
    peer.publish("other.a", b"x", exchange="amq.topic")
    peer.publish("guest.a", b"x", exchange="amq.topic")
    assert peer.expect_channel_close(403) == refused("guest.a")
    lab.broker.users.clear_topic_permission(lab.broker.users["guest"], "/")
    peer.open_channel(1)
    peer.publish("guest.a", b"x", exchange="amq.topic")
    assert peer.declare("q").message_count == 3


def test_a_change_of_permissions_applies_to_the_next_message(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"x")
    lab.broker.users.clear_permission(lab.broker.users["guest"], "/")
    peer.publish("q", b"x")
    text = "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'guest'"
    assert peer.expect_channel_close(403) == text


def test_the_permission_to_write_is_checked_first(lab: Lab, peer: Peer) -> None:
    lab.broker.users.clear_permission(lab.broker.users["guest"], "/")
    peer.publish("other.a", b"x", exchange="amq.topic")
    assert "write access to exchange 'amq.topic'" in peer.expect_channel_close(403)


def test_a_permitted_topic_takes_the_plain_path(lab: Lab, peer: Peer) -> None:
    peer.publish("guest.a", b"x", exchange="amq.topic")
    peer.publish("other.a", b"x", exchange="amq.topic")
    peer.expect_channel_close(403)
    routes = {route.address.routing_key: route.is_plain for route in peer.session.routes.values()}
    assert routes == {"guest.a": True, "other.a": False}


def test_consuming_requires_no_topic_permission(lab: Lab, peer: Peer) -> None:
    permit(lab, "")
    peer.consume("q", no_ack=True)
    peer.publish("q", b"x")
    assert isinstance(peer.expect_delivery()[0], Basic.Deliver)


@pytest.fixture
def author(lab: Lab) -> Peer:
    """A client that confirms, and patterns in which each of many long keys ends late."""
    peer = lab.connect()
    peer.declare("q")
    choices = random.Random(1)
    for number in range(300):
        pattern = ".".join([*choices.choices("*#", k=60), f"w{number}"])
        peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key=pattern))
    peer.call(Confirm.Select())
    return peer


def copies(count: int, last: str = "w299") -> dict[str, Any]:
    """The headers of a message with many long keys, of which the last one leads to the queue."""
    keys = [".".join([*"a" * 100, str(number)]) for number in range(count - 1)]
    return {"CC": [*keys, ".".join([*"a" * 100, last])]}


def test_many_keys_are_matched_in_several_turns_in_which_the_publisher_waits(lab: Lab, author: Peer) -> None:
    author.publish("k", b"1", exchange="amq.topic", headers=copies(100))
    author.publish("q", b"2")
    author.expect_nothing()
    turns = 1
    while lab.broker.drain_on():
        assert lab.broker.work < 2 * WORK_MAX
        turns += 1
    assert turns > 3
    ack = author.expect(Basic.Ack)
    assert (ack.delivery_tag, ack.multiple) == (2, True)
    assert [message.body for message in lab.vhost.queues["q"].messages()] == [b"1", b"2"]


def test_a_mandatory_message_with_many_keys_is_returned_if_none_leads_to_a_queue(lab: Lab, author: Peer) -> None:
    author.publish("k", b"1", exchange="amq.topic", mandatory=True, headers=copies(100, last="x"))
    lab.drain()
    author.expect(Basic.Return)
    author.expect_content()
    assert author.expect(Basic.Ack).delivery_tag == 1


def test_a_transaction_has_a_message_with_many_keys(lab: Lab, author: Peer) -> None:
    author.open_channel(2)
    author.call(Tx.Select(), channel=2)
    author.publish("k", b"1", exchange="amq.topic", headers=copies(100), channel=2)
    lab.drain()
    assert lab.vhost.queues["q"].ready_count == 0
    author.call(Tx.Commit(), channel=2)
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_message_with_many_keys_is_dropped_with_its_connection(lab: Lab, author: Peer) -> None:
    author.publish("k", b"1", exchange="amq.topic", headers=copies(100))
    author.disconnect()
    lab.drain()
    assert lab.vhost.queues["q"].ready_count == 0


def test_a_queue_that_is_deleted_while_keys_are_matched_gets_nothing(lab: Lab, author: Peer) -> None:
    keys = copies(100)
    keys["CC"] = keys["CC"][::-1]
    author.publish("k", b"1", exchange="amq.topic", headers=keys)
    queue = lab.vhost.queues["q"]
    lab.connect().send(Queue.Delete(queue="q"))
    lab.drain()
    assert author.expect(Basic.Ack).delivery_tag == 1
    assert queue.ready_count == 0
