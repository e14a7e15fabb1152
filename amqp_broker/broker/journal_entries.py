"""The journal's entries for objects other than messages: each has a key and a field table.

A key is a tuple of the kind and the names of an object.
Field tables of clients are kept encoded, since tables must not be nested deeper than they were received.
`operations/restoring.py` reads the entries.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.exchange import Binding, Exchange

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import Permission, TopicPermission, User
    from amqp_broker.broker.admin.limits import Limits
    from amqp_broker.broker.admin.metadata import Metadata
    from amqp_broker.broker.admin.policies import Policy
    from amqp_broker.broker.durability.journal import DefinitionKey
    from amqp_broker.broker.queues.queue import Queue

JournalEntry: TypeAlias = "tuple[DefinitionKey, dict[str, Any]]"

PARAMETER: Final = "parameter"
GLOBAL_PARAMETER: Final = "global_parameter"
FEATURE_FLAG: Final = "feature_flag"


def of_vhost(name: str, limits: Limits, metadata: Metadata, *, is_partial: bool = False) -> JournalEntry:
    value: dict[str, Any] = {
        "limits": dict(limits.given),
        "lists_limits": limits.is_listed,
        "description": metadata.description,
        "tags": list(metadata.tags),
        "default_queue_type": metadata.default_queue_type,
        "is_protected_from_deletion": metadata.is_protected_from_deletion,
    }
    if is_partial:
        value["is_partial"] = True
    return ("vhost", name), value


def of_parameter(vhost: str, component: str, name: str, value: Any) -> JournalEntry:
    return (PARAMETER, vhost, component, name), {"value": json.dumps(value)}


def of_global_parameter(name: str, value: Any) -> JournalEntry:
    return (GLOBAL_PARAMETER, name), {"value": json.dumps(value)}


def of_feature(name: str) -> JournalEntry:
    return (FEATURE_FLAG, name), {}


def of_user(user: User) -> JournalEntry:
    value = {
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        "tags": list(user.tags),
        "limits": dict(user.limits.given),
    }
    return ("user", user.name), value


def of_permission(user: User, vhost: str, permission: Permission) -> JournalEntry:
    value = {"configure": permission.configure, "write": permission.write, "read": permission.read}
    return ("permission", user.name, vhost), value


def of_topic_permission(user: User, vhost: str, exchange: str, permission: TopicPermission) -> JournalEntry:
    return ("topic_permission", user.name, vhost, exchange), {"write": permission.write, "read": permission.read}


def of_policy(kind: str, vhost: str, policy: Policy) -> JournalEntry:
    """Return the entry of a policy; `kind` is `policy` or `operator_policy`."""
    value = {
        "pattern": policy.pattern,
        "definition": fields.encode_table(dict(policy.definition)),
        "priority": policy.priority,
        "apply_to": policy.apply_to,
    }
    return (kind, vhost, policy.name), value


def of_exchange(exchange: Exchange) -> JournalEntry:
    value = {
        "type": exchange.type,
        "auto_delete": exchange.is_auto_delete,
        "internal": exchange.is_internal,
        "creator": exchange.creator,
        "range": exchange.range_id,
        "arguments": fields.encode_table(exchange.arguments),
    }
    return ("exchange", exchange.vhost, exchange.name), value


def of_queue(queue: Queue) -> JournalEntry:
    value = {
        "auto_delete": queue.is_auto_delete,
        "creator": queue.creator,
        "arguments": fields.encode_table(queue.arguments),
        "range": queue.range_id,
    }
    return ("queue", queue.vhost.name, queue.name), value


def of_deletion(vhost: str, kind: str, name: str) -> JournalEntry:
    """Return the entry of the deletion of an object ("queue", "exchange") that has bindings left."""
    return ("deletion", vhost, kind, name), {}


def of_binding(binding: Binding) -> JournalEntry:
    return key_of_binding(binding), {"arguments": fields.encode_table(binding.arguments)}


def key_of_binding(binding: Binding) -> DefinitionKey:
    destination = binding.destination
    kind = "exchange" if isinstance(destination, Exchange) else "queue"
    # The arguments are part of a binding's identity.
    arguments = binding.key[2].hex()
    return "binding", binding.source.vhost, binding.source.name, kind, destination.name, binding.routing_key, arguments
