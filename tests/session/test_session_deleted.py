"""Users and vhosts that are deleted while clients use them.

Seen in RabbitMQ 3.10: `CONNECTION_FORCED - user 'u' is deleted`; a changed password leaves open connections alone; of a
vhost it says that it is down, since 4.0 `vhost 'v' is deleted`.
"""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Connection

from amqp_broker.broker.admin.access import Permission
from tests.peer import Lab, Peer


@pytest.fixture
def maria(lab: Lab) -> Peer:
    """A client of the user maria."""
    lab.broker.users.set_permission(lab.broker.users.add("maria", "secret"), "/", Permission())
    return lab.connect(user="maria", password="secret")


def test_the_connections_of_a_deleted_user_are_closed(lab: Lab, maria: Peer, peer: Peer) -> None:
    lab.broker.users.delete("maria")
    assert maria.expect_connection_close(320) == "CONNECTION_FORCED - user 'maria' is deleted"
    assert maria.is_dropped
    peer.declare("q")


def test_messages_held_by_a_deleted_user_are_requeued(lab: Lab, maria: Peer, peer: Peer) -> None:
    peer.declare("q")
    maria.declare("own", exclusive=True)
    maria.consume("q")
    peer.publish("q", b"x")
    maria.expect_delivery()
    lab.broker.users.delete("maria")
    assert peer.declare("q").message_count == 1
    assert list(lab.vhost.queues) == ["q"]


def test_a_deleted_user_cannot_log_in(lab: Lab, maria: Peer) -> None:
    lab.broker.users.delete("maria")
    with pytest.raises(AssertionError, match="Close"):
        lab.peer().open(user="maria", password="secret")


def test_a_user_deleted_during_the_login_opens_no_vhost(lab: Lab, maria: Peer) -> None:
    late = lab.peer()
    late.send_bytes(b"AMQP\x00\x00\x09\x01")
    late.expect(Connection.Start, channel=0)
    late.send(Connection.StartOk({}, "PLAIN", "\0maria\0secret"), channel=0)
    late.expect(Connection.Tune, channel=0)
    lab.broker.users.delete("maria")
    late.send(Connection.TuneOk(2047, 131072, 0), Connection.Open("/"), channel=0)
    assert late.expect_connection_close(530) == "NOT_ALLOWED - access to vhost '/' refused for user 'maria'"


def test_the_connections_to_a_deleted_vhost_are_closed(lab: Lab, peer: Peer) -> None:
    lab.broker.add_vhost("blue")
    lab.broker.users.set_permission(lab.broker.users["guest"], "blue", Permission())
    client = lab.connect(vhost="blue")
    client.declare("q")
    client.consume("q")
    client.publish("q", b"x")
    client.expect_delivery()
    lab.broker.delete_vhost("blue")
    assert client.expect_connection_close(320) == "CONNECTION_FORCED - vhost 'blue' is deleted"
    peer.declare("q")
    again = lab.peer()
    with pytest.raises(AssertionError, match="vhost blue not found"):
        again.open(vhost="blue")


def test_a_changed_password_does_not_close_open_connections(lab: Lab, maria: Peer) -> None:
    lab.broker.users.change_password(lab.broker.users.named("maria"), "new")
    maria.declare("q")
    lab.connect(user="maria", password="new")


def test_a_user_who_loses_all_permissions_keeps_connections(lab: Lab, maria: Peer) -> None:
    lab.broker.users.clear_permission(lab.broker.users.named("maria"), "/")
    maria.send(Basic.Get(queue="q"))
    text = "ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'maria'"
    assert maria.expect_channel_close(403) == text
    maria.open_channel(1)


def test_changed_tags_apply_at_once(lab: Lab, maria: Peer) -> None:
    lab.broker.users.set_tags(lab.broker.users.named("maria"), ["impersonator"])
    maria.publish("q", b"x", user_id="somebody")
    maria.expect_nothing()
    lab.broker.users.set_tags(lab.broker.users.named("maria"), [])
    maria.publish("q", b"x", user_id="somebody")
    assert "user_id property set to 'somebody'" in maria.expect_channel_close(406)
