"""Uses a broker, and makes its metrics comparable."""

from __future__ import annotations

import re
import urllib.request
from typing import Final, TypedDict

import pika
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

FAMILIES: Final = [
    "queue_coarse_metrics",
    "queue_metrics",
    "queue_consumer_count",
    "channel_metrics",
    "channel_exchange_metrics",
    "channel_queue_metrics",
    "channel_queue_exchange_metrics",
    "connection_coarse_metrics",
    "connection_metrics",
    "connection_churn_metrics",
    "node_coarse_metrics",
    "node_metrics",
    "alarm_metrics",
    "auth_attempt_metrics",
    "vhost_status",
    "exchange_bindings",
    "exchange_names",
]
# Paths of the metrics, by the name of the form.
FORMS: Final = {
    "all together": "/metrics",
    "per object": "/metrics/per-object",
    "detailed": "/metrics/detailed?" + "&".join(f"family={name}" for name in FAMILIES),
}
# Labels that differ between any two brokers.
OWN_LABELS: Final = ("channel", "connection")
# Families whose values depend on the moment, the machine or the version: only their names are compared.
OF_ITS_MOMENT: Final = re.compile(
    # The identity of the broker.
    r"(build|identity)_info"
    # Erlang's virtual machine, its processes, files and database.
    r"|(channel|connection|queue)_process_\w+|(erlang|io|raft|schema_db)_\w+"
    # The process and the disk.
    r"|(process|resident_memory)_\w+|disk_space_available_bytes"
    # RabbitMQ counts its own reads and writes, and has other server-properties.
    r"|connection_(incoming|outgoing)_\w+"
    # RabbitMQ's is a moving average over its own flushes.
    r"|queue_consumer_(capacity|utilisation)"
)


class Family(TypedDict):
    """A metric with its values by labels."""

    type: str
    help: str
    labels: list[list[str]]
    values: dict[str, float]


Families = dict[str, Family]


def use(url: str, declares_durable: bool = True) -> pika.BlockingConnection:
    """Perform the measured operations: publishes with and without a queue, gets, deliveries, settles."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.queue_declare("grüne q", durable=declares_durable)
    channel.queue_bind("q", "amq.topic", "a.*")
    channel.confirm_delivery()
    for _ in range(7):
        channel.basic_publish("", "q", b"m")
    channel.basic_publish("amq.topic", "nowhere", b"m")
    channel.basic_ack(channel.basic_get("q")[0].delivery_tag)
    channel.basic_get("q", auto_ack=True)
    channel.basic_get("grüne q")
    got: list[int] = []
    channel.basic_qos(prefetch_count=2)
    channel.basic_consume("q", lambda _, method, *rest: got.append(method.delivery_tag))
    while len(got) < 2:
        connection.process_data_events(1)
    channel.basic_nack(got[0], requeue=True)
    while len(got) < 3:
        connection.process_data_events(1)
    return connection


def fetch(url: str) -> str:
    """Return the metrics at an address, as text."""
    with urllib.request.urlopen(url, timeout=20) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = response.read().decode()
        return text


def scrape(port: int, path: str) -> Families:
    families = list(text_string_to_metric_families(fetch(f"http://127.0.0.1:{port}{path}")))
    told = {family.name: family for family in families}
    assert len(told) == len(families), "a family is there twice"
    return {
        name: _family(name, told[full_name])
        for full_name in sorted(told)
        if (name := re.sub("^rabbitmq_(detailed_)?", "", full_name)) != full_name
    }


def _family(name: str, family: Metric) -> Family:
    values = {
        str({label: sample.labels[label] for label in sorted(sample.labels) if label not in OWN_LABELS} or ""): float(
            sample.value
        )
        for sample in family.samples
    }
    return {
        "type": family.type,
        "help": family.documentation,
        "labels": [list(names) for names in sorted({tuple(sorted(sample.labels)) for sample in family.samples})],
        "values": {} if OF_ITS_MOMENT.fullmatch(name) else {key: values[key] for key in sorted(values)},
    }
