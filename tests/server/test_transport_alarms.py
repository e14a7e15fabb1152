"""A connection that an alarm blocks is not read until the alarm clears."""

from __future__ import annotations

from pamqp import commands

from amqp_broker.server.server import Server
from tests.client import Client
from tests.peer import publish_bytes
from tests.running import RunningServer
from tests.server.stalling import transport_of


def set_alarm(running: RunningServer, is_on: bool) -> None:
    def change(server: Server) -> None:
        server.broker.set_alarm("memory", is_on)
        server.flush()

    running.ask(change)


def test_a_blocked_publisher_is_read_after_the_alarm(running: RunningServer, client: Client) -> None:
    client.declare("q")
    client.send_bytes(publish_bytes("q", b"1"))
    client.call(commands.Channel.Flow(True))
    set_alarm(running, True)
    assert running.ask(lambda server: transport_of(client)(server).is_reading)
    client.send_bytes(publish_bytes("q", b"2"))
    running.until(lambda server: not transport_of(client)(server).is_reading)
    with Client(running.port).open() as other:
        other.call(commands.Basic.Get(queue="q", no_ack=True))
        assert other.expect_body() == b"1"
        assert isinstance(other.call(commands.Basic.Get(queue="q", no_ack=True)), commands.Basic.GetEmpty)
    set_alarm(running, False)
    client.call(commands.Basic.Get(queue="q"))
    assert client.expect_body() == b"2"
