"""connection.open: permissions, limits of connections, and the order of checks."""

from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.commands import Connection

from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.broker.scheduling.portions import finished
from tests.peer import Lab, Peer


def add_user(lab: Lab, name: str, *vhosts: str) -> User:
    user = lab.broker.users.add(name, "secret")
    for vhost in vhosts:
        lab.broker.users.set_permission(user, vhost, Permission())
    return user


def ask_for(lab: Lab, vhost: str, user: str = "guest", password: str = "guest") -> Peer:
    """A client that has just sent connection.open."""
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(Connection.Start, channel=0)
    peer.send(Connection.StartOk({}, "PLAIN", f"\0{user}\0{password}"), channel=0)
    peer.expect(Connection.Tune, channel=0)
    peer.send(Connection.TuneOk(2047, 131072, 0), Connection.Open(vhost), channel=0)
    return peer


def refusal(lab: Lab, vhost: str, user: str = "guest", password: str = "guest") -> str:
    peer = ask_for(lab, vhost, user, password)
    close = peer.expect(Connection.Close, channel=0)
    assert close.reply_code == 530
    assert (close.class_id, close.method_id) == (10, 40)
    assert peer.session not in lab.broker.connections
    name, _, explanation = close.reply_text.partition(" - ")
    assert name == "NOT_ALLOWED"
    return explanation


def test_a_vhost_opens(lab: Lab) -> None:
    peer = ask_for(lab, "/")
    assert peer.expect(Connection.OpenOk, channel=0).known_hosts == ""
    assert lab.broker.connections == lab.vhost.connections == {peer.session}


@pytest.mark.parametrize("name", ["nowhere", "", "//"])
def test_a_missing_vhost_is_refused(lab: Lab, name: str) -> None:
    assert refusal(lab, name) == f"vhost {name} not found"


def test_a_vhost_without_permissions_is_refused(lab: Lab) -> None:
    add_user(lab, "maria")
    assert refusal(lab, "/", "maria", "secret") == "access to vhost '/' refused for user 'maria'"


def test_a_vhost_that_is_down_is_refused(lab: Lab) -> None:
    """Seen in 3.10.8, 4.0.5 and 4.3.6, after rabbit_vhost_sup_sup:stop_and_delete_vhost."""
    lab.broker.add_vhost("v")
    add_user(lab, "maria", "v")
    with lab.broker.vhosts["v"].down():
        close = ask_for(lab, "v", "maria", "secret").expect(Connection.Close, channel=0)
    assert (close.reply_code, close.class_id, close.method_id) == (541, 10, 40)
    assert close.reply_text == ("INTERNAL_ERROR - access to vhost 'v' refused for user 'maria': vhost 'v' is down")


def test_the_connections_to_a_vhost_that_goes_down_are_closed(lab: Lab) -> None:
    """Seen in 4.3.6, when the processes of the vhost were killed."""
    lab.broker.add_vhost("v")
    add_user(lab, "maria", "v")
    peer, other = lab.connect(user="maria", password="secret", vhost="v"), lab.connect()
    peer.declare("q")
    peer.consume("q")
    vhost = lab.broker.vhosts["v"]
    with vhost.down():
        finished(lab.broker.closing(vhost.connections, f"{vhost} is down"))
        other.declare("q")
        close = peer.expect(Connection.Close, channel=0)
        assert (close.reply_code, close.class_id, close.method_id) == (320, 0, 0)
        assert close.reply_text == "CONNECTION_FORCED - vhost 'v' is down"
        peer.publish("q", b"not read")
        peer.send(Connection.CloseOk(), channel=0)
        assert peer.is_dropped
    [queue] = lab.broker.vhosts["v"].queues.values()
    assert (queue.consumers, queue.ready_count) == ({}, 0)
    lab.connect(user="maria", password="secret", vhost="v")
    assert other.declare("q").message_count == 0


def test_permissions_that_permit_nothing_open_the_vhost(lab: Lab) -> None:
    lab.broker.users.set_permission(add_user(lab, "maria"), "/", Permission("", "", ""))
    ask_for(lab, "/", "maria", "secret").expect(Connection.OpenOk, channel=0)


