"""Restores the objects of a broker from the entries of its journal (`journal_entries.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.broker.admin.access import SHA256, Permission, TopicPermission, User
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.exchanges.exchange import INTERNAL_CREATOR, ExchangeDeclaration
from amqp_broker.broker.journal_entries import FEATURE_FLAG, GLOBAL_PARAMETER, PARAMETER, JournalEntry
from amqp_broker.broker.queues.queue import QueueDeclaration

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.durability.journal import DefinitionKey


def _restore_vhost(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    vhost = broker.add_vhost(key[1])
    # Entries of older versions have neither lists_limits nor metadata.
    vhost.limits.restore(value["limits"], value.get("lists_limits", bool(value["limits"])))
    vhost.metadata = Metadata(
        value.get("description", ""),
        tuple(value.get("tags", ())),
        value.get("default_queue_type"),
        value.get("is_protected_from_deletion", False),
    )
    vhost.is_partial = value.get("is_partial", False)
    if vhost.is_partial:
        broker.journal.report_damage(
            f"the broker ended while a snapshot was restored to {vhost}, which has only a part of it: restore it again"
        )


def _restore_parameter(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, component, name = key
    broker.vhosts[vhost].parameters.values[component, name] = json.loads(value["value"])


def _restore_global_parameter(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    broker.global_parameters.values[key[1]] = json.loads(value["value"])


def _restore_feature(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    broker.feature_flags.add(key[1])


def _restore_user(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    user = User(key[1], bytes(value["password_hash"]), tuple(value["tags"]))
    # Older versions had only this algorithm.
    user.hashing_algorithm = value.get("hashing_algorithm", SHA256)
    for name, limit in value["limits"].items():
        user.limits.set(name, limit)
    broker.users.restore(user)


def _restore_permission(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, user, vhost = key
    broker.users[user].permissions[vhost] = Permission(**value)


def _restore_topic_permission(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, user, vhost, exchange = key
    broker.users[user].topic_permissions[vhost, exchange] = TopicPermission(**value)


def _restore_policy(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    kind, vhost, name = key
    policy = Policy(name, value["pattern"], _table(value["definition"]), value["priority"], value["apply_to"])
    policies = broker.vhosts[vhost].policies if kind == "policy" else broker.vhosts[vhost].operator_policies
    policies.restore(policy)


def _restore_exchange(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, name = key
    declaration = ExchangeDeclaration(
        name,
        value["type"],
        _table(value["arguments"]),
        is_durable=True,
        is_auto_delete=value["auto_delete"],
        is_internal=value["internal"],
    )
    # Entries of older versions have no creator.
    broker.vhosts[vhost].add_exchange(declaration, value["range"], value.get("creator", INTERNAL_CREATOR))


def _restore_queue(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, name = key
    declaration = QueueDeclaration(
        name, _table(value["arguments"]), is_durable=True, is_auto_delete=value["auto_delete"]
    )
    # Entries of older versions have no creator.
    broker.vhosts[vhost].add_queue(declaration, value["range"], value.get("creator", ""))


def _restore_deletion(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, kind, name = key
    broker.vhosts[vhost].deletions.resume(kind, name)


def _restore_binding(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost_name, source, kind, name, routing_key, _ = key
    vhost = broker.vhosts[vhost_name]
    if vhost.deletions.are_resumed(("exchange", source), (kind, name)):
        broker.journal.undefine(key)
        vhost.deletions.on_lost_binding(source)
        return
    destination = vhost.exchanges[name] if kind == "exchange" else vhost.queues[name]
    vhost.bind(vhost.exchanges[source], destination, routing_key, _table(value["arguments"]))


def _table(octets: bytes) -> fields.Table:
    return fields.decode_table(octets)[0]


# Each object comes after those that it refers to.
KINDS: Final[dict[str, Callable[[Broker, DefinitionKey, dict[str, Any]], None]]] = {
    "vhost": _restore_vhost,
    "user": _restore_user,
    PARAMETER: _restore_parameter,
    GLOBAL_PARAMETER: _restore_global_parameter,
    FEATURE_FLAG: _restore_feature,
    "permission": _restore_permission,
    "topic_permission": _restore_topic_permission,
    "policy": _restore_policy,
    "operator_policy": _restore_policy,
    "exchange": _restore_exchange,
    "queue": _restore_queue,
    "deletion": _restore_deletion,
    "binding": _restore_binding,
}


def restore(broker: Broker, definitions_of: Callable[[str], Iterable[JournalEntry]]) -> bool:
    """Declare all objects of the journal in an empty broker; return whether there are any."""
    has_any = False
    for kind, restore_one in KINDS.items():
        for key, value in definitions_of(kind):
            restore_one(broker, key, value)
            has_any = True
    for vhost in broker.vhosts.values():
        vhost.on_restored()
    return has_any
