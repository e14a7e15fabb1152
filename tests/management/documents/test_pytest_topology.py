from __future__ import annotations

import pytest
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.observe.event_log import EventLog
from amqp_broker.management.documents.pytest_topology import declared_name, topology
from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def log(lab: Lab) -> EventLog:
    return lab.broker.event_logs.start(lab.vhost)


@pytest.fixture
def peer(lab: Lab, log: EventLog) -> Peer:
    peer = lab.connect()
    peer.call(Exchange.Declare(exchange="in", exchange_type="fanout", arguments={"alternate-exchange": "rest"}))
    peer.call(Exchange.Declare(exchange="rest", exchange_type="topic", durable=True))
    for name in ("q", "other"):
        peer.call(Queue.Declare(queue=name, durable=True))
    peer.call(Queue.Bind(queue="q", exchange="in"))
    return peer


def lines(lab: Lab, log: EventLog, *queues: str) -> list[str]:
    return list(topology(lab.vhost, queues, list(log.events)))


def test_only_what_the_events_met_is_declared(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.publish("key", b"x", exchange="in")
    classic = "'x-queue-type': 'classic'"
    found = [line.replace(classic, "…") for line in lines(lab, log, "q")]
    assert found == [
        "channel = connection.channel()",
        "channel.exchange_declare(exchange='in', exchange_type='fanout', arguments={'alternate-exchange': 'rest'})",
        "channel.exchange_declare(exchange='rest', exchange_type='topic', durable=True)",
        "channel.queue_declare(queue='q', durable=True, arguments={…})",
        "channel.queue_bind(queue='q', exchange='in', routing_key='')",
    ]


def test_a_deleted_queue_is_bound_with_the_key_of_its_messages(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.publish("key", b"x", exchange="in")
    peer.call(Queue.Delete(queue="q"))
    assert lines(lab, log, "q")[-1] == "channel.queue_bind(queue='q', exchange='in', routing_key='key')"


def test_messages_of_a_deleted_exchange_are_refused(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.publish("key", b"x", exchange="in")
    peer.call(Exchange.Delete(exchange="in"))
    with pytest.raises(InvalidParameter, match="exchange 'in' was deleted"):
        lines(lab, log, "q")


def test_a_stream_is_refused_once_it_is_consumed(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.call(Queue.Declare(queue="s", durable=True, arguments={"x-queue-type": "stream"}))
    peer.publish("s", b"x")
    assert lines(lab, log, "s")[-1].startswith("channel.queue_declare(queue='s', durable=True, ")
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("s", arguments={"x-stream-offset": "first"})
    with pytest.raises(InvalidParameter, match="consumers of a stream"):
        lines(lab, log, "s")


def test_names_that_the_broker_made_are_declared_without_their_prefix() -> None:
    assert (declared_name("amq.gen-x"), declared_name("q")) == ("gen-x", "q")
