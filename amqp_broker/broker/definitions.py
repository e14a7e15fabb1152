"""What is remembered of each kind of object that is no message, and how it is declared anew from that.

A definition is a key (kind and names) and a field table; field tables of clients are in it as octets, since tables
may not be nested deeper than they came. Both directions stand side by side: what one writes, the
other reads. Objects are restored in the order of `KINDS`, so that each finds what it refers to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from amqp_broker import fields
from amqp_broker.broker.access import SHA256, Permission, TopicPermission, User
from amqp_broker.broker.exchange import Binding, Exchange
from amqp_broker.broker.exchange_types import EXCHANGE_TYPES
from amqp_broker.broker.journal import DefinitionKey
from amqp_broker.broker.metadata import Metadata
from amqp_broker.broker.policies import Policy

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost

Definition: TypeAlias = "tuple[DefinitionKey, dict[str, Any]]"


PARAMETER: Final = "parameter"
GLOBAL_PARAMETER: Final = "global_parameter"


def of_vhost(vhost: VHost) -> Definition:
    metadata = vhost.metadata
    value = {
        "limits": dict(vhost.limits.given),
        "description": metadata.description,
        "tags": list(metadata.tags),
        "default_queue_type": metadata.default_queue_type,
        "is_protected_from_deletion": metadata.is_protected_from_deletion,
    }
    return ("vhost", vhost.name), value


def of_parameter(vhost: VHost, component: str, name: str, value: Any) -> Definition:
    return (PARAMETER, vhost.name, component, name), {"value": json.dumps(value)}


def of_global_parameter(name: str, value: Any) -> Definition:
    return (GLOBAL_PARAMETER, name), {"value": json.dumps(value)}


def of_user(user: User) -> Definition:
    value = {
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        "tags": sorted(user.tags),
        "limits": dict(user.limits.given),
    }
    return ("user", user.name), value


def of_permission(user: User, vhost: str, permission: Permission) -> Definition:
    value = {"configure": permission.configure, "write": permission.write, "read": permission.read}
    return ("permission", user.name, vhost), value


def of_topic_permission(user: User, vhost: str, exchange: str, permission: TopicPermission) -> Definition:
    return ("topic_permission", user.name, vhost, exchange), {"write": permission.write, "read": permission.read}


def of_policy(kind: str, vhost: VHost, policy: Policy) -> Definition:
    """`kind` is `policy` or `operator_policy`."""
    value = {
        "pattern": policy.pattern,
        "definition": fields.encode_table(dict(policy.definition)),
        "priority": policy.priority,
        "apply_to": policy.apply_to,
    }
    return (kind, vhost.name, policy.name), value


def of_exchange(exchange: Exchange) -> Definition:
    value = {
        "type": exchange.type,
        "auto_delete": exchange.is_auto_delete,
        "internal": exchange.is_internal,
        "range": exchange.range_id,
        "arguments": fields.encode_table(exchange.arguments),
    }
    return ("exchange", exchange.vhost, exchange.name), value


def of_queue(queue: Queue) -> Definition:
    value = {
        "auto_delete": queue.is_auto_delete,
        "arguments": fields.encode_table(queue.arguments),
        "range": queue.range_id,
    }
    return ("queue", queue.vhost.name, queue.name), value


def of_binding(binding: Binding) -> Definition:
    destination = binding.destination
    kind = "exchange" if isinstance(destination, Exchange) else "queue"
    # Arguments are a part of its identity.
    arguments = binding.key[2].hex()
    key = (
        "binding",
        binding.source.vhost,
        binding.source.name,
        kind,
        destination.name,
        binding.routing_key,
        arguments,
    )
    return key, {"arguments": fields.encode_table(binding.arguments)}


def _restore_vhost(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    vhost = broker.add_vhost(key[1])
    for name, limit in value["limits"].items():
        vhost.limits.set(name, limit)
    # What older versions wrote has no metadata.
    vhost.metadata = Metadata(
        value.get("description", ""),
        tuple(value.get("tags", ())),
        value.get("default_queue_type"),
        value.get("is_protected_from_deletion", False),
    )


def _restore_parameter(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, component, name = key
    broker.vhosts[vhost].parameters.values[component, name] = json.loads(value["value"])


def _restore_global_parameter(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    broker.global_parameters.values[key[1]] = json.loads(value["value"])


def _restore_user(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    user = User(key[1], bytes(value["password_hash"]), frozenset(value["tags"]))
    # Before there was a choice it was this one.
    user.hashing_algorithm = value.get("hashing_algorithm", SHA256)
    for name, limit in value["limits"].items():
        user.limits.set(name, limit)
    broker.users[user.name] = user


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
    policies.put(policy)


def _restore_exchange(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, name = key
    broker.vhosts[vhost].add_exchange(
        name,
        EXCHANGE_TYPES[value["type"]],
        is_durable=True,
        is_auto_delete=value["auto_delete"],
        is_internal=value["internal"],
        range_id=value["range"],
        arguments_=_table(value["arguments"]),
    )


def _restore_queue(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost, name = key
    broker.vhosts[vhost].add_queue(
        name,
        is_durable=True,
        is_auto_delete=value["auto_delete"],
        owner=None,
        arguments_=_table(value["arguments"]),
        range_id=value["range"],
    )


def _restore_binding(broker: Broker, key: DefinitionKey, value: dict[str, Any]) -> None:
    _, vhost_name, source, kind, name, routing_key, _ = key
    vhost = broker.vhosts[vhost_name]
    destination = vhost.exchanges[name] if kind == "exchange" else vhost.queues[name]
    vhost.bind(vhost.exchanges[source], destination, routing_key, _table(value["arguments"]))


def _table(octets: bytes) -> fields.Table:
    return fields.decode_table(octets)[0]


KINDS: Final[dict[str, Callable[[Broker, DefinitionKey, dict[str, Any]], None]]] = {
    "vhost": _restore_vhost,
    "user": _restore_user,
    PARAMETER: _restore_parameter,
    GLOBAL_PARAMETER: _restore_global_parameter,
    "permission": _restore_permission,
    "topic_permission": _restore_topic_permission,
    "policy": _restore_policy,
    "operator_policy": _restore_policy,
    "exchange": _restore_exchange,
    "queue": _restore_queue,
    "binding": _restore_binding,
}


def restore(broker: Broker, definitions_of: Callable[[str], Iterable[Definition]]) -> bool:
    """Declare in an empty broker all that is remembered; returns whether that is anything."""
    has_any = False
    for kind, restore_one in KINDS.items():
        for key, value in definitions_of(kind):
            restore_one(broker, key, value)
            has_any = True
    for vhost in broker.vhosts.values():
        vhost.on_restored()
    return has_any
