"""The firehose, which is that of RabbitMQ 3.10.8 for the same steps; and what observers hear."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from pamqp.commands import Basic, Channel, Confirm, Queue, Tx

from amqp_broker.amqp.message import Message
from amqp_broker.broker.admin.access import Permission
from tests.peer import Lab, Peer
from tests.present import present

TRACE = "amq.rabbitmq.trace"


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.broker.now_us = count(1_000_000).__next__
    return lab


@pytest.fixture
def peer(lab: Lab) -> Peer:
    peer = lab.connect()
    peer.declare("q")
    return peer


class Watcher:
    """A consumer of the firehose."""

    def __init__(self, lab: Lab, key: str = "#") -> None:
        self.peer = lab.connect()
        self.peer.declare("trace")
        self.peer.call(Queue.Bind(queue="trace", exchange=TRACE, routing_key=key))
        self.peer.consume("trace", no_ack=True)

    def events(self) -> list[tuple[str, dict[str, Any], bytes]]:
        """Return new events: key, headers, body."""
        return [
            (present(deliver.routing_key), present(content.properties.headers), content.body)
            for deliver, content in self.peer.deliveries()
        ]

    def keys(self) -> list[str]:
        return [key for key, _, _ in self.events()]


class Hearer:
    """An observer; events have keys like those of the firehose."""

    def __init__(self, lab: Lab) -> None:
        self.heard: list[tuple[str, dict[str, Any], bytes]] = []
        lab.vhost.tracing.observe(self)

    def __call__(self, event: str, name: str, headers: dict[str, Any], message: Message | None, body: bytes) -> None:
        self.heard.append((f"{event}.{name}", headers, body))

    def events(self) -> list[tuple[str, dict[str, Any], bytes]]:
        """Return new events: key, headers, body."""
        heard, self.heard = self.heard, []
        return heard

    def keys(self) -> list[str]:
        return [key for key, _, _ in self.events()]

    def story(self) -> list[tuple[str, int]]:
        """Keys and message numbers."""
        return [(key, headers["message_number"]) for key, headers, _ in self.events()]


@pytest.fixture
def watcher(lab: Lab) -> Watcher:
    """Watches the firehose."""
    watcher = Watcher(lab)
    lab.vhost.tracing.start()
    return watcher


@pytest.fixture
def hearer(lab: Lab) -> Hearer:
    return Hearer(lab)


def who(peer: Peer, channel: int = 1) -> dict[str, Any]:
    return {"vhost": "/", "connection": peer.session.name, "channel": channel, "user": "guest"}


# As RabbitMQ


def test_a_traced_publish_has_the_headers_of_rabbitmq(peer: Peer, watcher: Watcher) -> None:
    peer.publish("q", b"hello")
    expected = {"exchange_name": "", "routing_keys": ["q"], "properties": {}, "node": "rabbit@localhost"}
    expected |= who(peer) | {"routed_queues": ["q"]}
    [(key, headers, body)] = watcher.events()
    assert (key, headers, body) == ("publish.", expected, b"hello")
    assert list(headers) == list(expected)


def test_properties_are_in_the_headers_in_reverse_order(peer: Peer, watcher: Watcher) -> None:
    peer.call(Queue.Bind(queue="q", exchange="amq.fanout"))
    headers = {"a": 1, "n": 2**40}
    peer.publish("k", b"fan", exchange="amq.fanout", content_type="text/plain", headers=headers, priority=3, app_id="a")
    [(key, told, _)] = watcher.events()
    assert key == "publish.amq.fanout"
    assert list(told["properties"].items()) == [
        ("app_id", "a"),
        ("priority", 3),
        ("headers", headers),
        ("content_type", "text/plain"),
    ]


def test_a_delivery_and_a_get_are_copied(peer: Peer, watcher: Watcher) -> None:
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.get("q")
    peer.consume("q")
    _, _, (get, got, body), (deliver, delivered, _) = watcher.events()
    expected = {"exchange_name": "", "routing_keys": ["q"], "properties": {}, "node": "rabbit@localhost"}
    expected |= {"redelivered": 0} | who(peer)
    assert (get, got, body) == ("deliver.q", expected, b"1")
    assert list(got) == list(expected)
    assert (deliver, delivered) == ("deliver.q", expected)


def test_a_redelivery_is_marked_in_the_trace(peer: Peer, watcher: Watcher) -> None:
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    peer.get("q")
    assert [(key, headers.get("redelivered")) for key, headers, _ in watcher.events()] == [
        ("publish.", None),
        ("deliver.q", 0),
        ("deliver.q", 1),
    ]


def test_the_firehose_has_only_publishes_and_deliveries(peer: Peer, watcher: Watcher) -> None:
    peer.call(Confirm.Select())
    peer.publish("q", b"1")
    peer.expect(Basic.Ack)
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=1))
    peer.publish("nowhere", b"2", mandatory=True)
    assert [(key, sorted(headers)) for key, headers, _ in watcher.events()] == [
        (key, sorted({"exchange_name", "routing_keys", "properties", "node", last, *who(peer)}))
        for key, last in (("publish.", "routed_queues"), ("deliver.q", "redelivered"), ("publish.", "routed_queues"))
    ]


def test_routed_queues_of_the_default_exchange_include_missing_ones(peer: Peer, watcher: Watcher) -> None:
    peer.publish("q", b"cc", headers={"CC": ["other", "nowhere"], "BCC": ["blind"]})
    [(_, headers, _)] = watcher.events()
    assert headers["routing_keys"] == ["q", "other", "nowhere", "blind"]
    assert headers["routed_queues"] == ["blind", "nowhere", "other", "q"]
    assert headers["properties"] == {"headers": {"CC": ["other", "nowhere"]}}


def test_routed_queues_of_other_exchanges_are_those_that_get_the_message(peer: Peer, watcher: Watcher) -> None:
    for name in ("b", "a"):
        peer.declare(name)
        peer.call(Queue.Bind(queue=name, exchange="amq.topic", routing_key="k"))
    peer.publish("k", b"1", exchange="amq.topic")
    peer.publish("nobody", b"2", exchange="amq.topic")
    assert [headers["routed_queues"] for _, headers, _ in watcher.events()] == [["a", "b"], []]


def test_publishes_of_a_transaction_are_traced_before_the_commit(peer: Peer, watcher: Watcher) -> None:
    peer.call(Tx.Select())
    peer.publish("q", b"1")
    assert watcher.keys() == ["publish."]
    peer.call(Tx.Commit())
    assert watcher.keys() == []


def test_copies_in_the_trace_are_not_traced(peer: Peer, watcher: Watcher) -> None:
    peer.declare("second")
    peer.call(Queue.Bind(queue="second", exchange=TRACE, routing_key="publish.#"))
    peer.publish("q", b"1")
    assert peer.get("second") is not None
    assert watcher.keys() == ["publish."]


def test_a_message_published_to_the_trace_queue_is_traced_too(peer: Peer, watcher: Watcher) -> None:
    peer.publish("trace", b"1")
    deliveries = [(deliver.exchange, content.body) for deliver, content in watcher.peer.deliveries()]
    assert sorted(deliveries) == [("", b"1"), (TRACE, b"1"), (TRACE, b"1")]


def test_a_trace_covers_messages_published_before_it(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"1")
    hearer = Hearer(lab)
    peer.get("q")
    assert hearer.story() == [("deliver.q", 0)]


def test_running_publishers_and_consumers_are_traced(lab: Lab, peer: Peer) -> None:
    peer.consume("q", no_ack=True)
    peer.publish("q", b"1")
    watcher = Watcher(lab)
    lab.vhost.tracing.start()
    peer.publish("q", b"2")
    lab.vhost.tracing.stop()
    peer.publish("q", b"3")
    assert watcher.keys() == ["publish.", "deliver.q"]
    assert peer.bodies() == [b"1", b"2", b"3"]


def test_a_stopped_trace_leaves_no_state(lab: Lab, peer: Peer) -> None:
    lab.vhost.tracing.start()
    peer.publish("q", b"1")
    lab.vhost.tracing.stop()
    peer.publish("q", b"2")
    assert not lab.vhost.queues["q"].has_extras
    assert all(route.is_plain for route in peer.session.routes.values())


def test_other_vhosts_are_not_traced(lab: Lab, watcher: Watcher) -> None:
    lab.broker.add_vhost("v")
    lab.broker.users.set_permission(lab.broker.users["guest"], "v", Permission())
    other = lab.connect(vhost="v")
    other.declare("q")
    other.publish("q", b"1")
    other.get("q")
    assert watcher.keys() == []


def test_a_queue_may_receive_the_trace_of_its_own_messages(lab: Lab, peer: Peer) -> None:
    peer.call(Queue.Bind(queue="q", exchange=TRACE, routing_key="#"))
    for _ in range(1200):
        peer.publish("q", b"1")
    lab.vhost.tracing.start()
    peer.consume("q", no_ack=True)
    lab.drain()
    assert [len(peer.bodies()), lab.vhost.queues["q"].ready_count] == [2400, 0]


# Beyond RabbitMQ


def test_one_message_has_one_number_from_publish_to_ack(peer: Peer, hearer: Hearer) -> None:
    peer.consume("q")
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    peer.send(Basic.Ack(delivery_tag=3), Basic.Ack(delivery_tag=2))
    assert hearer.story() == [
        ("publish.", 1),
        ("deliver.q", 1),
        ("publish.", 2),
        ("deliver.q", 2),
        ("nack.q", 1),
        ("deliver.q", 1),
        ("ack.q", 1),
        ("ack.q", 2),
    ]


def test_each_event_has_its_time(peer: Peer, hearer: Hearer) -> None:
    peer.publish("q", b"1")
    peer.get("q")
    peer.publish("q", b"2")
    events = [headers for _, headers, _ in hearer.events()]
    assert [headers["time_us"] for headers in events] == [1_000_001, 1_000_002, 1_000_003]


def test_observers_hear_only_of_queues_that_get_a_message(peer: Peer, hearer: Hearer) -> None:
    peer.publish("q", b"1", headers={"CC": ["nowhere"]})
    peer.publish("nowhere", b"2")
    assert [headers["routed_queues"] for _, headers, _ in hearer.events()] == [["q"], []]


def test_a_message_has_one_number_in_all_its_queues(peer: Peer, hearer: Hearer) -> None:
    peer.declare("r")
    for queue in ("q", "r"):
        peer.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    peer.publish("k", b"1", exchange="amq.fanout")
    peer.get("q")
    peer.get("r")
    assert hearer.story() == [("publish.amq.fanout", 1), ("deliver.q", 1), ("deliver.r", 1)]


def test_a_traced_ack_names_connection_and_user(peer: Peer, hearer: Hearer) -> None:
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=0, multiple=True))
    key, headers, body = hearer.events()[-1]
    assert (key, body) == ("ack.q", b"")
    assert headers == {
        "exchange_name": "",
        "routing_keys": ["q"],
        "node": "rabbit@localhost",
        **who(peer),
        "consumer_tag": "",
        "message_number": 1,
        "time_us": 1_000_003,
    }


def test_a_traced_delivery_has_its_no_ack_flag(peer: Peer, hearer: Hearer) -> None:
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.get("q", no_ack=True)
    peer.get("q", no_ack=False)
    told = [headers["no_ack"] for key, headers, _ in hearer.events() if key == "deliver.q"]
    assert told == [True, False]


@pytest.mark.parametrize("requeue", [True, False])
def test_a_traced_nack_has_its_requeue_flag(peer: Peer, hearer: Hearer, requeue: bool) -> None:
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.send(Basic.Reject(delivery_tag=1, requeue=requeue))
    key, headers, _ = hearer.events()[-1]
    assert (key, headers["requeue"]) == ("nack.q", requeue)


def test_settlements_of_a_transaction_are_traced_at_the_commit(peer: Peer, hearer: Hearer) -> None:
    peer.publish("q", b"1")
    peer.call(Tx.Select())
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=1))
    assert hearer.keys() == ["publish.", "deliver.q"]
    peer.call(Tx.Commit())
    assert hearer.keys() == ["ack.q"]


def test_a_traced_confirm_has_its_publish_number(peer: Peer, hearer: Hearer) -> None:
    peer.declare("short", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.call(Confirm.Select())
    peer.publish("short", b"1")
    peer.expect(Basic.Ack)
    peer.publish("short", b"2")
    peer.expect(Basic.Nack)
    told = [
        (key, headers["message_number"], headers["delivery_tag"], headers["ack"])
        for key, headers, _ in hearer.events()
        if key.startswith("confirm.")
    ]
    assert told == [("confirm.", 1, 1, True), ("confirm.", 2, 2, False)]


def test_starting_and_stopping_a_trace_keeps_confirm_numbers(lab: Lab, peer: Peer) -> None:
    peer.call(Confirm.Select())
    for number, change in enumerate((None, lab.vhost.tracing.start, lab.vhost.tracing.stop), 1):
        if change is not None:
            change()
        peer.publish("q", b"1")
        assert peer.expect(Basic.Ack).delivery_tag == number


def test_a_traced_return_has_its_reason(peer: Peer, hearer: Hearer) -> None:
    peer.publish("nowhere", b"1", mandatory=True)
    peer.expect(Basic.Return)
    (publish, _, _), (key, headers, _) = hearer.events()
    assert publish == "publish."
    assert (key, headers["reply_code"], headers["reply_text"]) == ("return.", 312, "NO_ROUTE")


def test_a_message_keeps_its_number_when_a_quorum_queue_adds_its_count(peer: Peer, hearer: Hearer) -> None:
    peer.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("quorum", b"1")
    for tag in (1, 2, 3):
        peer.get("quorum", no_ack=False)
        peer.send(Basic.Nack(delivery_tag=tag, requeue=True))
    assert {number for _, number in hearer.story()} == {1}


def test_messages_of_a_closed_channel_come_back_without_a_nack(peer: Peer, hearer: Hearer) -> None:
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.call(Channel.Close(200, "", 0, 0))
    peer.open_channel(1)
    peer.get("q")
    assert hearer.story() == [("publish.", 1), ("deliver.q", 1), ("requeue.q", 1), ("deliver.q", 1)]
