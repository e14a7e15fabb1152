"""Topic permissions, asked for where something is bound to a topic exchange. Tried with RabbitMQ 3.10, whose text lacks
the action: a missing queue is not looked for before the topic is permitted, a missing exchange has no topics.
The suite `configured` compares the texts of all versions.
"""

from __future__ import annotations

import pytest
from pamqp import base
from pamqp.commands import Channel, Exchange, Queue

from amqp_broker.broker.admin.access import TopicPermission
from tests.peer import Lab, Peer

REFUSED = (
    "ACCESS_REFUSED - read access to topic 'other.a' in exchange 'amq.topic' in vhost '/' refused for user 'guest'"
)


@pytest.fixture
def peer(lab: Lab) -> Peer:
    peer = lab.connect()
    peer.declare("q")
    guest = lab.broker.users["guest"]
    lab.broker.users.set_topic_permission(guest, "/", "amq.topic", TopicPermission(write="", read="^{vhost}guest\\."))
    return peer


@pytest.mark.parametrize(
    "method",
    [
        Queue.Bind(queue="q", exchange="amq.topic", routing_key="other.a"),
        Queue.Unbind(queue="q", exchange="amq.topic", routing_key="other.a"),
        Exchange.Bind(source="amq.topic", destination="amq.fanout", routing_key="other.a"),
        Exchange.Unbind(source="amq.topic", destination="amq.fanout", routing_key="other.a"),
        Queue.Bind(queue="missing", exchange="amq.topic", routing_key="other.a"),
        Queue.Unbind(queue="missing", exchange="amq.topic", routing_key="other.a"),
    ],
    ids=lambda method: f"{method.name} {dict(method).get('queue', '')}",
)
def test_binding_a_forbidden_topic_is_refused(peer: Peer, method: base.Frame) -> None:
    peer.send(method)
    assert peer.expect_channel_close(403) == REFUSED


@pytest.mark.parametrize(
    "method",
    [
        Queue.Bind(queue="q", exchange="amq.topic", routing_key="/guest.a"),
        Queue.Unbind(queue="q", exchange="amq.topic", routing_key="/guest.a"),
        Exchange.Bind(source="amq.topic", destination="amq.fanout", routing_key="/guest.a"),
        Exchange.Bind(source="amq.fanout", destination="amq.topic", routing_key="other.a"),
        Queue.Bind(queue="q", exchange="amq.fanout", routing_key="other.a"),
        Queue.Unbind(queue="q", exchange="missing", routing_key="other.a"),
    ],
    ids=lambda method: f"{method.name} {dict(method).get('exchange', '')}",
)
def test_other_topics_and_exchanges_can_be_bound(peer: Peer, method: base.Frame) -> None:
    peer.call(method)


def test_a_missing_exchange_is_reported_before_topics_are_checked(peer: Peer) -> None:
    peer.send(Queue.Bind(queue="q", exchange="missing", routing_key="other.a"))
    assert peer.expect_channel_close(404) == "NOT_FOUND - no exchange 'missing' in vhost '/'"


def test_a_key_taken_from_the_queue_name_is_checked_as_a_topic(peer: Peer) -> None:
    peer.send(Queue.Bind(queue="", exchange="amq.topic", routing_key=""))
    assert "read access to topic 'q'" in peer.expect_channel_close(403)


def test_the_permission_to_read_the_exchange_is_checked_first(lab: Lab, peer: Peer) -> None:
    lab.broker.users.clear_permission(lab.broker.users["guest"], "/")
    peer.send(Queue.Bind(queue="q", exchange="amq.topic", routing_key="other.a"))
    assert "write access to queue 'q'" in peer.expect_channel_close(403)


def test_a_refused_topic_can_be_bound_when_permissions_allow_it(lab: Lab, peer: Peer) -> None:
    peer.send(Queue.Bind(queue="q", exchange="amq.topic", routing_key="other.a"))
    peer.expect(Channel.Close)
    peer.send(Channel.CloseOk())
    lab.broker.users.clear_topic_permission(lab.broker.users["guest"], "/", "amq.topic")
    peer.open_channel(1)
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="other.a"))
