"""Restoring a broker from the committed journal of another one."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.access import Permission, TopicPermission, hash_password
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import PORTION_STEPS, Broker
from amqp_broker.broker.operations import restoring
from tests.broker_parts import (
    CollectingConsumer,
    new_broker,
    new_connection,
    new_exchange,
    new_message,
    new_queue,
    pulled,
)
from tests.memory_journal import MemoryJournal

DEEP: fields.Table = {"a": [1, {"b": fields.Timestamp(5), "c": None}], "d": fields.Float32(0.5), "e": b"\xff"}


def restarted(broker: Broker, **settings: Any) -> Broker:
    """Return a broker restored from the journal of this one, which is committed first."""
    journal = broker.journal
    assert isinstance(journal, MemoryJournal)
    journal.commit()
    later = MemoryJournal(journal.disk)
    found = new_broker(later, **settings, has_defaults=False)
    later.is_restoring = True
    assert restoring.restore(found, later.definitions_of)
    later.is_restoring = False
    return found


@pytest.fixture
def broker() -> Broker:
    return new_broker(MemoryJournal())


def test_an_empty_disk_restores_nothing() -> None:
    assert not restoring.restore(new_broker(has_defaults=False), MemoryJournal().definitions_of)


def test_restored_objects_are_not_written_to_the_journal_again(broker: Broker) -> None:
    new_queue(broker.vhosts["/"], is_durable=True)
    assert not restarted(broker).journal.has_work


def test_users_are_restored_with_passwords_tags_limits_and_permissions(broker: Broker) -> None:
    user = broker.users.add("ü", "secret", tags=("x", "monitoring"))
    broker.users.set_limit(user, "max-connections", 5)
    broker.users.set_permission(user, "/", Permission("a", "b", ""))
    broker.users.set_topic_permission(user, "/", "amq.topic", TopicPermission("^a", "^b"))
    found = restarted(broker).users["ü"]
    assert (found.password_hash, found.tags, found.limits.given) == (user.password_hash, user.tags, user.limits.given)
    assert (found.permissions, found.topic_permissions) == (user.permissions, user.topic_permissions)
    assert found.accepts(b"secret")


def test_a_password_hash_is_restored_with_its_algorithm(broker: Broker) -> None:
    user, md5 = broker.users.add("u", "other"), "rabbit_password_hashing_md5"
    broker.users.set_password_hash(user, hash_password(b"secret", b"salt", md5), md5)
    assert restarted(broker).users["u"].accepts(b"secret")


def test_a_stored_user_without_an_algorithm_has_sha_256(broker: Broker) -> None:
    key, value = journal_entries.of_user(broker.users.add("u", "secret"))
    del value["hashing_algorithm"]
    broker.journal.define(key, value)
    assert restarted(broker).users["u"].accepts(b"secret")


def test_permissions_removed_from_a_user_stay_removed(broker: Broker) -> None:
    user = broker.users.add("u", "p")
    broker.users.set_permission(user, "/", Permission())
    broker.users.set_topic_permission(user, "/", "amq.topic", TopicPermission())
    broker.users.clear_permission(user, "/")
    broker.users.clear_topic_permission(user, "/")
    broker.users.set_tags(user, ["a"])
    broker.users.set_tags(user, [])
    broker.users.change_password(user, "other")
    found = restarted(broker).users["u"]
    assert (found.permissions, found.topic_permissions, found.tags) == ({}, {}, ())
    assert found.accepts(b"other")


def test_a_deleted_user_is_gone_with_all_permissions(broker: Broker) -> None:
    user = broker.users.add("u", "p")
    broker.users.set_permission(user, "/", Permission())
    broker.users.set_topic_permission(user, "/", "x", TopicPermission())
    broker.users.delete("u")
    assert set(restarted(broker).users) == {"guest"}


def test_vhosts_are_restored_with_limits_and_policies(broker: Broker) -> None:
    vhost = broker.add_vhost("v")
    vhost.limits.set("max-queues", 3)
    vhost.policies.set(Policy("p", "^q", {"message-ttl": 5, "max-length": 7}, -3, "queues"))
    vhost.operator_policies.set(Policy("o", ".*", {"max-length": 2}, 1, "all"))
    new_queue(vhost, "q", is_durable=True)
    found = restarted(broker).vhosts["v"]
    assert found.limits.given == {"max-queues": 3}
    assert list(found.policies) == list(vhost.policies)
    assert list(found.operator_policies) == list(vhost.operator_policies)
    settings = found.queues["q"].settings
    assert (settings.message_ttl_ms, settings.length_max) == (5, 2)


def test_vhosts_are_restored_with_metadata_and_parameters(broker: Broker) -> None:
    metadata = Metadata("é", ("a", "b"), "quorum", True)
    vhost = broker.add_vhost("v")
    vhost.set_metadata(metadata)
    vhost.limits.replace({"max-queues": 3, "max-connections": -1})
    value = {"uri": ["amqp://"], "deep": {"a": {"b": [1, 2.5, None, True, "é"]}}}
    vhost.parameters.set("shovel", "away", value)
    vhost.parameters.set("shovel", "gone", value)
    vhost.parameters.clear("shovel", "gone")
    found = restarted(broker).vhosts["v"]
    assert found.metadata == metadata
    assert found.limits.given == {"max-queues": 3, "max-connections": -1}
    assert list(found.parameters) == list(vhost.parameters)
    assert found.parameters.get("shovel", "away") == value


def test_cleared_limits_are_still_a_parameter_after_a_restart(broker: Broker) -> None:
    limits = broker.add_vhost("v").limits
    limits.set("max-queues", 3)
    limits.clear("max-queues")
    found = restarted(broker).vhosts["v"]
    assert [(parameter.component, parameter.value) for parameter in found.parameters] == [("vhost-limits", [])]


def test_an_exchange_is_restored_with_its_creator(broker: Broker) -> None:
    broker.events.actor = "anna"
    new_exchange(broker.vhosts["/"], "x", is_durable=True)
    assert restarted(broker).vhosts["/"].exchanges["x"].creator == "anna"


def test_a_queue_is_restored_with_its_creator(broker: Broker) -> None:
    broker.events.actor = "anna"
    new_queue(broker.vhosts["/"], "q", is_durable=True)
    assert restarted(broker).vhosts["/"].queues["q"].creator == "anna"


def test_global_parameters_and_the_cluster_id_are_restored(broker: Broker) -> None:
    broker.global_parameters.set("cluster_name", "é")
    broker.global_parameters.set("list", [1, {"a": None}])
    broker.global_parameters.set("gone", 1)
    broker.global_parameters.clear("gone")
    cluster_id = broker.cluster_id
    found = restarted(broker)
    assert dict(found.global_parameters) == {
        "cluster_name": "é",
        "list": [1, {"a": None}],
        "internal_cluster_id": cluster_id,
    }
    assert (found.cluster_name, found.cluster_id) == ("é", cluster_id)


def test_entries_without_metadata_are_restored() -> None:
    journal = MemoryJournal()
    broker = new_broker(journal)
    journal.define(("vhost", "old"), {"limits": {"max-queues": 3}})
    password_hash = broker.users["guest"].password_hash
    journal.define(("user", "old"), {"password_hash": password_hash, "tags": ["a"], "limits": {}})
    found = restarted(broker)
    assert found.vhosts["old"].metadata == Metadata()
    assert found.vhosts["old"].limits.given == {"max-queues": 3}
    assert found.users["old"].accepts(b"guest")


def test_cleared_policies_and_limits_stay_cleared(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    vhost.limits.set("max-queues", 3)
    vhost.limits.clear("max-queues")
    vhost.policies.set(Policy("p", ".*", {"message-ttl": 5}))
    vhost.policies.clear("p")
    vhost.operator_policies.set(Policy("o", ".*", {"message-ttl": 5}))
    vhost.operator_policies.clear("o")
    found = restarted(broker).vhosts["/"]
    assert (found.limits.given, list(found.policies), list(found.operator_policies)) == ({}, [], [])


def test_a_deleted_vhost_leaves_nothing(broker: Broker) -> None:
    vhost = broker.add_vhost("v")
    broker.users.set_permission(broker.users["guest"], "v", Permission())
    broker.users.set_topic_permission(broker.users["guest"], "v", "x", TopicPermission())
    vhost.policies.set(Policy("p", ".*", {"message-ttl": 5}))
    vhost.parameters.set("shovel", "s", {})
    exchange = new_exchange(vhost, "x", is_durable=True)
    queue = new_queue(vhost, is_durable=True)
    vhost.bind(exchange, queue, "", {})
    queue.push(new_message(b"a", delivery_mode=2))
    broker.delete_vhost("v")
    found = restarted(broker)
    assert set(found.vhosts) == {"/"}
    journal = found.journal
    assert isinstance(journal, MemoryJournal)
    assert [key for key in journal.disk.definitions if "v" in key] == []
    assert (journal.disk.messages, journal.disk.states) == ({}, {})


def test_only_durable_exchanges_are_restored(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    arguments = {**DEEP, "alternate-exchange": "other", "x-delayed-type": "topic"}
    for kind in ("direct", "topic", "x-delayed-message", "x-consistent-hash"):
        new_exchange(vhost, kind, kind, is_durable=True, is_auto_delete=True, is_internal=True, arguments=arguments)
    new_exchange(vhost, "transient")
    new_exchange(vhost, "deleted", is_durable=True)
    vhost.delete_exchange("deleted", False)
    found = restarted(broker).vhosts["/"]
    assert set(found.exchanges) == set(vhost.exchanges) - {"transient"}
    for kind in ("direct", "topic", "x-delayed-message", "x-consistent-hash"):
        one = found.exchanges[kind]
        assert (one.type, one.is_durable, one.is_auto_delete, one.is_internal) == (kind, True, True, True)
        assert fields.encode_table(one.arguments) == fields.encode_table(arguments)


def test_only_durable_queues_are_restored(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    owner = new_connection()
    new_queue(vhost, "kept", is_durable=True, is_auto_delete=True, arguments={**DEEP, "x-message-ttl": 5})
    new_queue(vhost, "quorum", is_durable=True, arguments={"x-queue-type": "quorum"})
    new_queue(vhost, "priority", is_durable=True, arguments={"x-max-priority": 3})
    new_queue(vhost, "transient")
    new_queue(vhost, "exclusive", is_durable=True, owner=owner, connection=owner)
    vhost.remove_queue(new_queue(vhost, "deleted", is_durable=True))
    found = restarted(broker).vhosts["/"].queues
    assert set(found) == {"kept", "quorum", "priority"}
    for name, queue in found.items():
        assert type(queue) is type(vhost.queues[name])
        assert (queue.is_durable, queue.is_auto_delete) == (True, vhost.queues[name].is_auto_delete)
        assert fields.encode_table(queue.arguments) == fields.encode_table(vhost.queues[name].arguments)


def test_only_bindings_between_durable_ends_are_restored(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    source, other = new_exchange(vhost, "s", "topic", is_durable=True), new_exchange(vhost, "o", is_durable=True)
    queue, transient = new_queue(vhost, "q", is_durable=True), new_queue(vhost, "t")
    long = "ü" * 127
    vhost.bind(source, queue, long, {"x": 1})
    vhost.bind(source, queue, long, {"x": 2})
    vhost.bind(source, other, "#", {})
    vhost.bind(source, transient, "#", {})
    vhost.bind(source, queue, "gone", {})
    gone = source.binding(queue, "gone", {})
    assert gone is not None
    vhost.unbind(gone)
    found = restarted(broker).vhosts["/"]
    known = {(key[0].name, key[1], key[2]) for key in found.exchanges["s"].bindings}
    assert known == {(key[0].name, key[1], key[2]) for key in source.bindings if key[0] is not transient}
    assert len(known) == 3
    assert found.route(found.exchanges["s"], ["a.b"], {}, None)[0] == []


def test_messages_are_restored_in_order_and_delivered_ones_as_redelivered(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    kinds: dict[str, fields.Table] = {"c": {}, "p": {"x-max-priority": 5}, "q": {"x-queue-type": "quorum"}}
    for name, arguments in kinds.items():
        queue = new_queue(vhost, name, is_durable=True, arguments=arguments)
        for number, priority in enumerate((1, 9, 1, 0, 9)):
            queue.push(new_message(b"%d" % number, delivery_mode=2, priority=priority))
        for _ in range(2):
            queue.pull()
    found = restarted(broker).vhosts["/"].queues

    def drained(name: str) -> list[tuple[bytes, bool]]:
        pulled = []
        while (one := found[name].pull()) is not None:
            pulled.append((one[0].body, one[2]))
        return pulled

    assert drained("c") == [(b"0", True), (b"1", True), (b"2", False), (b"3", False), (b"4", False)]
    assert drained("p") == [(b"1", True), (b"4", True), (b"0", False), (b"2", False), (b"3", False)]
    assert sorted(drained("q")) == [(b"0", False), (b"1", True), (b"2", False), (b"3", False), (b"4", True)]


def test_a_quorum_queue_keeps_its_delivery_counts_after_a_restart(broker: Broker) -> None:
    queue = new_queue(broker.vhosts["/"], is_durable=True, arguments={"x-queue-type": "quorum"})
    queue.push(new_message(b"a", delivery_mode=1))
    for _ in range(3):
        pulled = queue.pull()
        assert pulled is not None
        queue.unacked_count += 1
        queue.requeue(pulled[1], pulled[0])
    queue.pull()
    found = restarted(broker).vhosts["/"].queues["q"]
    assert found.ready_count == 1
    pulled = found.pull()
    assert pulled is not None
    assert pulled[2]
    headers = found.as_delivered(pulled[0], pulled[1]).properties().headers
    assert headers == {"x-delivery-count": 3}


def test_a_restart_does_not_increase_the_count_of_a_returned_message(broker: Broker) -> None:
    queue = new_queue(broker.vhosts["/"], is_durable=True, arguments={"x-queue-type": "quorum"})
    queue.push(new_message(b"a", delivery_mode=2))
    pulled = queue.pull()
    assert pulled is not None
    queue.unacked_count += 1
    queue.requeue(pulled[1], pulled[0])
    found = restarted(broker).vhosts["/"].queues["q"]
    pulled = found.pull()
    assert pulled is not None
    assert found.as_delivered(pulled[0], pulled[1]).properties().headers == {"x-delivery-count": 1}


def test_messages_that_expired_while_the_broker_was_stopped_are_dead_lettered_at_once(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    new_queue(vhost, "dead", is_durable=True)
    arguments = {"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    queue = new_queue(vhost, "q", is_durable=True, arguments=arguments)
    broker.tick(1_000_000)
    queue.push(new_message(b"a", delivery_mode=2))
    broker.tick(1_000_050)
    queue.push(new_message(b"b", delivery_mode=2))
    found = restarted(broker, now=1_000_100)
    assert [found.vhosts["/"].queues[name].ready_count for name in ("q", "dead")] == [1, 1]
    found.tick(1_000_150)
    assert [found.vhosts["/"].queues[name].ready_count for name in ("q", "dead")] == [0, 2]


def test_delayed_messages_are_restored_with_their_due_times(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    exchange = new_exchange(vhost, "x", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "fanout"})
    vhost.bind(exchange, new_queue(vhost, is_durable=True), "", {})
    broker.tick(1000)
    for delay in (500, 100):
        message = new_message(b"%d" % delay, headers={"x-delay": delay})
        assert vhost.route(exchange, [""], {"x-delay": delay}, message) == ([], True)
    found = restarted(broker, now=1000)
    queue = found.vhosts["/"].queues["q"]
    found.tick(1100)
    assert [message.body for message in queue.messages()] == [b"100"]
    found = restarted(found, now=1100)
    found.tick(1500)
    assert [message.body for message in found.vhosts["/"].queues["q"].messages()] == [b"500"]


def test_a_policy_applies_to_predeclared_exchanges_again(broker: Broker) -> None:
    broker.vhosts["/"].policies.set(Policy("p", "^amq.direct$", {"alternate-exchange": "amq.fanout"}, 0, "exchanges"))
    assert restarted(broker).vhosts["/"].exchanges["amq.direct"].alternate == "amq.fanout"


def test_a_policy_is_restored_although_the_profile_would_refuse_it_now() -> None:
    broker = new_broker(MemoryJournal(), compat="4.2")
    broker.vhosts["/"].policies.set(Policy("p", "q", {"queue-master-locator": "client-local", "max-length": 5}))
    found = restarted(broker, compat="4.3").vhosts["/"]
    assert found.policies["p"].definition == {"queue-master-locator": "client-local", "max-length": 5}
    assert new_queue(found, "q", is_durable=True).settings.length_max == 5


def test_messages_beyond_a_limit_are_dead_lettered_when_all_queues_and_bindings_are_restored(
    broker: Broker,
) -> None:
    vhost = broker.vhosts["/"]
    vhost.policies.set(Policy("p", "^q$", {"max-length": 1, "dead-letter-exchange": "x"}))
    queue = new_queue(vhost, "q", is_durable=True)
    exchange = new_exchange(vhost, "x", is_durable=True)
    vhost.bind(exchange, new_queue(vhost, "dead", is_durable=True), "", {})
    queue.push(new_message(b"a", delivery_mode=2))
    queue.pull()
    queue.push(new_message(b"b", delivery_mode=2))
    queues = restarted(broker).vhosts["/"].queues
    assert [[message.body for message in queues[name].messages()] for name in ("q", "dead")] == [[b"b"], [b"a"]]


def test_messages_returned_to_a_quorum_queue_without_a_limit_are_redelivered_after_a_restart(broker: Broker) -> None:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": -1}
    queue = new_queue(broker.vhosts["/"], is_durable=True, arguments=arguments)
    queue.push(new_message(b"a"))
    collector = CollectingConsumer(queue, prefetch=1).start()
    queue.unsubscribe(collector)
    collector.give_back(0)
    assert pulled(restarted(broker).vhosts["/"].queues["q"])[0][2]


@pytest.mark.parametrize("deleted", ["queue", "exchange"])
def test_a_restart_finishes_a_deletion(broker: Broker, deleted: str) -> None:
    vhost = broker.vhosts["/"]
    first = new_exchange(vhost, "first", "direct", is_durable=True, is_auto_delete=True)
    exchange = new_exchange(vhost, "x", "direct", is_durable=True, is_auto_delete=deleted == "queue")
    bare = new_exchange(vhost, "bare", "direct", is_durable=True, is_auto_delete=True)
    queue, other = new_queue(vhost, is_durable=True), new_queue(vhost, "other", is_durable=True)
    queue.push(new_message(b"m", delivery_mode=2))
    vhost.bind(first, exchange, "", {})
    vhost.bind(vhost.exchange("amq.direct"), queue, "k", {})
    vhost.bind(vhost.exchange("amq.direct"), other, "k", {})
    for number in range(3 * PORTION_STEPS):
        vhost.bind(exchange, queue, f"k{number}", {})
    if deleted == "queue":
        vhost.remove_queue(queue)
    else:
        vhost.delete_exchange("x", if_unused=False)
    assert queue.incoming
    found = restarted(broker)
    again = found.vhosts["/"]
    kept = {"other"} if deleted == "queue" else {"q", "other"}
    assert set(again.queues) == kept
    assert [name for name in ("first", "x", "bare") if name in again.exchanges] == [bare.name]
    assert {name for name, one in again.queues.items() if one.incoming} == kept
    journal = found.journal
    assert isinstance(journal, MemoryJournal)
    journal.commit()
    assert {key[4] for key in journal.disk.definitions if key[0] == "binding"} == kept
    assert set(restarted(found).vhosts["/"].exchanges) == set(again.exchanges)
