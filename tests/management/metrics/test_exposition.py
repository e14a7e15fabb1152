from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from pamqp import commands
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.management.http.answers import Answer
from amqp_broker.management.http.request import Request
from amqp_broker.management.metrics import exposition, node_metrics, object_metrics
from tests.management.asking import Desk, declared_anew
from tests.running import RunningServer
from tests.stepping import counted


def request(desk: Desk, query: str = "") -> Request:
    return Request(desk.broker, desk.node, desk.user, query_string=query)


def samples(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the samples that Prometheus's own parser finds; each name is there once."""
    names = [line.split()[2] for line in text.decode().splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    found: list[Sample] = [
        sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples
    ]
    values = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in found}
    assert len(values) == len(found)
    return values


def value(text: bytes, name: str, **labels: str) -> float:
    return samples(text)[name, frozenset(labels.items())]


def busy() -> Desk:
    desk = Desk()
    for name in ('q"\\\n', "other"):
        desk.broker.vhosts["/"].declare_queue(QueueDeclaration(name, {}, is_durable=True))
    peer = desk.lab.connect()
    for _ in range(3):
        peer.publish('q"\\\n', b"m")
    peer.publish("nowhere", b"m")
    return desk


def body(steps: Steps[Answer]) -> bytes:
    answer = finished(steps)
    assert answer.headers["Content-Type"] == exposition.CONTENT_TYPE
    octets: bytes = answer.value
    return octets


def test_sums_have_no_labels() -> None:
    text = body(exposition.get_summed(request(busy())))
    assert value(text, "rabbitmq_queue_messages_ready") == 3
    assert value(text, "rabbitmq_queues") == 2
    assert value(text, "rabbitmq_connections") == 1
    assert value(text, "rabbitmq_global_messages_received_total", protocol="amqp091") == 4
    assert value(text, "rabbitmq_global_messages_unroutable_dropped_total", protocol="amqp091") == 1
    assert value(text, "rabbitmq_resident_memory_limit_bytes") == 1_000_000_000


def test_names_are_escaped() -> None:
    text = body(exposition.get_per_object(request(busy())))
    assert value(text, "rabbitmq_queue_messages_ready", vhost="/", queue='q"\\\n') == 3
    assert value(text, "rabbitmq_queue_messages_ready", vhost="/", queue="other") == 0


def test_only_the_requested_families_are_detailed() -> None:
    desk = busy()
    desk.broker.add_vhost("v").declare_queue(QueueDeclaration("there", {}, is_durable=True))
    text = body(
        exposition.get_detailed(request(desk, "vhost=v&family=queue_coarse_metrics&family=queue_consumer_count"))
    )
    names = {name for name, _ in samples(text)}
    assert "rabbitmq_detailed_queue_consumers" in names
    assert "rabbitmq_detailed_channel_consumers" not in names
    assert value(text, "rabbitmq_detailed_queue_messages_ready", vhost="v", queue="there") == 0
    assert b'queue="other"' not in text


def test_each_answer_identifies_the_node() -> None:
    desk = busy()
    desk.broker.global_parameters.set("cluster_name", "theirs")
    for answer, endpoint in (
        (exposition.get_summed(request(desk)), "aggregated"),
        (exposition.get_per_object(request(desk)), "per-object"),
        (exposition.get_detailed(request(desk)), "detailed"),
    ):
        [labels] = [dict(labels) for name, labels in samples(body(answer)) if name == "rabbitmq_identity_info"]
        assert labels["rabbitmq_cluster"] == "theirs"
        assert labels["rabbitmq_cluster_permanent_id"] == desk.broker.cluster_id
        assert (labels["rabbitmq_endpoint"], labels["rabbitmq_node"]) == (endpoint, desk.broker.node)


def test_metrics_can_be_per_object_by_default() -> None:
    [first] = [one for one in exposition.endpoints(is_per_object=True) if one.path == "/metrics"]
    assert first.handler is exposition.get_per_object


@pytest.mark.parametrize(("path", "found"), [("/m/x", ["/m/x", "/m/x/per-object"]), ("", ["/", "/per-object"])])
def test_the_path_of_the_metrics_is_a_setting(path: str, found: list[str]) -> None:
    with RunningServer(prometheus=True, prometheus_path=path) as running:
        address = f"http://127.0.0.1:{running.server.ports['prometheus']}"
        for each in found:
            with urlopen(address + each) as answer:
                assert b"rabbitmq_identity_info" in answer.read()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{address}/metrics")


def test_metrics_of_the_cluster_are_shown_only_on_request() -> None:
    desk = busy()
    asked = "family=vhost_status&family=exchange_bindings&family=exchange_names"
    text = body(exposition.get_detailed(request(desk, asked)))
    assert value(text, "rabbitmq_cluster_vhost_status", vhost="/") == 1
    exchange = {"vhost": "/", "exchange": "amq.topic", "type": "topic"}
    assert value(text, "rabbitmq_cluster_exchange_bindings", **exchange) == 0
    assert value(text, "rabbitmq_cluster_exchange_name", **exchange) == 1
    assert b"\nrabbitmq_cluster_" not in body(exposition.get_per_object(request(desk)))


def test_logins_are_counted_for_the_protocols_in_use() -> None:
    desk = busy()
    text = body(exposition.get_summed(request(desk)))
    assert value(text, "rabbitmq_auth_attempts_succeeded_total", protocol="amqp091") == 1
    assert value(text, "rabbitmq_auth_attempts_failed_total", protocol="amqp091") == 0
    assert b'protocol="http"' not in text


def test_all_families_can_be_requested_at_once() -> None:
    families = (*object_metrics.OBJECT_FAMILIES, *object_metrics.CLUSTER_FAMILIES, *node_metrics.NODE_FAMILIES)
    names = {family.name for family in families}
    query = "&".join(f"family={name}" for name in names)
    assert len(samples(body(exposition.get_detailed(request(busy(), query))))) > 40


def test_exchanges_count_their_messages() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.declare("q")
    peer.publish("q", b"m")
    peer.publish("none", b"m", exchange="amq.direct")
    text = body(exposition.get_per_object(request(desk)))
    assert value(text, "rabbitmq_exchange_messages_published_total", vhost="/", exchange="") == 1
    dropped = "rabbitmq_exchange_messages_unroutable_dropped_total"
    assert value(text, dropped, vhost="/", exchange="amq.direct") == 1
    through = "rabbitmq_queue_exchange_messages_published_total"
    assert value(text, through, vhost="/", exchange="", queue="q") == 1


def test_a_release_has_its_own_metrics() -> None:
    older, newer = (body(exposition.get_per_object(request(desk_with_streams(compat)))) for compat in ("3.13", "4.3"))
    for name in (b"rabbitmq_process_open_tcp_sockets", b"rabbitmq_alarms_file_descriptor_limit"):
        assert (name in older, name in newer) == (True, False)
    for name in (b"rabbitmq_stream_segments", b"rabbitmq_queue_info", b"rabbitmq_unreachable_cluster_peers_count"):
        assert (name in older, name in newer) == (False, True)
    labels = {"vhost": "/", "queue": "s", "queue_type": "rabbit_stream_queue", "membership": "leader"}
    assert value(newer, "rabbitmq_queue_info", **labels) == 1


def test_families_without_objects_have_a_help_text() -> None:
    text = body(exposition.get_per_object(request(Desk())))
    for name in (
        b"rabbitmq_channel_consumers",
        b"rabbitmq_stream_consumer_max_offset_lag",
        b"rabbitmq_stream_segments",
    ):
        assert b"# HELP %s " % name in text
        assert b"\n%s" % name not in text


@pytest.mark.parametrize(
    ("compat", "protocols", "kinds"),
    [
        ("3.13", {"amqp091"}, {"classic", "quorum", "stream"}),
        ("4.2", {"amqp091", "amqp10"}, {"classic", "quorum", "stream", "volatile"}),
    ],
)
def test_protocols_and_types_without_clients_count_0(compat: str, protocols: set[str], kinds: set[str]) -> None:
    found = samples(body(exposition.get_summed(request(Desk(compat=compat)))))
    name = "rabbitmq_global_messages_delivered_total"
    expected = {(("protocol", one), ("queue_type", f"rabbit_{kind}_queue")) for one in protocols for kind in kinds}
    assert {labels: count for (other, labels), count in found.items() if other == name} == dict.fromkeys(
        map(frozenset, expected), 0
    )


def desk_with_streams(compat: str) -> Desk:
    desk = Desk(compat=compat)
    declaration = QueueDeclaration("s", {"x-queue-type": "stream"}, is_durable=True)
    desk.broker.vhosts["/"].declare_queue(declaration)
    return desk


def test_the_start_of_the_process_has_no_prefix() -> None:
    desk = Desk()
    for text in (exposition.get_summed(request(desk)), exposition.get_per_object(request(desk))):
        assert value(body(text), "process_start_time_seconds") == desk.node.started_at_ms // 1000


def test_a_redeclared_queue_has_one_line() -> None:
    desk = Desk()
    for _ in declared_anew(desk):
        found = samples(body(exposition.get_per_object(request(desk))))
    # Prometheus takes one line for a name and its labels: that of the second queue and exchange.
    [got] = [count for (name, _), count in found.items() if name == "rabbitmq_channel_get_total"]
    [published] = [count for (name, _), count in found.items() if name == "rabbitmq_channel_messages_published_total"]
    assert (got, published) == (1, 1)


def test_a_deleted_exchange_has_no_line() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.declare("q")
    for _ in range(2):
        peer.call(commands.Exchange.Delete(exchange="x"))
        peer.call(commands.Exchange.Declare(exchange="x", exchange_type="fanout"))
        peer.call(commands.Queue.Bind(queue="q", exchange="x"))
        peer.publish("", b"m", exchange="x")
    found = samples(body(exposition.get_detailed(request(desk, "family=channel_queue_exchange_metrics"))))
    [count] = [
        count for (name, _), count in found.items() if name == "rabbitmq_detailed_queue_messages_published_total"
    ]
    assert count == 1


def test_queues_come_and_go_during_a_scrape() -> None:
    desk = busy()
    steps = exposition.get_per_object(request(desk))
    for _ in range(100):
        next(steps)
    vhost = desk.broker.vhosts["/"]
    vhost.remove_queue(vhost.queues["other"])
    vhost.declare_queue(QueueDeclaration("new", {}, is_durable=True))
    names = {label for _, labels in samples(body(steps)) for key, label in labels if key == "queue"}
    assert {'q"\\\n'} <= names <= {'q"\\\n', "other", "new"}


def test_sums_are_made_in_steps_of_one_queue() -> None:
    desk = Desk()
    vhost = desk.broker.vhosts["/"]
    alone, _ = counted(exposition.get_summed(request(desk)))
    for number in range(20):
        vhost.declare_queue(QueueDeclaration(f"q{number}", {}, is_durable=True))
    steps, answer = counted(
        exposition.get_summed(request(desk)), {200: lambda: vhost.remove_queue(vhost.queues["q19"])}
    )
    assert value(answer.value, "rabbitmq_queue_consumers") == 0
    # Ten and more metrics of each queue.
    assert steps - alone >= 200


def test_a_long_text_is_joined_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = busy()
    whole = samples(body(exposition.get_per_object(request(desk))))
    monkeypatch.setattr(exposition, "BLOCK_LINES", 7)
    assert samples(body(exposition.get_per_object(request(desk)))).keys() == whole.keys()
