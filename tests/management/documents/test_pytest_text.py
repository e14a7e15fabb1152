"""Texts of tests that were made from what a broker has seen: pytest runs them, and they pass."""

from __future__ import annotations

import contextlib
import decimal
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.management.documents.pytest_text import pytest_text
from amqp_broker.server.server import Server
from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.embedded_vhost import EmbeddedVHost
from tests.present import present

pytest_plugins = ["pytester"]

Client = Callable[[BlockingChannel], None]
HOSTILE = "'''\"\"\"\\'); import os #\u202e{x}%s\u05d0"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def vhost(broker: EmbeddedBroker) -> Iterator[EmbeddedVHost]:
    with broker.vhost() as vhost:
        vhost.event_log()
        yield vhost


@pytest.fixture
def channel(vhost: EmbeddedVHost) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        yield connection.channel()


def text_of(vhost: EmbeddedVHost, channel: BlockingChannel) -> str:
    """Return the test of all messages in the log."""

    def make(server: Server) -> str:
        owner = server.broker.vhosts[vhost.name]
        log = present(server.broker.event_logs.of(owner))
        lives = [log.timeline(event.number) for event in log.events if event.kind == "publish"]
        return pytest_text(lives, owner, log)

    channel.connection.channel()
    return vhost.broker.ask(make)


def declare_work(channel: BlockingChannel, **arguments: Any) -> None:
    channel.exchange_declare("jobs", "topic", durable=True)
    channel.queue_declare("failed", durable=True)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}
    channel.queue_declare("work", durable=True, arguments={**letters, **arguments})
    channel.queue_bind("work", "jobs", "job.*")


def acked(channel: BlockingChannel) -> None:
    declare_work(channel)
    properties = pika.BasicProperties(
        message_id="m-1", headers={"a": [1, {"b": b"\x00"}]}, delivery_mode=2, timestamp=9
    )
    channel.basic_publish("jobs", "job.a", b'it\'s a "body"\n\xff', properties)
    for settle in (lambda tag: channel.basic_nack(tag, requeue=True), channel.basic_ack):
        method, _, _ = channel.basic_get("work")
        settle(method.delivery_tag)


def rejected(channel: BlockingChannel) -> None:
    declare_work(channel, **{"x-queue-type": "quorum"})
    channel.confirm_delivery()
    channel.basic_publish("jobs", "job.b", b"b", mandatory=True)
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("jobs", "typo", b"c", mandatory=True)
    method, _, _ = channel.basic_get("work")
    channel.basic_reject(method.delivery_tag, requeue=False)


def parked(channel: BlockingChannel) -> None:
    """Publish a dead letter once more as it is: its header x-death has a time."""
    declare_work(channel)
    channel.queue_declare("parked", durable=True)
    channel.basic_publish("jobs", "job.p", b"p", pika.BasicProperties(headers={"price": decimal.Decimal("1.50")}))
    method, _, _ = channel.basic_get("work")
    channel.basic_reject(method.delivery_tag, requeue=False)
    method, properties, body = channel.basic_get("failed")
    channel.basic_publish("", "parked", present(body), properties)
    channel.basic_ack(method.delivery_tag)


def dropped(channel: BlockingChannel) -> None:
    declare_work(channel, **{"x-max-length": 2})
    for body in (b"1st", b"2nd", b"3rd"):
        channel.basic_publish("jobs", "job.c", body)


def through_exchanges(channel: BlockingChannel) -> None:
    channel.exchange_declare("in", "fanout")
    channel.exchange_declare("side", "headers")
    channel.exchange_bind("side", "in")
    channel.queue_declare("history", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_bind("history", "in")
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, "side", arguments={"x-match": "all", "kind": "x"})
    channel.basic_publish("in", "", b"d", pika.BasicProperties(headers={"kind": "x"}))
    channel.basic_get(name, auto_ack=True)


def hostile(channel: BlockingChannel) -> None:
    channel.exchange_declare(HOSTILE, arguments={"x": HOSTILE})
    channel.queue_declare(HOSTILE)
    # RabbitMQ removes line breaks from names alone.
    channel.queue_bind(HOSTILE, HOSTILE, HOSTILE + "\n")
    channel.basic_publish(HOSTILE, HOSTILE + "\n", HOSTILE.encode() + b"\n", pika.BasicProperties(type=HOSTILE))
    channel.queue_purge(HOSTILE)


