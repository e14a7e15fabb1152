"""Answers without values that differ between any two brokers."""

from __future__ import annotations

import re

from compat.oracle.comparing import identity, name_of
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
    "crypto_lib_version",
    "db_dir",
    "disk_free",
    "erlang_full_version",
    "erlang_version",
    "fd_total",
    "fd_used",
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
# Numbers of a process. Clients with types read them as numbers without a sign.
NUMBERS_OF_A_PROCESS = "garbage_collection"
# RabbitMQ reports it of a process only while the process hibernates.
COMES_AND_GOES = {"idle_since"}


def neutral(value: Answer, node: str, is_ordered: bool = False) -> Answer:
    """Return a value without broker-specific parts; lists of named items are sorted by name."""
    if isinstance(value, dict):
        return {
            key.replace(node, "NODE"): _neutral_item(key, item, node, is_ordered)
            for key, item in value.items()
            if key not in COMES_AND_GOES
        }
    if isinstance(value, list):
        items = [neutral(item, node, is_ordered) for item in value]
        names = None if is_ordered else identity(items)
        return sorted(items, key=lambda item: name_of(item, names)) if names else items
    if isinstance(value, str):
        return CONNECTION.sub("CONNECTION", value).replace(node, "NODE")
    return value


def _neutral_item(key: str, item: Answer, node: str, is_ordered: bool) -> Answer:
    if key == NUMBERS_OF_A_PROCESS and isinstance(item, dict):
        return {name: "negative" if number < 0 else "number" for name, number in item.items()}
    return _kind(item) if _is_of_its_moment(key) else neutral(item, node, is_ordered)


def _is_of_its_moment(key: str) -> bool:
    return key in OF_ITS_MOMENT or bool(OF_ERLANG.fullmatch(key))


def _kind(value: Answer) -> str:
    return "null" if value is None else "number" if isinstance(value, (int, float)) else type(value).__name__
