"""Shovels between brokers over sockets, and within one broker in memory."""

from __future__ import annotations

import asyncio

import pytest

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.server.server import Server
from tests.running import RunningServer
from tests.server.shovels import COUNT, depth, fill, shovel, states


def test_a_queue_is_moved_to_another_broker() -> None:
    with RunningServer() as here, RunningServer() as there:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="other")
        there.until(lambda server: depth(server, "other") == COUNT)
        here.until(lambda server: depth(server, "q") == 0)
        assert states(here) == [("running", "")]


def test_large_messages_are_moved_with_backpressure() -> None:
    with RunningServer() as here, RunningServer() as there:
        fill(here, "q", 200, b"x" * 300_000)
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="other")
        there.until(lambda server: depth(server, "other") == 200)


def test_a_local_shovel_without_acks_moves_all_messages() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other", ack_mode="no-ack")
        here.until(lambda server: depth(server, "other") == COUNT)


def test_a_shovel_reconnects_to_a_broker_that_was_unreachable() -> None:
    with RunningServer() as here:
        with RunningServer() as there:
            port = there.port
        fill(here, "q", 10)
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{port}", dest_queue="other", reconnect_delay=1)
        here.until(lambda server: any("cannot connect to amqp://127.0.0.1" in one.reason for one in server.shovels))
        with RunningServer(port=port) as there:
            there.until(lambda server: depth(server, "other") == 10)


def test_an_alarm_blocks_a_local_shovel() -> None:
    with RunningServer() as here:
        fill(here, "q", 10)
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: depth(server, "other") == 10)
        here.ask(lambda server: server.broker.set_alarm("memory", True))
        here.ask(lambda server: server.flush())
        fill_while_blocked(here)
        here.ask(lambda server: server.broker.set_alarm("memory", False))
        here.ask(lambda server: server.flush())
        here.until(lambda server: depth(server, "other") == 15)


def fill_while_blocked(running: RunningServer) -> None:
    """Put messages into the source directly, since the alarm blocks publishers."""

    def push(server: Server) -> None:
        queue = server.broker.vhosts["/"].queues["q"]
        other = server.broker.vhosts["/"].queues["other"]
        for message in list(other.messages())[:5]:
            queue.push(message)
        server.flush()

    running.ask(push)


def test_a_local_shovel_yields_to_the_event_loop() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="q")
        here.until(lambda server: any(one.forwarded_count > COUNT for one in server.shovels))

        async def forwarded_in_ten_turns(server: Server) -> int:
            before = sum(one.forwarded_count for one in server.shovels)
            for _ in range(10):
                await asyncio.sleep(0)
            return sum(one.forwarded_count for one in server.shovels) - before

        # Otherwise each turn of the loop would move a whole prefetch.
        asked = here.ask(lambda server: asyncio.ensure_future(forwarded_in_ten_turns(server)))
        here.until(lambda server: asked.done())
        assert asked.result() < 10 * 1000


@pytest.mark.parametrize("action", ["cut", "close_channel", "close_connection", "black_hole"])
def test_a_local_shovel_that_a_fault_ends_starts_again(action: str, caplog: pytest.LogCaptureFixture) -> None:
    with RunningServer() as here:
        rule = Rule(action, on="publish", exchange="amq.default", routing_key="other", times=1)
        here.ask(lambda server: server.broker.faults.add(rule))
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other", reconnect_delay=1)
        fill(here, "q", 5)
        here.until(lambda server: rule.hits == 1)
        if action == "black_hole":
            assert here.ask(lambda server: depth(server, "other")) <= 0
            here.ask(lambda server: server.broker.faults.remove(rule.id))
        here.until(lambda server: depth(server, "other") == 5)
    assert "internal error" not in caplog.text
