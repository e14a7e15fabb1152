"""Definitions of shovels of AMQP 0-9-1, and of the protocol `local` that RabbitMQ 4.3 has.

A shovel that is accepted starts later, so nothing is asked about its state. RabbitMQ lists the protocols in any order.
"""

from __future__ import annotations

from typing import Final

from compat.management.http_asking import Ask, delete, get, put

_PATH: Final = "parameters/shovel/v1/s"
_GIVEN: Final = {"src-uri": "amqp:///v1", "dest-uri": "amqp:///v1", "src-queue": "a", "dest-queue": "b"}


def _shovel(**changes: object) -> Ask:
    """Return the definition of a shovel, without the keys that are changed to `...`."""
    value = {**_GIVEN, **{key.replace("_", "-"): value for key, value in changes.items()}}
    return put(_PATH, {"value": {key: item for key, item in value.items() if item is not ...}})


def _local(**changes: object) -> Ask:
    """Return the definition of a shovel within the broker."""
    return _shovel(**{"src_protocol": "local", "dest_protocol": "local", **changes})


# They are refused whatever the protocol is.
_WRONG: Final[list[dict[str, object]]] = [
    {"src_uri": ...},
    {"dest_uri": ...},
    {"src_uri": "http://x"},
    {"src_uri": "nonsense"},
    {"dest_uri": 5},
    {"src_queue": ...},
    {"src_queue": 5},
    {"src_exchange": "x"},
    {"dest_exchange": "x"},
    {"ack_mode": "sometimes"},
    {"ack_mode": 5},
    {"ack_mode": "no-ack", "src_delete_after": 5},
    {"reconnect_delay": "x"},
    {"src_delete_after": "x"},
    {"dest_add_forward_headers": "x"},
    {"unknown": 1},
    {"unknown": "x", "other": [1]},
]

SHOVELS: Final = [
    *(_shovel(**changes) for changes in _WRONG),
    _shovel(dest_protocol=5),
    _shovel(src_prefetch_count="x"),
    _shovel(prefetch_count="x"),
    _shovel(dest_publish_properties={"app_id": 5}),
    _shovel(dest_publish_properties={"colour": "red"}),
    _shovel(dest_publish_properties=5),
    _shovel(src_prefetch_count=5, dest_publish_properties={"app_id": "x"}, add_forward_headers=True),
    get(_PATH),
    delete(_PATH),
    *(_local(**changes) for changes in _WRONG),
    _local(src_prefetch_count=5),
    _local(prefetch_count=5),
    _local(dest_publish_properties={}),
    _local(add_forward_headers=True),
    _local(dest_protocol=5),
    get(_PATH),
    _local(),
    get(_PATH),
    _local(src_protocol="amqp091"),
    _local(dest_protocol="amqp091"),
    _local(src_queue=..., src_exchange="amq.fanout", src_exchange_key="k"),
    _local(dest_queue=..., dest_exchange="amq.fanout", dest_exchange_key="k"),
    _local(src_queue_args={"x-queue-type": "quorum"}, dest_queue_args={"x-queue-type": "quorum"}),
    _local(src_predeclared=True, dest_predeclared=True),
    _local(src_consumer_args={"x-priority": 5}),
    _local(src_delete_after=5, reconnect_delay=7),
    _local(ack_mode="no-ack", dest_add_forward_headers=True, dest_add_timestamp_header=True),
    get(_PATH),
    delete(_PATH),
    delete(_PATH),
    _shovel(reconnect_delay=-1),
]