def test_vhosts_are_isolated(lab: Lab) -> None:
    lab.broker.add_vhost("blue")
    add_user(lab, "maria", "/", "blue")
    here, there = lab.connect(), lab.connect(user="maria", password="secret", vhost="blue")
    here.declare("q")
    there.declare("q", durable=True)
    here.publish("q", b"for the first")
    assert there.get("q") is None
    there.send(commands.Queue.Delete(queue="q"))
    assert here.get("q") is not None


def test_users_do_not_share_cached_permissions(lab: Lab) -> None:
    lab.broker.users.set_permission(add_user(lab, "maria"), "/", Permission(".*", "", ".*"))
    guest, maria = lab.connect(), lab.connect(user="maria", password="secret")
    guest.declare("q")
    guest.publish("q", b"1")
    maria.publish("q", b"2")
    assert maria.expect_channel_close(403).endswith("refused for user 'maria'")
    guest.publish("q", b"3")
    assert guest.declare("q").message_count == 2


# Limits


def test_the_connections_of_the_node_are_limited() -> None:
    lab = Lab(connection_max=1)
    first = lab.connect()
    assert refusal(lab, "/") == "connection refused: node connection limit (1) is reached"
    first.disconnect()
    lab.connect()


def test_the_connections_of_a_vhost_are_limited(lab: Lab) -> None:
    lab.broker.add_vhost("blue")
    lab.broker.users.set_permission(lab.broker.users["guest"], "blue", Permission())
    lab.vhost.limits.set("max-connections", 1)
    first = lab.connect()
    assert refusal(lab, "/") == "access to vhost '/' refused for user 'guest': connection limit (1) is reached"
    lab.connect(vhost="blue")
    first.disconnect()
    lab.connect()


def test_the_connections_of_a_user_are_limited(lab: Lab) -> None:
    lab.broker.users.set_limit(add_user(lab, "maria", "/"), "max-connections", 1)
    first = lab.connect(user="maria", password="secret")
    text = refusal(lab, "/", "maria", "secret")
    assert text == "connection refused for user 'maria': user connection limit (1) is reached"
    lab.connect()
    first.call(Connection.Close(200, "bye", 0, 0), channel=0)
    lab.connect(user="maria", password="secret")


def test_a_limit_of_0_refuses_every_connection(lab: Lab) -> None:
    lab.vhost.limits.set("max-connections", 0)
    assert refusal(lab, "/") == "access to vhost '/' refused for user 'guest': connection limit (0) is reached"


def test_clients_that_have_not_opened_a_vhost_do_not_count() -> None:
    lab = Lab(connection_max=1)
    for _ in range(3):
        lab.peer().send_bytes(b"AMQP\x00\x00\x09\x01")
    lab.connect()


def test_limits_are_checked_in_rabbitmqs_order() -> None:
    lab = Lab(connection_max=1)
    lab.broker.add_vhost("blue").limits.set("max-connections", 0)
    lab.broker.users.set_limit(add_user(lab, "maria"), "max-connections", 0)
    lab.connect()
    texts = [refusal(lab, "blue", "maria", "secret")]
    lab.broker.settings = Lab().broker.settings
    texts.append(refusal(lab, "blue", "maria", "secret"))
    texts.append(refusal(lab, "missing", "maria", "secret"))
    lab.broker.vhosts["blue"].limits.clear("max-connections")
    texts.append(refusal(lab, "blue", "maria", "secret"))
    lab.broker.users.clear_limit(lab.broker.users["maria"], "max-connections")
    texts.append(refusal(lab, "blue", "maria", "secret"))
    assert texts == [
        "connection refused: node connection limit (1) is reached",
        "access to vhost 'blue' refused for user 'maria': connection limit (0) is reached",
        "vhost missing not found",
        "connection refused for user 'maria': user connection limit (0) is reached",
        "access to vhost 'blue' refused for user 'maria'",
    ]


def test_methods_after_a_refusal_are_ignored(lab: Lab) -> None:
    peer = ask_for(lab, "nowhere")
    peer.expect(Connection.Close, channel=0)
    peer.send(Connection.Open("/"), channel=0)
    peer.expect_nothing()
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_dropped
