from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pika
import pytest

from amqp_broker.cli.own import assistant_tools
from amqp_broker.cli.own.assistant_tools import (
    BODY_BYTES_MAX,
    EVENTS_MAX,
    QUEUES_MAX,
    ClockTools,
    EventLogTools,
    FaultTools,
    ReadingTools,
)
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.embedded_vhost import EmbeddedVHost


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(event_log=True) as broker:
        yield broker


@pytest.fixture
def vhost(broker: EmbeddedBroker) -> Iterator[EmbeddedVHost]:
    with broker.vhost() as vhost:
        yield vhost


@pytest.fixture
def tools(broker: EmbeddedBroker) -> ReadingTools:
    return ReadingTools("", broker.management_url)


def publish(vhost: EmbeddedVHost, queue: str, *bodies: bytes) -> None:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue)
        for body in bodies:
            channel.basic_publish("", queue, body)


def test_a_queue_has_its_numbers_bindings_and_consumers(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("a/b", arguments={"x-max-length": 9})
        channel.queue_bind("a/b", "amq.topic", "order.#")
        channel.basic_consume("a/b", print, consumer_tag="worker")
        found = tools.queue("a/b", vhost.name)
    assert (found["messages_ready"], found["arguments"]["x-max-length"]) == (0, 9)
    assert [row["source"] for row in found["bindings"]] == ["", "amq.topic"]
    assert [row["consumer_tag"] for row in found["consumers"]] == ["worker"]


def test_queues_with_most_messages_come_first(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    publish(vhost, "orders.few", b"1")
    publish(vhost, "orders.many", b"1", b"2")
    publish(vhost, "other")
    found = tools.queues(vhost.name, "orders")
    assert [(row["name"], row["messages_ready"]) for row in found["queues"]] == [("orders.many", 2), ("orders.few", 1)]
    assert found["more"] == 0


def test_the_number_of_queues_that_are_left_out_is_given(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        for number in range(QUEUES_MAX + 3):
            channel.queue_declare(f"q{number}")
    found = tools.queues(vhost.name)
    assert (len(found["queues"]), found["more"]) == (QUEUES_MAX, 3)


def test_a_message_that_reached_no_queue_needs_attention(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    publish(vhost, "orders")
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        connection.channel().basic_publish("", "ordrs", b"x")
    [finding] = tools.attention(vhost.name)["findings"]
    assert (finding["kind"], "did you mean 'orders'?" in finding["sentence"]) == ("unroutable", True)


def test_peeked_messages_stay_and_bodies_are_cut(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    publish(vhost, "orders", *[b"x" * (BODY_BYTES_MAX + 1)] * 3)
    found = tools.peek("orders", vhost.name, count=2)
    assert [len(message["payload"]) for message in found["messages"]] == [BODY_BYTES_MAX] * 2
    assert vhost.depth("orders") == 3


def test_a_message_is_explained_with_its_events(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    publish(vhost, "orders", b"order 1")
    [message] = tools.why("orders", vhost.name, "order 1")["messages"]
    assert message["state"] == "ready"
    assert [event.split()[1] for event in message["events"]] == ["publish", "confirm"]
    timeline = tools.message(message["message_number"])
    assert [event.split()[1] for event in timeline["events"]] == ["publish", "confirm"]


async def test_events_are_waited_for(
    tools: ReadingTools, vhost: EmbeddedVHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assistant_tools, "SLICE_S", 0.01)
    publish(vhost, "orders", b"1", b"2")
    found = await tools.events(vhost.name, "publish", queue="orders", count=2, wait_s=60)
    assert found["count"] == 2
    with pytest.raises(CommandError, match="3 wanted, 2 found"):
        await tools.events(vhost.name, "publish", queue="orders", count=3)
    third = asyncio.create_task(tools.events(vhost.name, "publish", queue="orders", count=3, wait_s=60))
    await asyncio.sleep(0.05)
    publish(vhost, "orders", b"3")
    assert len((await third)["messages"]) == 3


async def test_the_newest_events_are_listed(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    publish(vhost, "orders", *[b"%d" % number for number in range(EVENTS_MAX + 5)])
    found = await tools.events(vhost.name, "publish")
    assert (len(found["messages"]), found["older"]) == (EVENTS_MAX, 5)
    assert found["messages"][-1].endswith(f"'{EVENTS_MAX + 4}'")
    publish(vhost, "orders", b"last")
    [last] = (await tools.events(vhost.name, "publish", since=found["next"]))["messages"]
    assert last.endswith("'last'")


async def test_waiting_needs_a_number_of_events(tools: ReadingTools) -> None:
    with pytest.raises(CommandError, match="wait_s needs count"):
        await tools.events(wait_s=1)


def test_the_topology_has_bindings_and_no_messages(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", arguments={"x-dead-letter-exchange": "amq.fanout"})
        channel.queue_bind("orders", "amq.topic", "order.#")
        [found] = tools.connections(vhost.name)["connections"]
    topology = tools.topology(vhost.name)
    assert [(row["source"], row["routing_keys"]) for row in topology["bindings"]] == [("amq.topic", ["order.#"])]
    assert topology["queues"][0]["dead_letter_exchange"] == "amq.fanout"
    assert "lives" not in topology
    assert (found["vhost"], found["client_properties"]["product"]) == (vhost.name, "Pika Python Client Library")


def test_the_broker_says_which_rabbitmq_it_behaves_like(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    found = tools.overview()
    assert found["behaves_like"].startswith("RabbitMQ 4.")
    assert vhost.name in found["vhosts"]
    assert any(listener.startswith("amqp on 127.0.0.1:") for listener in found["listeners"])


def test_advice_is_given_by_habit(tools: ReadingTools, vhost: EmbeddedVHost) -> None:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        for _ in range(200):
            channel.basic_get("orders")
    assert "polling" in {row["habit"] for row in tools.advice(vhost.name)["habits"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("queue", ("typo",), "there is no queue 'typo' in vhost '/', or no such vhost"),
        ("peek", ("typo",), "NOT_FOUND - no queue 'typo' in vhost '/'"),
        ("peek", ("q", "typo"), "there is no queue 'q' in vhost 'typo', or no such vhost"),
        ("queues", ("",), "'' cannot be asked for: it stands for another place in an address"),
        ("queue", ("..",), "'..' cannot be asked for: it stands for another place in an address"),
        ("why", ("typo",), "no queue 'typo' in vhost '/'"),
        ("why", ("q", "typo"), "there is no vhost 'typo'"),
        ("queues", ("typo",), "there is no vhost 'typo'"),
        ("topology", ("typo",), "there is no vhost 'typo'"),
        ("connections", ("typo",), "there is no vhost 'typo'"),
        ("attention", ("typo",), "no vhost 'typo'"),
        ("message", (10**9,), "no message 1000000000 in the event logs"),
    ],
)
def test_a_missing_object_is_named(
    tools: ReadingTools, tool: str, arguments: tuple[object, ...], sentence: str
) -> None:
    with pytest.raises(CommandError) as caught:
        getattr(tools, tool)(*arguments)
    assert str(caught.value) == sentence


def test_a_fault_is_added_and_removed(broker: EmbeddedBroker, vhost: EmbeddedVHost) -> None:
    tools = FaultTools("", broker.management_url)
    rule = tools.add_fault("confirm_nack", {"vhost": vhost.name, "times": 1})
    assert [row["id"] for row in tools.fault_rules()["rules"]] == [rule["id"]]
    assert "confirm_nack" in {row["action"] for row in tools.fault_actions()["actions"]}
    assert tools.remove_fault(rule["id"]) == {"rules": []}
    with pytest.raises(CommandError, match=f"there is no fault rule {rule['id']}"):
        tools.remove_fault(rule["id"])


def test_a_wrong_fault_is_refused_with_its_reason(broker: EmbeddedBroker) -> None:
    with pytest.raises(CommandError, match="tims"):
        FaultTools("", broker.management_url).add_fault("confirm_nack", {"tims": 1})
    with pytest.raises(CommandError, match="not one of the fields"):
        FaultTools("", broker.management_url).add_fault("confirm_nack", {"action": "cut"})


def test_the_clock_is_moved_frozen_and_resumed(broker: EmbeddedBroker) -> None:
    tools = ClockTools("", broker.management_url)
    before = tools.clock()["offset_ms"]
    assert tools.advance_clock("30m")["offset_ms"] - before == pytest.approx(1_800_000, abs=5)
    assert tools.freeze_clock()["is_frozen"]
    assert not tools.resume_clock()["is_frozen"]
    with pytest.raises(CommandError, match="soon"):
        tools.advance_clock("soon")


async def test_an_event_log_is_started() -> None:
    with EmbeddedBroker() as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        connection.channel().queue_declare("orders", durable=True)
        tools = EventLogTools("", broker.management_url)
        with pytest.raises(CommandError, match="call start_event_log"):
            await tools.events()
        with pytest.raises(CommandError, match="call start_event_log"):
            tools.why("orders")
        with pytest.raises(CommandError, match="call start_event_log"):
            tools.message(1)
        assert [log["vhost"] for log in tools.start_event_log()["logs"]] == ["/"]
        assert (await tools.events())["messages"] == []


def test_a_wrong_login_and_missing_rights_are_explained(broker: EmbeddedBroker) -> None:
    broker.ask(lambda server: server.broker.users.add("anna", "secret", tags=("monitoring",)))
    address = broker.management_url.partition("@")[2]
    with pytest.raises(CommandError, match="refuses the user and password"):
        ReadingTools("", f"http://anna:wrong@{address}").attention()
    tools = ReadingTools("", f"http://anna:secret@{address}")
    assert "findings" in tools.attention()
    with pytest.raises(CommandError, match="needs the tag administrator"):
        tools.fault_rules()
