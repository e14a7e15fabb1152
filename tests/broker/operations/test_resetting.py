from __future__ import annotations

from typing import Any

from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.operations.resetting import reset, reset_vhost, resetting_vhost
from amqp_broker.management.documents.exporting import export
from tests.broker_parts import bind, new_exchange, new_queue, push
from tests.peer import Lab
from tests.stepping import counted


def fill(broker: Broker, name: str) -> None:
    vhost = broker.vhosts[name]
    queue = new_queue(vhost)
    push(queue, b"x")
    exchange = new_exchange(vhost, "e", is_auto_delete=True)
    bind(exchange, queue, vhost)
    bind(vhost.exchanges["amq.topic"], vhost.exchanges["amq.fanout"], vhost, "#")
    vhost.policies.set(Policy("p", "", {"max-length": 5}))
    vhost.operator_policies.set(Policy("o", "", {"max-length": 5}))
    vhost.limits.set("max-queues", 5)
    vhost.parameters.set("federation-upstream", "up", {"uri": "amqp://x"})
    vhost.tracing.start()


def comparable(broker: Broker) -> dict[str, Any]:
    document = export(broker)
    for user in document["users"]:
        del user["password_hash"]
    return document


def test_a_reset_broker_equals_a_new_one(lab: Lab) -> None:
    broker = lab.broker
    expected = comparable(Lab().broker)
    broker.users.add("alice", "a")
    broker.add_vhost("v").set_metadata(Metadata("d", is_protected_from_deletion=True))
    broker.users.set_permission(broker.users["alice"], "v", Permission())
    broker.users.change_password(broker.users["guest"], "other")
    broker.users.set_tags(broker.users["guest"], [])
    broker.global_parameters.set("mine", 1)
    for name in ("/", "v"):
        fill(broker, name)
    reset(broker)
    assert comparable(broker) == expected
    assert broker.users["guest"].accepts(b"guest")
    assert broker.vhosts["/"].trace is None


def test_a_reset_restores_a_deleted_default_vhost_and_user(lab: Lab) -> None:
    broker = lab.broker
    broker.delete_vhost("/")
    broker.users.delete("guest")
    reset(broker)
    assert comparable(broker) == comparable(Lab().broker)
    assert isinstance(broker.users["guest"], User)


def test_a_reset_vhost_keeps_its_permissions_and_metadata(lab: Lab) -> None:
    broker = lab.broker
    broker.add_vhost("v", Metadata("d"))
    broker.users.set_permission(broker.users["guest"], "v", Permission())
    fill(broker, "v")
    fill(broker, "/")
    reset_vhost(broker.vhosts["v"])
    document = export(broker, "v")
    assert [document[key] for key in ("queues", "exchanges", "bindings", "policies", "parameters")] == [[]] * 5
    assert broker.vhosts["v"].metadata.description == "d"
    assert broker.users["guest"].can_open("v")
    assert list(broker.vhosts["/"].queues) == ["q"]
    assert broker.vhosts["/"].exchanges["amq.topic"].bindings


def test_a_reset_closes_clients_with_the_reason(lab: Lab) -> None:
    from pamqp import commands

    peer = lab.connect()
    reset_vhost(lab.vhost)
    close = peer.expect(commands.Connection.Close, 0)
    assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - the broker is reset")


def test_a_vhost_is_reset_in_steps(lab: Lab) -> None:
    peer = lab.connect()
    for number in range(10):
        peer.declare(f"q{number}")
    vhost = lab.vhost

    def look() -> None:
        assert vhost.is_down
        assert 0 < len(vhost.queues) < 10

    steps, _ = counted(resetting_vhost(vhost), {3: look})
    assert steps >= 10
    assert (vhost.queues, vhost.is_down) == ({}, False)
    lab.connect().declare("q")
