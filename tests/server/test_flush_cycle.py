"""Between two reads, backlogs are drained, and publishers wait for slower consumers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from amqp_broker.server.flush_cycle import SHARE_BYTES
from amqp_broker.server.server import Server
from tests.client import Client
from tests.peer import publish_bytes
from tests.running import RunningServer
from tests.server.stalling import stalled_consumer, transport_of

# Backlogs


def test_a_backlog_of_many_batches_is_delivered_completely(client: Client) -> None:
    count = 5000
    client.declare("q")
    client.send_bytes(b"".join(publish_bytes("q", b"%d" % number) for number in range(count)))
    client.sync()
    client.consume("q", no_ack=True)
    assert [client.expect_delivery()[1] for _ in range(count)] == [b"%d" % number for number in range(count)]


def test_other_clients_are_served_while_a_backlog_is_delivered(running: RunningServer, client: Client) -> None:
    client.declare("q")
    for _ in range(16):
        client.publish("q", bytes(1_000_000))
    client.consume("q", no_ack=True)
    with Client(running.port).open() as other:
        # `client` has read nothing, so its backlog remains.
        assert other.ready_count("q") > 0
    assert [len(client.expect_delivery()[1]) for _ in range(16)] == [1_000_000] * 16


# Turns


def _at_the_end(server: Server, call: Callable[[], None]) -> None:
    server.broker.turn_ends.append(call)


def test_each_read_is_a_turn(running: RunningServer, client: Client) -> None:
    ended: list[int] = []
    for number in range(2):
        running.ask(partial(_at_the_end, call=partial(ended.append, number)))
        client.sync()
    # Each is called once.
    assert ended == [0, 1]


# Sockets in turn


def test_a_socket_that_has_had_its_share_is_read_again_after_the_others(running: RunningServer, client: Client) -> None:
    client.declare("q")
    find = transport_of(client)
    data = publish_bytes("q", bytes(100_000))

    def flood(server: Server) -> list[bool]:
        transport = find(server)
        is_reading = []
        for _ in range(SHARE_BYTES // len(data) + 1):
            transport.get_buffer(-1)[: len(data)] = data
            transport.buffer_updated(len(data))
            is_reading.append(transport.is_reading)
        return is_reading

    *before, after = running.ask(flood)
    assert all(before)
    assert not after
    assert client.ready_count("q") == len(before) + 1


# Publishers that are faster than their consumers


def throttled(client: Client) -> Callable[[Server], bool]:
    """Throttle a client until consumers read; return whether it is read nevertheless."""
    find = transport_of(client)

    def throttle(server: Server) -> bool:
        transport = find(server)
        server.cycle.throttle(transport)
        return transport.is_reading

    return throttle


def test_a_publisher_is_not_read_while_its_consumers_socket_is_full(running: RunningServer, client: Client) -> None:
    find = transport_of(client)

    def publish(server: Server) -> bool:
        server.cycle.end_throttle()
        transport = find(server)
        data = publish_bytes("q", b"one more")
        transport.get_buffer(-1)[: len(data)] = data
        transport.buffer_updated(len(data))
        return transport.is_reading

    with stalled_consumer(running, client, "q"):
        assert not running.ask(publish)
        # The consumer does not read, so the publisher waits for a limited time.
        client.sync()


def test_publishers_do_not_wait_again_for_stuck_consumers(running: RunningServer, client: Client) -> None:
    assert not running.ask(throttled(client))
    client.sync()
    assert running.ask(throttled(client))


def test_space_in_a_consumers_socket_ends_the_wait(running: RunningServer, client: Client) -> None:
    assert not running.ask(throttled(client))

    def make_room(server: Server) -> bool:
        server.cycle.end_throttle()
        return transport_of(client)(server).is_reading

    assert running.ask(make_room)
    assert not running.ask(throttled(client))
    client.sync()


def test_the_end_of_a_wait_does_not_resume_peers_that_do_not_read(running: RunningServer, client: Client) -> None:
    find = transport_of(client)

    def wait_and_go_on(server: Server) -> bool:
        transport = find(server)
        transport.pause_reading()
        server.cycle.throttle(transport)
        server.cycle.end_throttle()
        return transport.is_reading

    assert not running.ask(wait_and_go_on)


def test_a_publisher_may_disconnect_while_it_waits(running: RunningServer, client: Client) -> None:
    with Client(running.port).open() as publisher:

        def throttle_and_abort(server: Server) -> None:
            throttled(publisher)(server)
            transport_of(publisher)(server).socket.abort()

        running.ask(throttle_and_abort)
    running.until(lambda server: len(server.transports) == 1)
    running.ask(lambda server: server.cycle.end_throttle())
    client.sync()
