"""Exporting definitions: everything that is declared, in RabbitMQ's JSON document.

Source: RabbitMQ, "Schema Definition Export and Import"; rabbit_mgmt_wm_definitions.erl.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import Any

from amqp_broker.broker.admin.access import Permission, TopicPermission, User, encode_hash
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.exchanges.exchange import Binding, Exchange
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.runtime_parameters import Parameter
from amqp_broker.broker.scheduling.portions import Steps, finished, popping
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.documents.importing import INTERNAL, RESERVED
from amqp_broker.management.documents.values import json_of, text_of


def export(broker: Broker, vhost: str | None = None) -> dict[str, Any]:
    """Return the definitions of the broker or of a vhost, without the objects that every broker has.

    Raise DoesNotExist for an unknown vhost.
    """
    return finished(exporting(broker, vhost))


def exporting(broker: Broker, vhost: str | None = None) -> Steps[dict[str, Any]]:
    """Do `export` in steps. It has the objects that are there at the first step, whatever becomes of them."""
    if vhost is not None:
        return (yield from _export_vhost(broker, broker.vhost(vhost)))
    vhosts = list(broker.vhosts.values())
    document = {
        **_version(broker),
        "rabbitmq_definition_format": "cluster",
        "original_cluster_name": broker.cluster_name,
        "explanation": f"Definitions of cluster '{broker.cluster_name}'",
        "users": [user_row(user) for user in broker.users.values()],
        "vhosts": [_vhost(vhost) for vhost in vhosts],
        "permissions": _permissions(broker),
        "topic_permissions": _topic_permissions(broker),
        "parameters": [parameter for vhost in vhosts for parameter in _parameters(vhost)],
        "global_parameters": [
            {"name": name, "value": value} for name, value in broker.global_parameters if not name.startswith(INTERNAL)
        ],
        "policies": [policy_row(vhost, policy) for vhost in vhosts for policy in vhost.policies],
    }
    return document | (yield from _topology(vhosts))


def _topology(vhosts: list[VHost]) -> Steps[dict[str, Disposable[dict[str, Any]]]]:
    """Return the queues, exchanges and bindings of some vhosts."""
    queues = deque(chain.from_iterable(map(_queues, vhosts)))
    exchanges = [(vhost, exchange) for vhost in vhosts for exchange in _exchanges(vhost)]
    bindings = deque(chain.from_iterable(map(_bindings, vhosts)))
    rows = {kind: Disposable[dict[str, Any]]() for kind in ("queues", "exchanges", "bindings")}
    release = vhosts[0].broker.profile.release if vhosts else (0, 0)
    for queue in popping(queues):
        rows["queues"].append(_queue(queue))
        yield
    for vhost, exchange in exchanges:
        rows["exchanges"].append(_exchange(vhost, exchange))
        yield
    for binding in popping(bindings):
        if _is_exported(binding, release):
            rows["bindings"].append(_binding(binding))
        yield
    return rows


def _export_vhost(broker: Broker, vhost: VHost) -> Steps[dict[str, Any]]:
    metadata, limits = metadata_of(vhost), dict(vhost.limits.given)
    items = {
        "parameters": _parameters(vhost),
        "policies": [policy_row(vhost, policy) for policy in vhost.policies],
        **(yield from _topology([vhost])),
    }
    for item in (item for listed in items.values() for item in listed):
        del item["vhost"]
        yield
    return {
        **_version(broker),
        "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": vhost.name,
        "explanation": f"Definitions of virtual host '{vhost.name}'",
        "metadata": metadata,
        "description": metadata["description"],
        "limits": limits,
        **items,
    }


def _vhost(vhost: VHost) -> dict[str, Any]:
    metadata = metadata_of(vhost)
    if vhost.broker.profile.release < (4, 3):
        return {"name": vhost.name, **metadata, "metadata": metadata}
    return {"name": vhost.name, "limits": dict(vhost.limits.given), "metadata": metadata}


def metadata_of(vhost: VHost) -> dict[str, Any]:
    """Return the metadata of a vhost; the default queue type is the node's if none is set."""
    metadata = vhost.metadata
    row = {
        "description": metadata.description,
        "tags": list(metadata.tags),
        "default_queue_type": vhost.default_queue_type,
    }
    return {**row, "protected_from_deletion": True} if metadata.is_protected_from_deletion else row


def _version(broker: Broker) -> dict[str, str]:
    version = broker.profile.version
    return {
        "rabbit_version": version,
        "rabbitmq_version": version,
        "product_name": "RabbitMQ",
        "product_version": version,
    }


