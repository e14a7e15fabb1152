"""Prometheus itself finds data for the panels of RabbitMQ's boards in each form of the metrics."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat.brokers import AmqpBroker
from compat.prometheus.boards import BOARDS, GLOBAL, IDENTITY, JOINED, SHOWN, WITHOUT_DATA, nodes_query, query
from compat.prometheus.metrics import use
from compat.prometheus.prometheus_server import Prometheus, prometheus

# Counters that rise with the traffic here.
RISEN = (
    *("received", "received_confirm", "confirmed", "routed", "unroutable_dropped", "unroutable_returned"),
    *("delivered", "delivered_consume_manual_ack", "delivered_consume_auto_ack", "redelivered", "acknowledged"),
    *("delivered_get_manual_ack", "delivered_get_auto_ack", "get_empty"),
)
# The forms that have the metrics of all boards, as labels of a node name them.
COMPLETE = ("aggregated", "per-object")

pytestmark = pytest.mark.verify


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Provide a Prometheus that has scraped a broker before, during and after some traffic."""
    if not shutil.which("prometheus"):
        pytest.skip("needs Prometheus (Debian: prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    broker = AmqpBroker(folder / "amqp-broker", profile="4.3")
    with (
        broker.running(),
        prometheus(folder / "prometheus", broker.prometheus_port) as server,
        use(broker.url) as connection,
        connection.channel() as channel,
    ):
        return_and_consume(channel)
        # A rate needs two values, and one of them may be from before.
        server.wait_for_scrapes(2)
        yield server


def return_and_consume(channel: BlockingChannel) -> None:
    """Let a message return, and consume another one without acks."""
    channel.basic_publish("amq.topic", "nowhere", b"m", mandatory=True)
    channel.basic_publish("amq.topic", "a.b", b"m")
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("", name, b"m")
    next(channel.consume(name, auto_ack=True))
    channel.cancel()


@pytest.fixture(scope="module")
def cluster(server: Prometheus) -> str:
    """Return the choice of a board's variable: the name of the only cluster."""
    [(labels, _)] = server.ask(f"group({IDENTITY}) by(rabbitmq_cluster)")
    return labels["rabbitmq_cluster"]


@pytest.mark.parametrize("board", BOARDS)
def test_each_panel_has_data_or_a_reason_why_not(server: Prometheus, cluster: str, board: str) -> None:
    for title, metrics in BOARDS[board].items():
        is_empty = bool({(board, title), (board, "")} & WITHOUT_DATA.keys())
        for endpoint in COMPLETE if "_detailed_" not in metrics else ("detailed",):
            for metric in metrics.split():
                found = server.ask(query(metric, cluster, endpoint))
                assert len(found) == (not is_empty), (title, metric, endpoint)
                assert all(math.isfinite(value) for _, value in found), (title, metric, endpoint)


@pytest.mark.parametrize("name", RISEN)
def test_a_rate_shows_the_traffic(server: Prometheus, cluster: str, name: str) -> None:
    [(labels, rate)] = server.ask(query(f"{GLOBAL}_{name}_total", cluster, "aggregated"))
    assert labels["rabbitmq_node"]
    assert rate > 0


def test_the_table_of_nodes_has_a_line_for_each_complete_form(server: Prometheus) -> None:
    found = server.ask(nodes_query())
    assert len(found) == len(COMPLETE)
    for labels, uptime_s in found:
        assert all(labels[label] for label in (*JOINED, *SHOWN["rabbitmq_build_info"]))
        assert uptime_s > 0
