"""Direct reply-to: requests name their channel, which gets the replies."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.peer import Lab, Peer
from tests.present import present

REPLY_TO = "amq.rabbitmq.reply-to"


def ask(client: Peer, server: Peer) -> str:
    client.publish("requests", b"question", reply_to=REPLY_TO, correlation_id="1")
    asked = server.get("requests")
    assert asked is not None
    reply_to = present(asked[1].properties.reply_to)
    assert asked[1].properties.correlation_id == "1"
    return reply_to


@pytest.fixture
def server(lab: Lab) -> Peer:
    server = lab.connect()
    server.declare("requests")
    return server


SAME_OCTETS = f"\x15{REPLY_TO}"


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"headers": {"b": "x", "a": 1}, "message_id": "m", "expiration": "60000"},
        {"correlation_id": SAME_OCTETS, "message_id": "m"},
        {"headers": {"a": SAME_OCTETS}},
        {"message_id": SAME_OCTETS},
        {"user_id": "guest", "headers": {"CC": ["requests"]}},
    ],
)
def test_only_the_reply_to_of_a_request_is_replaced(peer: Peer, server: Peer, others: dict[str, Any]) -> None:
    peer.consume(REPLY_TO, "c", no_ack=True)
    peer.publish("requests", b"question", reply_to=REPLY_TO, **others)
    asked = server.get("requests")
    assert asked is not None
    properties = dict(asked[1].properties)
    assert str(properties.pop("reply_to")).startswith(f"{REPLY_TO}.")
    assert {name: value for name, value in properties.items() if value} == others
    assert asked[1].body == b"question"


def test_a_reply_goes_to_the_channel_of_the_request(peer: Peer, server: Peer) -> None:
    peer.consume(REPLY_TO, "replies", no_ack=True)
    reply_to = ask(peer, server)
    assert reply_to.startswith(REPLY_TO + ".")
    server.publish(reply_to, b"answer")
    deliver, content = peer.expect_delivery()
    assert (deliver.consumer_tag, deliver.delivery_tag, deliver.routing_key) == ("replies", 1, reply_to)
    assert content.body == b"answer"


@pytest.mark.parametrize(("compat", "tags"), [("3.13", [1, 1, 1]), ("4.2", [1, 2, 3])])
def test_since_4_0_replies_have_delivery_tags_of_their_own(compat: str, tags: list[int]) -> None:
    lab = Lab(compat=compat)
    peer, server = lab.connect(), lab.connect()
    server.declare("requests")
    peer.consume(REPLY_TO, "replies", no_ack=True)
    reply_to = ask(peer, server)
    for _ in tags:
        server.publish(reply_to, b"answer")
    assert [deliver.delivery_tag for deliver, _ in peer.deliveries()] == tags


def test_each_channel_has_its_own_reply_name(peer: Peer, server: Peer) -> None:
    peer.consume(REPLY_TO, "c", no_ack=True)
    first = ask(peer, server)
    assert ask(peer, server) == first
    peer.call(commands.Basic.Cancel("c"))
    peer.consume(REPLY_TO, "c", no_ack=True)
    assert ask(peer, server) != first


def test_consuming_replies_needs_no_ack(peer: Peer) -> None:
    peer.send(commands.Basic.Consume(queue=REPLY_TO))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - reply consumer cannot acknowledge"


def test_a_channel_may_have_one_reply_consumer(peer: Peer) -> None:
    peer.consume(REPLY_TO, "one", no_ack=True)
    peer.send(commands.Basic.Consume(queue=REPLY_TO, consumer_tag="one", no_ack=True))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - reply consumer already set"


def test_a_request_requires_a_reply_consumer_on_its_channel(peer: Peer, server: Peer) -> None:
    peer.consume(REPLY_TO, "c", no_ack=True)
    peer.open_channel(2)
    peer.publish("requests", b"question", channel=2, reply_to=REPLY_TO)
    text = peer.expect_channel_close(406, channel=2)
    assert text == "PRECONDITION_FAILED - fast reply consumer does not exist"


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_reply_to_a_lost_client_is_dropped(peer: Peer, server: Peer, is_closed: bool) -> None:
    peer.consume(REPLY_TO, "c", no_ack=True)
    reply_to = ask(peer, server)
    server.publish(reply_to, b"in time")
    assert peer.bodies() == [b"in time"]
    if is_closed:
        peer.disconnect()
    else:
        peer.call(commands.Basic.Cancel("c"))
    server.publish(reply_to, b"late", mandatory=True)
    server.expect_nothing()
    assert peer.lab.vhost.reply_queues == {}


def test_before_4_2_a_late_mandatory_reply_is_returned() -> None:
    lab = Lab(compat="3.13")
    peer, server = lab.connect(), lab.connect()
    server.declare("requests")
    peer.consume(REPLY_TO, "c", no_ack=True)
    reply_to = ask(peer, server)
    peer.disconnect()
    server.publish(reply_to, b"late", mandatory=True)
    assert server.expect(commands.Basic.Return).reply_code == 312


def test_declaring_a_reply_name_finds_only_waiting_requesters(peer: Peer, server: Peer) -> None:
    peer.consume(REPLY_TO, "c", no_ack=True)
    reply_to = ask(peer, server)
    for name in (REPLY_TO, reply_to):
        assert server.declare(name, passive=True).consumer_count == 1
    peer.disconnect()
    server.send(commands.Queue.Declare(queue=reply_to, passive=True))
    assert server.expect_channel_close(404) == f"NOT_FOUND - no queue '{reply_to}' in vhost '/'"


def test_a_reply_waits_for_a_full_socket(peer: Peer, server: Peer) -> None:
    peer.consume(REPLY_TO, "c", no_ack=True)
    reply_to = ask(peer, server)
    peer.session.pause()
    server.publish(reply_to, b"answer")
    peer.expect_nothing()
    peer.session.resume(peer.lab.now)
    assert peer.bodies() == [b"answer"]


def test_a_reply_name_is_unknown_in_another_vhost(peer: Peer, server: Peer) -> None:
    lab = peer.lab
    peer.consume(REPLY_TO, "c", no_ack=True)
    reply_to = ask(peer, server)
    lab.broker.add_vhost("other")
    guest = lab.broker.users["guest"]
    lab.broker.users.set_permission(guest, "other", guest.permissions["/"])
    stranger = lab.connect(vhost="other")
    stranger.publish(reply_to, b"answer")
    peer.expect_nothing()
