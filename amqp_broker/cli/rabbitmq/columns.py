"""Columns of lists: their names in RabbitMQ's tools, and their values in the HTTP API."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Atom(str):
    """A name that is shown without quotation marks, as an atom of Erlang."""


class Characters(str):
    """A text that Erlang has as a list of characters, not as a binary."""


class Table(dict[str, Any]):
    """A field table of AMQP, which is shown with the types of its values."""


class Column(NamedTuple):
    """A column: the path to the value in the API's JSON (a.b), and the kind of conversion."""

    path: str
    kind: str = ""

    def read(self, item: Any, node: str) -> Any:
        """Return the value of an item; "" if the item has none."""
        if self.kind == "constant":
            return Atom(self.path)
        value = item
        for part in self.path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if self.kind == "pid":
            return Atom(pid_of(node, str(value)))
        if self.kind == "queue":
            return Atom(pid_of(node, f"{item.get('vhost')}/{value}"))
        if value is None:
            return ""
        return _KINDS[self.kind](value) if self.kind else value


def pid_of(node: str, name: str) -> str:
    """Return a stable process id for a connection, channel or queue."""
    return f"<{node}.1.{zlib.crc32(name.encode())}.0>"


def _tags(value: Any) -> list[Atom]:
    words = value.split(",") if isinstance(value, str) else value
    return [Atom(word) for word in words if word]


def _protocol(value: str) -> Atom:
    return Atom("{" + ",".join(value.rpartition(" ")[2].split("-")) + "}")


def json_text(value: Any) -> str:
    """Return compact JSON with sorted names, as RabbitMQ writes it."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "atom": Atom,
    "tags": _tags,
    "protocol": _protocol,
    "table": Table,
    "json": json_text,
}


def columns(names: str, **special: str | tuple[str, str]) -> dict[str, Column]:
    """Return columns with the API's `names`, and `special` ones: another path, or a path and a kind."""
    found = {name: Column(name) for name in names.split()}
    for name, place in special.items():
        found[name] = Column(place) if isinstance(place, str) else Column(*place)
    return found


QUEUES = columns(
    "name durable auto_delete policy messages messages_ready messages_unacknowledged messages_ram messages_ready_ram"
    " messages_unacknowledged_ram messages_persistent message_bytes message_bytes_ready message_bytes_unacknowledged"
    " message_bytes_ram message_bytes_persistent consumers consumer_capacity consumer_utilisation disk_reads"
    " disk_writes exclusive exclusive_consumer_tag head_message_timestamp leader members memory online owner_pid"
    " slave_pids synchronised_slave_pids exclusive_consumer_pid",
    arguments=("arguments", "table"),
    pid=("name", "queue"),
    state=("state", "atom"),
    type=("type", "atom"),
)
EXCHANGES = columns("name durable auto_delete internal policy", type=("type", "atom"), arguments=("arguments", "table"))
BINDINGS = columns(
    "",
    source_name="source",
    source_kind=("exchange", "constant"),
    destination_name="destination",
    destination_kind=("destination_type", "atom"),
    routing_key="routing_key",
    arguments=("arguments", "table"),
)
CONNECTIONS = columns(
    "user peer_host peer_port name host port ssl ssl_protocol ssl_key_exchange ssl_cipher ssl_hash peer_cert_subject"
    " peer_cert_issuer peer_cert_validity channels channel_max frame_max timeout vhost recv_oct recv_cnt send_oct"
    " send_cnt send_pend connected_at auth_mechanism",
    pid=("name", "pid"),
    state=("state", "atom"),
    protocol=("protocol", "protocol"),
    client_properties=("client_properties", "table"),
)
CHANNELS = columns(
    "user consumer_count messages_unacknowledged messages_uncommitted messages_unconfirmed acks_uncommitted confirm"
    " global_prefetch_count name number prefetch_count transactional vhost",
    pid=("name", "pid"),
    connection=("connection_details.name", "pid"),
)
CONSUMERS = columns(
    "consumer_tag ack_required prefetch_count active",
    queue_name="queue.name",
    channel_pid=("channel_details.name", "pid"),
    activity_status=("activity_status", "atom"),
    arguments=("arguments", "table"),
)
VHOSTS = columns("name tracing description default_queue_type", tags=("tags", "tags"), cluster_state="cluster_state")
USERS = columns("", user="name", tags=("tags", "tags"))
PERMISSIONS = columns("user vhost configure write read")
TOPIC_PERMISSIONS = columns("user vhost exchange write read")
POLICIES = {
    **columns("vhost name pattern priority", definition=("definition", "json")),
    "apply-to": Column("apply-to"),
}
PARAMETERS = columns("component name", value=("value", "json"))
FEATURE_FLAGS = columns(
    "name desc doc_url", state=("state", "atom"), stability=("stability", "atom"), provided_by=("provided_by", "atom")
)
FORMER_DEPRECATED_FEATURES = columns(
    "name desc doc_url", phase=("deprecation_phase", "atom"), provided_by="provided_by"
)
DEPRECATED_FEATURES = columns(
    "name desc doc_url", deprecation_phase=("deprecation_phase", "atom"), state=("state", "atom")
)
