"""Shovels between real brokers in this process: over sockets, and within one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from amqp_broker.broker.access import Permission, User
from amqp_broker.errors import InvalidParameter
from amqp_broker.server.server import Server
from tests.client import Client
from tests.running import RunningServer

SHOVEL = {"src-uri": "amqp:///mine", "src-queue": "q", "dest-queue": "other"}
COUNT = 3000


def shovel(running: RunningServer, name: str = "s", **given: Any) -> None:
    value = {"src-uri": "amqp://", **{key.replace("_", "-"): item for key, item in given.items()}}
    running.ask(lambda server: server.broker.vhosts["/"].parameters.set("shovel", name, value))


def depth(server: Server, name: str) -> int:
    queue = server.broker.vhosts["/"].queues.get(name)
    return -1 if queue is None else queue.ready_count


def fill(running: RunningServer, name: str, count: int = COUNT, message: bytes = b"m") -> None:
    with Client(running.port).open() as client:
        client.declare(name, durable=True)
        for _ in range(count):
            client.publish(name, message)
        client.sync()


def states(running: RunningServer) -> list[tuple[str, str]]:
    return running.ask(lambda server: [(one.state, one.reason) for one in server.shovels])


def test_a_queue_moves_to_another_broker() -> None:
    with RunningServer() as here, RunningServer() as there:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="other")
        there.until(lambda server: depth(server, "other") == COUNT)
        here.until(lambda server: depth(server, "q") == 0)
        assert states(here) == [("running", "")]


def test_a_queue_moves_within_a_broker_and_the_shovel_goes_when_it_is_done() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other", src_delete_after="queue-length")
        here.until(lambda server: depth(server, "other") == COUNT and not list(server.shovels))
        assert here.ask(lambda server: server.broker.vhosts["/"].parameters.of("shovel")) == []
        assert here.ask(lambda server: len(server.broker.connections)) == 0


def test_large_messages_move_without_filling_memory_between_the_two() -> None:
    with RunningServer() as here, RunningServer() as there:
        fill(here, "q", 200, b"x" * 300_000)
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="other")
        there.until(lambda server: depth(server, "other") == 200)


def test_without_acks_a_shovel_within_a_broker_keeps_up() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other", ack_mode="no-ack")
        here.until(lambda server: depth(server, "other") == COUNT)


def test_a_broker_that_is_not_there_is_told_and_found_when_it_comes() -> None:
    with RunningServer() as here:
        with RunningServer() as there:
            port = there.port
        fill(here, "q", 10)
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{port}", dest_queue="other", reconnect_delay=1)
        here.until(lambda server: any("cannot connect to amqp://127.0.0.1" in one.reason for one in server.shovels))
        with RunningServer(port=port) as there:
            there.until(lambda server: depth(server, "other") == 10)


def test_a_parameter_that_is_cleared_ends_its_shovel() -> None:
    with RunningServer() as here, RunningServer() as there:
        fill(here, "q", 1)
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="other")
        there.until(lambda server: depth(server, "other") == 1)
        here.ask(lambda server: server.broker.vhosts["/"].parameters.clear("shovel", "s"))
        there.until(lambda server: not server.broker.connections)
        here.until(lambda server: not server.broker.connections)


def test_a_shovel_goes_with_its_vhost() -> None:
    with RunningServer() as here:
        fill(here, "q", 1)
        value = {"src-uri": "amqp:///v", "src-queue": "q", "dest-uri": "amqp:///v", "dest-queue": "other"}

        def start(server: Server) -> None:
            server.broker.add_vhost("v").parameters.set("shovel", "s", value)

        here.ask(start)
        here.until(lambda server: [one.state for one in server.shovels] == ["running"])
        here.ask(lambda server: server.broker.delete_vhost("v"))
        assert states(here) == []


def test_an_alarm_holds_up_a_shovel_within_the_broker() -> None:
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
    """Put messages into the source past the alarm, which concerns publishers."""

    def push(server: Server) -> None:
        queue = server.broker.vhosts["/"].queues["q"]
        other = server.broker.vhosts["/"].queues["other"]
        for message in list(other.messages())[:5]:
            queue.push(message)
        server.flush()

    running.ask(push)


def test_a_definition_that_makes_no_sense_starts_nothing() -> None:
    with RunningServer() as here:
        with pytest.raises(InvalidParameter, match="Must specify"):
            shovel(here, dest_uri="amqp://")
        assert states(here) == []


def test_a_restart_of_a_shovel_goes_on_where_it_was() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: depth(server, "other") > 0)
        assert here.ask(lambda server: server.shovels.restart("/", "s"))
        here.until(lambda server: depth(server, "other") >= COUNT and depth(server, "q") == 0)
        assert not here.ask(lambda server: server.shovels.restart("/", "nobody"))


def test_a_destination_that_is_not_right_gets_no_more_connections_each_time() -> None:
    with RunningServer() as here, RunningServer() as there:
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_exchange="none")
        for _ in range(3):
            there.until(lambda server: server.broker.counters.connections_created)
            here.until(lambda server: [one.state for one in server.shovels] == ["terminated"])
            there.until(lambda server: not server.transports)
            here.advance(1000)


def test_a_node_that_takes_no_clients_has_no_shovels_either() -> None:
    with RunningServer() as here:
        fill(here, "q", 1)
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: depth(server, "other") == 1)
        here.ask(lambda server: server.pauses.begin("stopped"))
        here.until(lambda server: server.node.state == "stopped")
        here.advance(5000)
        assert states(here) == [("terminated", "")]
        assert here.ask(lambda server: len(server.broker.connections)) == 0
        here.ask(lambda server: server.pauses.begin("running"))
        here.until(lambda server: [one.state for one in server.shovels] == ["running"])


@pytest.mark.parametrize("uris", [["amqp:///other"], ["amqp:///mine", "amqp:///other"]])
def test_a_shovel_opens_no_vhost_that_its_owner_cannot(uris: list[str]) -> None:
    def refuse(server: Server) -> None:
        mine = server.broker.add_vhost("mine")
        server.broker.add_vhost("other")
        owner = User("owner", permissions={"mine": Permission()})
        mine.parameters.set("shovel", "s", {**SHOVEL, "dest-uri": "amqp:///mine"}, owner)
        with pytest.raises(InvalidParameter, match='user "owner" may not connect to vhost "other"'):
            mine.parameters.set("shovel", "s", {**SHOVEL, "dest-uri": uris}, owner)

    with RunningServer() as here:
        here.ask(refuse)


def test_a_shovel_within_the_broker_holds_nobody_up() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="q")
        here.until(lambda server: any(one.forwarded_count > COUNT for one in server.shovels))

        async def forwarded_in_ten_turns(server: Server) -> int:
            before = sum(one.forwarded_count for one in server.shovels)
            for _ in range(10):
                await asyncio.sleep(0)
            return sum(one.forwarded_count for one in server.shovels) - before

        # All that is on its way at once would be the prefetch in each turn of the loop.
        asked = here.ask(lambda server: asyncio.ensure_future(forwarded_in_ten_turns(server)))
        here.until(lambda server: asked.done())
        assert asked.result() < 10 * 1000
