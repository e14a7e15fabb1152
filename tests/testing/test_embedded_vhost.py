from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import aio_pika
import pika
import pytest
from pika.exceptions import AMQPError

from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.testing import EmbeddedBroker, LeakWarning, UnusedFaultWarning
from amqp_broker.testing.external_broker import ExternalBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


Connect = Callable[..., pika.BlockingConnection]


def connect(url: str, name: str = "") -> pika.BlockingConnection:
    parameters = pika.URLParameters(url)
    parameters.client_properties = {"connection_name": name} if name else None
    return pika.BlockingConnection(parameters)


@pytest.fixture
def leave_open() -> Iterator[Connect]:
    """Open connections that are closed after the test, and not at any time by the garbage collector."""
    with ExitStack() as stack:

        def open_one(url: str, name: str = "") -> pika.BlockingConnection:
            connection = connect(url, name)
            stack.callback(close, connection)
            return connection

        yield open_one


def close(connection: pika.BlockingConnection) -> None:
    with suppress(AMQPError):
        connection.close()


def test_a_fault_rule_that_hit_nothing_is_warned_of_at_the_end_of_the_block(broker: EmbeddedBroker) -> None:
    with pytest.warns(UnusedFaultWarning, match="hit nothing: there was no ack") as caught, broker.vhost() as vhost:
        vhost.faults.add("drop_ack")
    assert caught[0].filename == __file__
    assert len(vhost.unused_faults) == 1
    with warnings.catch_warnings(action="error"), broker.vhost(warns=False) as silent:
        silent.faults.add("drop_ack")


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_clock_that_a_test_has_frozen_runs_again_afterwards(is_frozen: bool) -> None:
    with EmbeddedBroker() as broker:
        if is_frozen:
            broker.clock.freeze()
        with broker.vhost() as vhost:
            broker.clock.freeze()
            vhost.reset()
        assert broker.ask(lambda server: server.clock.is_frozen) is is_frozen


def test_a_vhost_exists_only_in_its_block(broker: EmbeddedBroker) -> None:
    with broker.vhost("shop/eu") as vhost:
        assert (str(vhost), vhost.name) == ("shop/eu", "shop/eu")
        assert vhost.url.endswith("/shop%2Feu")
        connect(vhost.url).close()
    assert vhost.leaks == []
    assert "shop/eu" not in broker.ask(lambda server: list(server.broker.vhosts))


def test_an_existing_vhost_is_not_lent(broker: EmbeddedBroker) -> None:
    outside = ExternalBroker(broker.url, broker.management_url)
    for lending in (broker, outside):
        with pytest.raises(ValueError, match="vhost '/' exists already"), lending.vhost("/"):
            pass
    assert (list(broker.lent), broker.queues("/")) == ([], {})


def test_vhosts_have_different_names(broker: EmbeddedBroker) -> None:
    with broker.vhost() as one, broker.vhost() as other:
        assert one.name != other.name


def test_an_open_connection_is_a_leak_with_its_details(broker: EmbeddedBroker, leave_open: Connect) -> None:
    with pytest.warns(LeakWarning, match="'my app'") as caught, broker.vhost() as vhost:  # noqa: PT031
        channel = leave_open(vhost.url, "my app").channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"m")
        channel.basic_get("q")
        tag = channel.basic_consume("q", print)
    assert caught[0].filename == __file__
    [leak] = vhost.leaks
    assert "connection 'my app' (127.0.0.1:" in leak
    assert f"is open, with 1 channel, consumer '{tag}' of 'q', 1 unacknowledged message" in leak


def test_without_warns_leaks_issue_no_warning(broker: EmbeddedBroker, leave_open: Connect) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with broker.vhost(warns=False) as vhost:
            leave_open(vhost.url)
    assert len(vhost.leaks) == 1


def test_queues_and_connections_in_other_vhosts_are_leaks(broker: EmbeddedBroker) -> None:
    with connect(broker.url) as before:
        before.channel().queue_declare("before")
        with broker.vhost(warns=False) as outer, broker.vhost(warns=False) as vhost:
            with connect(outer.url) as other:
                other.channel().queue_declare("of another test")
            held = connect(broker.url)
            held.channel().queue_declare("left")
        assert sorted(leak for leak in vhost.leaks if "connection" not in leak) == [
            "queue 'left' in vhost '/' is left behind"
        ]
        assert [leak for leak in vhost.leaks if leak.endswith("(vhost '/')")]
        held.close()
    broker.reset("/")


def test_a_deleted_or_protected_vhost_is_no_error(broker: EmbeddedBroker) -> None:
    with broker.vhost() as vhost:
        broker.ask(lambda server: server.broker.delete_vhost(vhost.name))
    with broker.vhost() as vhost:
        protected = Metadata(is_protected_from_deletion=True)
        broker.ask(lambda server: server.broker.vhost(vhost.name).set_metadata(protected))
    assert vhost.name not in broker.ask(lambda server: list(server.broker.vhosts))


def test_the_vhost_is_deleted_after_a_failed_test(broker: EmbeddedBroker) -> None:
    with pytest.raises(ZeroDivisionError), broker.vhost() as vhost:
        raise ZeroDivisionError
    assert vhost.name not in broker.ask(lambda server: list(server.broker.vhosts))


def test_a_wait_for_a_depth_says_what_the_depth_was(broker: EmbeddedBroker) -> None:
    with broker.vhost() as vhost, connect(vhost.url) as connection:
        with pytest.raises(AssertionError, match="no queue 'orders' in vhost"):
            vhost.wait_depth("orders", 0, timeout_s=0)
        channel = connection.channel()
        channel.queue_declare("orders")
        for _ in range(3):
            channel.basic_publish("", "orders", b"")
        vhost.wait_depth("orders", 3)
        channel.basic_get("orders")
        message = "^3 ready wanted in queue 'orders', which has 2 ready and 1 unacked after 0.01 s$"
        with pytest.raises(AssertionError, match=message):
            vhost.wait_depth("orders", 3, timeout_s=0.01)
        with pytest.raises(AssertionError, match="did you mean 'orders'"):
            vhost.wait_depth("order", 3, timeout_s=0)


async def test_a_depth_is_awaited_while_an_asyncio_client_publishes(broker: EmbeddedBroker) -> None:
    with broker.vhost() as vhost:
        waiting = asyncio.create_task(vhost.wait_depth_async("orders", 1))
        async with await aio_pika.connect(vhost.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders", durable=True)
            await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
            await waiting


def test_the_report_names_a_late_log_and_a_moved_clock() -> None:
    with EmbeddedBroker() as broker, broker.vhost() as vhost, connect(vhost.url) as connection:
        assert vhost.failure_report() == ""
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "nowhere", b"")
        vhost.event_log()
        broker.clock.advance("30m")
        clock, publish, log = vhost.failure_report().splitlines()
    assert clock.startswith("(the clock was moved by 30 min; it was ")
    assert clock.endswith(" UTC at the end, and times are by this clock)")
    assert publish.split()[:2] == ["#1", "publish"]
    assert log.split()[0] == "event_log"
    assert log.endswith("and 1 message was published before")


def test_a_stopped_broker_is_no_error() -> None:
    with EmbeddedBroker() as broker:
        with broker.vhost() as vhost:
            broker.stop()
        assert vhost.failure_report() == ""
