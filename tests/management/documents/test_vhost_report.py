from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.vhost_report import CONSUMERS_MAX, KEYS_MAX, described
from tests.peer import Lab, Peer
from tests.run_report.reporting import logging_lab, report_of


@pytest.fixture
def lab() -> Lab:
    return logging_lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    """A client with a queue `q` whose dead letters go to `dead`."""
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.call(commands.Queue.Declare(queue="q", arguments=dead))
    peer.call(commands.Queue.Declare(queue="dead"))
    return peer


def test_used_exchanges_and_those_of_messages_are_listed(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Exchange.Declare(exchange="shop", exchange_type="topic"))
    peer.call(commands.Queue.Bind(queue="q", exchange="shop", routing_key="a"))
    peer.call(commands.Queue.Bind(queue="q", exchange="shop", routing_key="b"))
    assert [row["name"] for row in report_of(lab)["exchanges"]] == ["shop"]
    peer.publish("x", b"", exchange="amq.topic")
    report = report_of(lab)
    assert [row["name"] for row in report["exchanges"]] == ["amq.topic", "shop"]
    assert report["bindings"] == [
        {"source": "shop", "destination": "q", "destination_kind": "queue", "routing_keys": ["a", "b"], "more_keys": 0}
    ]


def test_keys_beyond_the_first_ones_are_counted(lab: Lab, peer: Peer) -> None:
    for number in range(KEYS_MAX + 5):
        peer.call(commands.Queue.Bind(queue="q", exchange="amq.topic", routing_key=str(number)))
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.direct", routing_key="last"))
    found = [(row["source"], len(row["routing_keys"]), row["more_keys"]) for row in report_of(lab)["bindings"]]
    assert found == [("amq.topic", KEYS_MAX, 5), ("amq.direct", 1, 0)]


def test_exchanges_for_dead_letters_and_unroutable_messages_are_used(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Exchange.Declare(exchange="main", arguments={"alternate-exchange": "amq.fanout"}))
    peer.call(commands.Queue.Declare(queue="letters", arguments={"x-dead-letter-exchange": "amq.headers"}))
    found = [(row["name"], row["alternate_exchange"]) for row in report_of(lab)["exchanges"]]
    assert found == [("amq.fanout", None), ("amq.headers", None), ("main", "amq.fanout")]


def test_queues_clients_faults_and_the_clock_are_listed(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("drop_ack", queue="q"))
    lab.broker.add_vhost("other")
    lab.broker.faults.add(Rule("drop_ack", vhost="other"))
    peer.publish("q", b"")
    report = report_of(lab, moved_ms=5, is_frozen=True)
    [queue, _] = report["queues"]
    expected = ("q", "classic", 1, 0, 0, "", "dead")
    names = ("name", "type", "ready", "unacked", "consumers", "dead_letter_exchange", "dead_letter_routing_key")
    assert tuple(queue[name] for name in names) == expected
    assert [(rule["action"], rule["queue"], rule["hits"]) for rule in report["faults"]] == [("drop_ack", "q", 0)]
    assert report["connections"] == [f"connection {peer.session.name} is open, with 1 channel"]
    assert report["clock"] == {"now_ms": lab.now, "moved_ms": 5, "is_frozen": True}


def test_a_report_without_an_event_log_has_no_lives() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"")
    report = report_of(lab)
    assert (report["has_log"], report["lives"], report["queues"][0]["ready"]) == (False, [], 1)


def test_an_open_connection_is_described_with_what_it_holds(lab: Lab, peer: Peer) -> None:
    other = lab.connect()
    peer.consume("q", "worker", no_ack=False)
    peer.publish("q", b"")
    assert sorted(finished(described(lab.vhost, lab.vhost.connections))) == [
        f"connection {peer.session.name} is open, with 1 channel, consumer 'worker' of 'q', 1 unacknowledged message",
        f"connection {other.session.name} is open, with 1 channel",
    ]


def test_many_consumers_of_a_connection_are_counted(lab: Lab, peer: Peer) -> None:
    for number in range(CONSUMERS_MAX + 2):
        peer.consume("q", f"c{number:02}", no_ack=False)
    [sentence] = finished(described(lab.vhost, lab.vhost.connections))
    assert sentence.endswith(f"consumer 'c{CONSUMERS_MAX - 1}' of 'q', 2 more consumers")
