"""Answers without values that differ between any two brokers, and the comparison of two answers."""

from __future__ import annotations

import json
import re

from compat.oracle.records import is_same
from compat.oracle.suite import Answer

CONNECTION = re.compile(r"127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+")
# Values that depend on the moment, the machine or a version: only their presence and type are compared.
OF_ITS_MOMENT = {
    "applications",
    "backing_queue_status",
    "cluster_name",
    "config_files",
    "connected_at",
    "context_switches",
    "db_dir",
    "disk_free",
    "erlang_full_version",
    "erlang_version",
    "fd_total",
    "fd_used",
    "garbage_collection",
    "log_files",
    "management_version",
    "mem_limit",
    "mem_used",
    "memory",
    "os_pid",
    "peer_port",
    "port",
    "processors",
    "product_version",
    "rabbitmq_version",
    "rate",
    "recv_cnt",
    "recv_oct",
    "reductions",
    "run_queue",
    "send_cnt",
    "send_oct",
    "sockets_total",
    "uptime",
}
# All numbers of Erlang's virtual machine, its files and its database are such values.
OF_ERLANG = re.compile(r"(gc|io|mnesia|msg_store|proc|queue_index)_\w+(?<!_details)")
# RabbitMQ reports it of a process only while the process hibernates.
COMES_AND_GOES = {"idle_since"}


def neutral(value: Answer, node: str, is_ordered: bool = False) -> Answer:
    """Return a value without broker-specific parts; lists of named items are sorted by name."""
    if isinstance(value, dict):
        return {
            key.replace(node, "NODE"): _kind(item) if _is_of_its_moment(key) else neutral(item, node, is_ordered)
            for key, item in value.items()
            if key not in COMES_AND_GOES
        }
    if isinstance(value, list):
        items = [neutral(item, node, is_ordered) for item in value]
        names = None if is_ordered else _identity(items)
        return sorted(items, key=lambda item: _name(item, names)) if names else items
    if isinstance(value, str):
        return CONNECTION.sub("CONNECTION", value).replace(node, "NODE")
    return value


def _is_of_its_moment(key: str) -> bool:
    return key in OF_ITS_MOMENT or bool(OF_ERLANG.fullmatch(key))


def _kind(value: Answer) -> str:
    return "null" if value is None else "number" if isinstance(value, (int, float)) else type(value).__name__


def is_ordered(path: str) -> bool:
    """Return whether a request asks for an order."""
    return "sort=" in path


# Names that identify the items of a list, so that their order is irrelevant.
IDENTITIES = (
    {"source", "destination", "destination_type", "routing_key", "arguments"},
    {"consumer_tag"},
    {"name"},
    {"protocol"},
    {"queue"},
    {"exchange"},
    {"channel_details"},
)


def _identity(items: list[Answer]) -> set[str] | None:
    """Return the names that identify all of these items, or None."""
    for names in IDENTITIES:
        if items and all(isinstance(item, dict) and names <= item.keys() for item in items):
            return names
    return None


def _name(item: Answer, names: set[str]) -> str:
    return json.dumps([item[name] for name in sorted(names)], sort_keys=True)


def _by(items: list[Answer], names: set[str]) -> dict[str, Answer]:
    return {_name(item, names): item for item in items}


def _compare_items(rabbitmq: dict[str, Answer], amqp_broker: dict[str, Answer], path: str) -> list[str]:
    found = [f"{path}[{name}]: not here" for name in rabbitmq.keys() - amqp_broker.keys()]
    found += [f"{path}[{name}]: only here" for name in amqp_broker.keys() - rabbitmq.keys()]
    for name in rabbitmq.keys() & amqp_broker.keys():
        found += compare(rabbitmq[name], amqp_broker[name], path + "[]")
    return found


def compare(rabbitmq: Answer, amqp_broker: Answer, path: str) -> list[str]:
    """Yield the differences of two neutral values: the path, with [] for a list item, and both values."""
    if isinstance(rabbitmq, dict) and isinstance(amqp_broker, dict):
        found = [f"{path}.{key}: not here" for key in rabbitmq.keys() - amqp_broker.keys()]
        found += [f"{path}.{key}: only here" for key in amqp_broker.keys() - rabbitmq.keys()]
        for key in rabbitmq.keys() & amqp_broker.keys():
            found += compare(rabbitmq[key], amqp_broker[key], f"{path}.{key}")
        return found
    if isinstance(rabbitmq, list) and isinstance(amqp_broker, list):
        names = None if is_ordered(path) else _identity([*rabbitmq, *amqp_broker])
        if names and len(rabbitmq) - len(_by(rabbitmq, names)) == len(amqp_broker) - len(_by(amqp_broker, names)) == 0:
            return _compare_items(_by(rabbitmq, names), _by(amqp_broker, names), path)
        found = [f"{path}: {len(rabbitmq)} there, {len(amqp_broker)} here"] if len(rabbitmq) != len(amqp_broker) else []
        for one, other in zip(rabbitmq, amqp_broker, strict=False):
            found += compare(one, other, path + "[]")
        return found
    return [] if is_same(rabbitmq, amqp_broker) else [f"{path}: {json.dumps(rabbitmq)}, here {json.dumps(amqp_broker)}"]