def run(pytester: pytest.Pytester, text: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest("-p", "no:cacheprovider")


@pytest.mark.parametrize(
    "client", [acked, rejected, parked, dropped, through_exchanges, hostile], ids=lambda one: one.__name__
)
def test_the_test_of_what_clients_did_passes(
    client: Client, vhost: EmbeddedVHost, channel: BlockingChannel, pytester: pytest.Pytester
) -> None:
    client(channel)
    run(pytester, text_of(vhost, channel)).assert_outcomes(passed=1)


@pytest.mark.parametrize("difference", [("b'2nd'", "b'another'"), ("'job.c', b'1st'", "'typo', b'1st'")])
def test_it_fails_when_a_message_is_different(
    difference: tuple[str, str], vhost: EmbeddedVHost, channel: BlockingChannel, pytester: pytest.Pytester
) -> None:
    dropped(channel)
    run(pytester, text_of(vhost, channel).replace(*difference, 1)).assert_outcomes(failed=1)


def test_the_test_of_a_retry_lets_the_time_pass(
    broker: EmbeddedBroker, vhost: EmbeddedVHost, channel: BlockingChannel, pytester: pytest.Pytester
) -> None:
    back = {"x-message-ttl": 60_000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
    declare_work(channel, **{"x-dead-letter-routing-key": "retry"})
    channel.queue_declare("retry", arguments=back)
    channel.basic_publish("", "work", b"f")
    method, _, _ = channel.basic_get("work")
    channel.basic_nack(method.delivery_tag, requeue=False)
    channel.connection.channel()
    broker.clock.advance(60_000)
    method, _, _ = channel.basic_get("work")
    channel.basic_ack(method.delivery_tag)
    text = text_of(vhost, channel)
    # The broker may record the dead letter some ms after the queue has looked at the clock.
    assert "clock.advance(60100)" in text or "clock.advance(60000)" in text
    run(pytester, text).assert_outcomes(passed=1)


def test_the_test_has_the_faults_that_struck(
    vhost: EmbeddedVHost, channel: BlockingChannel, pytester: pytest.Pytester
) -> None:
    declare_work(channel)
    confirming = channel.connection.channel()
    confirming.confirm_delivery()
    vhost.faults.add("confirm_nack", times=1)
    with pytest.raises(pika.exceptions.NackError):
        confirming.basic_publish("jobs", "job.a", b"refused")
    vhost.faults.add("return", times=1, code=313, text="NO_CONSUMERS")
    with pytest.raises(pika.exceptions.UnroutableError):
        confirming.basic_publish("jobs", "job.a", b"returned", mandatory=True)
    vhost.faults.add("confirm_delay", times=1, delay_ms=101)
    confirming.basic_publish("jobs", "job.a", b"late")
    vhost.faults.add("confirm_drop", times=1)
    vhost.faults.add("close_channel", on="confirm", times=1)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        confirming.basic_publish("jobs", "job.a", b"never confirmed")
    channel.basic_publish("jobs", "job.a", b"without a confirm")
    text = text_of(vhost, channel)
    assert "faults.add('confirm_delay', times=1, delay_ms=100)  # it was 101" in text
    assert "faults.add('return', times=1, code=313, text='NO_CONSUMERS')" in text
    assert "does not repeat the faults close_channel" in text
    run(pytester, text).assert_outcomes(passed=1)
    run(pytester, text.replace("faults.add('return'", "faults.add('confirm_nack'", 1)).assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("rule", "mandatory"),
    [
        ({"action": "confirm_drop"}, False),
        ({"action": "confirm_nack"}, False),
        ({"action": "confirm_nack"}, True),
        ({"action": "return"}, True),
        ({"action": "return", "is_routed": True}, True),
    ],
    ids=str,
)
def test_a_message_that_a_fault_struck_has_a_test_of_its_own(
    vhost: EmbeddedVHost, channel: BlockingChannel, pytester: pytest.Pytester, rule: dict[str, Any], mandatory: bool
) -> None:
    declare_work(channel)
    confirming = channel.connection.channel()
    confirming.confirm_delivery()
    vhost.faults.add(times=1, **rule)
    # pika's own method would wait for the answer.
    confirming._impl.basic_publish("jobs", "job.a", b"x", mandatory=mandatory)
    channel.connection.process_data_events(0)
    text = text_of(vhost, channel)
    assert "channel.queue_bind(queue='work', exchange='jobs'" in text
    run(pytester, text).assert_outcomes(passed=1)


def test_a_delivery_that_a_fault_keeps_back_has_no_test_until_it_is_made(
    vhost: EmbeddedVHost, channel: BlockingChannel, pytester: pytest.Pytester
) -> None:
    declare_work(channel)
    held = vhost.faults.add("hold_delivery", queue="work")
    channel.basic_consume("work", lambda *_: None)
    channel.basic_publish("", "work", b"x")
    channel.connection.process_data_events(0)
    with pytest.raises(InvalidParameter, match="a fault keeps back a delivery of message"):
        text_of(vhost, channel)
    vhost.faults.remove(held)
    run(pytester, text_of(vhost, channel)).assert_outcomes(passed=1)


@pytest.mark.parametrize("action", ["cut", "close_channel"])
def test_a_publish_that_the_broker_never_took_has_no_test(
    vhost: EmbeddedVHost, channel: BlockingChannel, action: str
) -> None:
    declare_work(channel)
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as other:
        vhost.faults.add(action, on="publish", times=1)
        other.channel().basic_publish("jobs", "job.a", b"x")
        with contextlib.suppress(pika.exceptions.AMQPError):
            other.process_data_events(1)

    def make(server: Server) -> str:
        owner = server.broker.vhosts[vhost.name]
        log = present(server.broker.event_logs.of(owner))
        return pytest_text([log.timeline(log.events[0].number)], owner, log)

    reason = f"a test cannot repeat that the fault '{action}' comes before the broker takes message "
    with pytest.raises(InvalidParameter, match=reason):
        vhost.broker.ask(make)