def user_row(user: User) -> dict[str, Any]:
    """Return the row of a user in definitions and in the HTTP API."""
    return {
        "name": user.name,
        "password_hash": encode_hash(user.password_hash),
        "hashing_algorithm": user.hashing_algorithm,
        "tags": list(user.tags),
        "limits": dict(user.limits.given),
    }


def permission_row(user: User, vhost: str, permission: Permission) -> dict[str, Any]:
    """Return the row of a permission in definitions and in the HTTP API."""
    return {
        "user": user.name,
        "vhost": vhost,
        "configure": permission.configure,
        "write": permission.write,
        "read": permission.read,
    }


def topic_permission_row(user: User, vhost: str, exchange: str, permission: TopicPermission) -> dict[str, Any]:
    """Return the row of a topic permission in definitions and in the HTTP API."""
    return {
        "user": user.name,
        "vhost": vhost,
        "exchange": exchange,
        "write": permission.write,
        "read": permission.read,
    }


def _permissions(broker: Broker) -> list[dict[str, Any]]:
    return [
        permission_row(user, vhost, permission)
        for user in broker.users.values()
        for vhost, permission in user.permissions.items()
    ]


def _topic_permissions(broker: Broker) -> list[dict[str, Any]]:
    return [
        topic_permission_row(user, vhost, exchange, permission)
        for user in broker.users.values()
        for (vhost, exchange), permission in user.topic_permissions.items()
    ]


def parameter_row(vhost: VHost, parameter: Parameter) -> dict[str, Any]:
    """Return the row of a runtime parameter in definitions and in the HTTP API."""
    return {
        "vhost": vhost.name,
        "component": parameter.component,
        "name": parameter.name,
        "value": parameter.value,
    }


def _parameters(vhost: VHost) -> list[dict[str, Any]]:
    return [parameter_row(vhost, parameter) for parameter in vhost.parameters]


def policy_row(vhost: VHost, policy: Policy) -> dict[str, Any]:
    """Return the row of a policy in definitions and in the HTTP API."""
    return {"vhost": vhost.name, **policy.as_event()}


def _queues(vhost: VHost) -> list[Queue]:
    """Return the queues that do not belong to a connection."""
    return [queue for queue in vhost.queues.values() if queue.owner is None]


def _queue(queue: Queue) -> dict[str, Any]:
    return {
        "name": text_of(queue.name),
        "vhost": queue.vhost.name,
        "type": queue.type,
        "durable": queue.is_durable,
        "auto_delete": queue.is_auto_delete,
        "arguments": json_of(queue.arguments),
    }


def _exchanges(vhost: VHost) -> list[Exchange]:
    """Return the exchanges that a new vhost does not have."""
    return [exchange for name, exchange in vhost.exchanges.items() if name and not name.startswith(RESERVED)]


def _exchange(vhost: VHost, exchange: Exchange) -> dict[str, Any]:
    """Return an exchange; newer versions do not name the flag `internal`, which an import then assumes to be false."""
    names_internal = exchange.is_internal or vhost.broker.profile.release < (4, 2)
    return {
        "name": text_of(exchange.name),
        "vhost": exchange.vhost,
        "type": exchange.type,
        "durable": exchange.is_durable,
        "auto_delete": exchange.is_auto_delete,
        **({"internal": exchange.is_internal} if names_internal else {}),
        "arguments": json_of(exchange.arguments),
    }


def _bindings(vhost: VHost) -> list[Binding]:
    """Return the bindings, also those of queues that belong to a connection."""
    found = list(chain.from_iterable(exchange.bindings.values() for exchange in vhost.exchanges.values()))
    if vhost.deletions.are_under_way:
        found = [binding for binding in found if binding.is_in_force]
    return found


def _is_exported(binding: Binding, release: tuple[int, int]) -> bool:
    """Return whether definitions have a binding; those to the default exchange are shown from 4.3 on."""
    destination = binding.destination
    if isinstance(destination, Queue):
        return destination.owner is None
    return bool(destination.name) or release >= (4, 3)


def _binding(binding: Binding) -> dict[str, Any]:
    return {
        "source": text_of(binding.source.name),
        "vhost": binding.source.vhost,
        "destination": text_of(binding.destination.name),
        "destination_type": "queue" if isinstance(binding.destination, Queue) else "exchange",
        "routing_key": text_of(binding.routing_key),
        "arguments": json_of(binding.arguments),
    }
