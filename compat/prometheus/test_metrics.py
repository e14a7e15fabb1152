"""The same happens to RabbitMQ 3.10 with rabbitmq_prometheus and to us: what both tell Prometheus is compared.

Names, types, help, labels and values. What may differ stands in `DIFFERENCES` with its reason; a difference that is not
there fails, and so does a pattern that nothing needs any more.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pika
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ, free_port
from compat.waiting import wait_until

ERLANG: Final = "only Erlang's machine and RabbitMQ's own store have it"
MESSAGES: Final = "we would have to look at each message"
MACHINE: Final = "it is of this process, or of this moment"
NEWER: Final = "RabbitMQ 4.2 has it so"

# Patterns of what `compare` finds.
DIFFERENCES: Final = {
    r"(channel|connection|queue)_process_(reductions|memory_bytes): only there": ERLANG,
    r"(erlang_(gc|net|processes|scheduler)|io|msg_store|queue_(disk|index)|raft|schema_db)_\w+: only there": ERLANG,
    r"connection_pending_packets: only there": ERLANG,
    r"queue_messages(_(ready|unacked|persistent|paged_out|ram))?(_bytes|_ram|_ram_bytes)?: only there": MESSAGES,
    r"queue_head_message_timestamp: only there": MESSAGES,
    r"auth_attempts_detailed\w*: only there": "logins are not counted by where they come from; nor are they there",
    r"(queue_(get|get_ack|get_empty|messages_(acked|delivered|delivered_ack|redelivered))): only here": NEWER,
    r"alarms_\w+: only here": "RabbitMQ tells of alarms in one of three forms, we in all",
    r"global_messages_dead_lettered_confirmed: only there": "nothing is dead-lettered at least once here",
    r"global_messages_dead_lettered_\w+ .*at_least_once.*: 0, here None": "as above",
    r"queue_messages_published: labels .*": "we count by queue and exchange, not by channel",
    r"(build|identity)_info: labels .*": NEWER,
    r"(build|identity)_info .*": MACHINE,
    r"(disk_space_available|process_(open|max|resident)|resident_memory_limit)_\w+ : .*": MACHINE,
    r"erlang_uptime_seconds : .*": MACHINE,
    r"connection_(in|out)\w+ .*": "RabbitMQ counts by its own reads and writes, and says other server-properties",
    r"queue_consumer_(capacity|utilisation).*": "RabbitMQ's is a moving average over its own flushes",
}

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
FORMS: Final = (
    "/metrics",
    "/metrics/per-object",
    "/metrics/detailed?" + "&".join(f"family={name}" for name in FAMILIES),
)
# What is another for each broker.
OWN_LABELS: Final = ("channel", "connection")


def use(broker: BrokerProcess) -> pika.BlockingConnection:
    """What the metrics tell of: publishes that arrive and that do not, gets, deliveries, a refusal, an ack."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.queue_declare("grüne q")
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


def scrape(port: int, path: str) -> dict[str, Metric]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        families = list(text_string_to_metric_families(response.read().decode()))
    told = {family.name: family for family in families}
    assert len(told) == len(families), "a family is there twice"
    return {re.sub("^rabbitmq_(detailed_)?", "", name): told[name] for name in told if name.startswith("rabbitmq_")}


def values_of(family: Metric) -> dict[str, float]:
    """Values by labels, but for those that are different anyway."""
    return {
        str({name: sample.labels[name] for name in sorted(sample.labels) if name not in OWN_LABELS} or ""): sample.value
        for sample in family.samples
    }


def compare(theirs: dict[str, Metric], ours: dict[str, Metric]) -> Iterator[str]:
    for name in sorted({*theirs, *ours}):
        if name not in ours or name not in theirs:
            yield f"{name}: only {'there' if name in theirs else 'here'}"
            continue
        there, here = theirs[name], ours[name]
        if (there.type, there.documentation) != (here.type, here.documentation):
            yield f"{name}: {there.type}, {there.documentation!r}, here {here.type}, {here.documentation!r}"
        labels = [{tuple(sorted(sample.labels)) for sample in family.samples} for family in (there, here)]
        if labels[0] != labels[1]:
            yield f"{name}: labels {sorted(labels[0])}, here {sorted(labels[1])}"
        left, right = values_of(there), values_of(here)
        for key in sorted({*left, *right}):
            if left.get(key) != right.get(key):
                yield f"{name} {key}: {left.get(key)}, here {right.get(key)}"


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Where RabbitMQ tells its metrics, and where we do, after the same has happened to both."""
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    port = free_port()
    settings = (f"prometheus.tcp.port = {port}", "prometheus.tcp.ip = 127.0.0.1", "collect_statistics_interval = 500")
    theirs = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=("rabbitmq_prometheus",), settings=settings)
    ours = OurBroker(tmp_path_factory.mktemp("ours"))
    theirs.start()
    ours.start()
    connections = [use(broker) for broker in (theirs, ours)]

    def has_told() -> Any:
        if "disk_space_available_bytes" not in scrape(port, "/metrics"):
            return False
        for connection in connections:
            connection.process_data_events(0)
        told = scrape(port, "/metrics/per-object").get("channel_messages_redelivered")
        return told is not None and any(sample.value for sample in told.samples)

    # RabbitMQ collects what it tells now and then.
    wait_until(has_told)
    wait_until(lambda: values_of(scrape(port, "/metrics")["queue_messages_unacked"]) == {"": 2})
    yield port, int(json.loads(ours.ports_file.read_text())["prometheus"])
    for connection in connections:
        connection.close()
    ours.kill()
    theirs.kill()


def test_prometheus_hears_the_same_from_both(ports: tuple[int, int]) -> None:
    found = {line for path in FORMS for line in compare(scrape(ports[0], path), scrape(ports[1], path))}
    unknown = sorted(line for line in found if not any(re.fullmatch(pattern, line) for pattern in DIFFERENCES))
    assert unknown == []
    unused = [pattern for pattern in DIFFERENCES if not any(re.fullmatch(pattern, line) for line in found)]
    assert unused == []
