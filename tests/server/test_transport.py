from __future__ import annotations

import pytest
from pamqp import commands, frame

from amqp_broker.server.server import Server
from amqp_broker.server.transport import LINGER_MS, UNREAD_REPLIES_BYTES_MAX, WRITE_BUFFER_BYTES_HIGH
from amqp_broker.session.session import END_TIMEOUT_MS
from tests.client import PROTOCOL_HEADER, Client
from tests.peer import publish_bytes
from tests.running import RunningServer
from tests.server.stalling import BODY_BYTES, MESSAGES, is_paused, stalled_consumer, transport_of

# Bytes in


def test_frames_may_arrive_in_any_pieces(running: RunningServer) -> None:
    client = Client(running.port)
    for octet in PROTOCOL_HEADER:
        client.send_bytes(bytes([octet]))
    client.expect(commands.Connection.Start, channel=0)
    client.close()
    client = Client(running.port).open()
    client.declare("q")
    for octet in publish_bytes("q", b"hello"):
        client.send_bytes(bytes([octet]))
    client.call(commands.Basic.Get(queue="q"))
    assert client.expect_body() == b"hello"


def test_an_empty_read_loses_nothing(running: RunningServer, client: Client) -> None:
    client.declare("q")
    data = publish_bytes("q", bytes(range(256)) * 300)
    half = len(data) // 2

    def read(server: Server) -> None:
        transport, other = transport_of(client)(server), transport_of(bystander)(server)
        for piece in (data[:half], data[half:]):
            # The read is empty, and another transport uses the buffer next.
            transport.get_buffer(-1)
            other.get_buffer(-1)[:1000] = bytes(1000)
            transport.get_buffer(-1)[: len(piece)] = piece
            transport.buffer_updated(len(piece))

    with Client(running.port).open() as bystander:
        running.ask(read)
    client.call(commands.Basic.Get(queue="q"))
    assert client.expect_body() == bytes(range(256)) * 300


@pytest.mark.parametrize("piece_bytes", [1000, 20_000, 300_000, 700_000])
def test_a_large_body_may_arrive_in_pieces_of_any_size(client: Client, piece_bytes: int) -> None:
    body = bytes(range(256)) * 4000
    client.declare("q")
    data = publish_bytes("q", body) * 2
    for start in range(0, len(data), piece_bytes):
        client.send_bytes(data[start : start + piece_bytes])
    for _ in range(2):
        client.call(commands.Basic.Get(queue="q"))
        assert client.expect_body() == body


def test_the_session_knows_both_addresses_of_its_socket(running: RunningServer, client: Client) -> None:
    name = running.ask(lambda server: transport_of(client)(server).session.name)
    here, there = client.socket.getsockname(), client.socket.getpeername()
    assert name == f"{here[0]}:{here[1]} -> {there[0]}:{there[1]}"


def test_methods_of_one_read_are_answered_in_order(client: Client) -> None:
    client.send(*(commands.Queue.Declare(queue=f"q{number}") for number in range(100)))
    assert [client.expect(commands.Queue.DeclareOk).queue for _ in range(100)] == [f"q{n}" for n in range(100)]


@pytest.mark.parametrize("body_bytes", [10, 100_000])
def test_octets_are_counted_in_both_directions(running: RunningServer, client: Client, body_bytes: int) -> None:
    def counts(server: Server) -> tuple[int, int]:
        session = transport_of(client)(server).session
        return session.received_bytes, session.sent_bytes

    client.declare("q")
    received, sent = running.ask(counts)
    data = publish_bytes("q", bytes(body_bytes)) * 5
    client.send_bytes(data)
    running.until(lambda server: counts(server)[0] - received == len(data))
    client.send_bytes(frame.marshal(commands.Basic.Consume(queue="q", no_ack=True), 1))
    running.until(lambda server: not server.broker.vhosts["/"].queues["q"].ready_count)
    heard = 0
    while heard < running.ask(counts)[1] - sent:
        heard += len(client.socket.recv(1 << 20))
    assert heard == running.ask(counts)[1] - sent > 5 * body_bytes


# Bytes out


@pytest.mark.parametrize("body_bytes", [0, 1, 15_000, 17_000, 200_000, 3_000_000])
def test_messages_of_all_sizes_arrive_complete(client: Client, body_bytes: int) -> None:
    bodies = [bytes([number]) * body_bytes for number in range(4)]
    client.declare("q")
    for body in bodies:
        client.publish("q", body)
    client.consume("q", no_ack=True)
    assert [client.expect_delivery()[1] for _ in bodies] == bodies


def test_a_full_socket_delays_only_its_own_consumer(running: RunningServer, client: Client) -> None:
    stalled = stalled_consumer(running, client, "slow")
    with Client(running.port).open() as other:
        other.declare("fast")
        other.consume("fast", no_ack=True)
        for number in range(100):
            client.publish("fast", str(number).encode())
        assert [other.expect_delivery()[1] for _ in range(100)] == [str(number).encode() for number in range(100)]
    assert running.ask(is_paused(stalled))


def test_messages_for_a_full_socket_stay_in_the_queue(running: RunningServer, client: Client) -> None:
    stalled = stalled_consumer(running, client, "q")
    ready = client.ready_count("q")
    assert ready > 0
    buffered = running.ask(lambda server: transport_of(stalled)(server).socket.get_write_buffer_size())
    assert WRITE_BUFFER_BYTES_HIGH < buffered < MESSAGES * BODY_BYTES // 4
    client.publish("q", bytes(BODY_BYTES))
    assert client.ready_count("q") == ready + 1


def test_a_consumer_that_reads_again_gets_the_rest_in_order(running: RunningServer, client: Client) -> None:
    stalled = stalled_consumer(running, client, "q")
    client.publish("q", b"last")
    received = [stalled.expect_delivery() for _ in range(MESSAGES + 1)]
    assert [delivery.delivery_tag for delivery, _ in received] == list(range(1, len(received) + 1))
    assert {len(body) for _, body in received[:-1]} == {BODY_BYTES}
    assert received[-1][1] == b"last"
    running.until(lambda server: not is_paused(stalled)(server))


def test_another_consumer_gets_the_messages_of_a_stalled_one(running: RunningServer, client: Client) -> None:
    with stalled_consumer(running, client, "q"), Client(running.port).open() as other:
        ready = client.ready_count("q")
        other.consume("q", no_ack=True)
        assert [len(other.expect_delivery()[1]) for _ in range(ready)] == [BODY_BYTES] * ready


def test_a_peer_that_does_not_read_its_replies_is_no_longer_read(running: RunningServer, client: Client) -> None:
    client.declare("q")
    for _ in range(8):
        client.publish("q", bytes(UNREAD_REPLIES_BYTES_MAX // 4))
    client.sync()
    find = transport_of(client)
    client.send(*(commands.Basic.Get(queue="q", no_ack=True) for _ in range(8)))
    running.until(lambda server: not find(server).is_reading)
    request = frame.marshal(commands.Queue.Declare(queue="after"), 1)
    client.send_bytes(request)
    for _ in range(8):
        client.expect(commands.Basic.GetOk)
        client.expect_body()
    # After it has read its replies, it is read again.
    assert client.expect(commands.Queue.DeclareOk).queue == "after"
    running.until(lambda server: find(server).is_reading)


# Ends


def test_unsettled_messages_of_a_lost_client_are_requeued(running: RunningServer, client: Client) -> None:
    with Client(running.port).open() as consumer:
        consumer.declare("q")
        client.publish("q", b"work")
        consumer.consume("q")
        consumer.expect_delivery()
        assert client.ready_count("q") == 0
    running.until(lambda server: len(server.transports) == 1)
    assert client.ready_count("q") == 1


def test_a_half_closed_connection_ends(running: RunningServer, client: Client) -> None:
    with Client(running.port).open() as consumer:
        consumer.declare("q")
        client.publish("q", b"work")
        consumer.consume("q")
        consumer.expect_delivery()
        consumer.socket.shutdown(1)
        assert consumer.expect_end() == b""
    assert client.ready_count("q") == 1


def test_a_half_closed_client_that_does_not_read_holds_no_message(running: RunningServer, client: Client) -> None:
    client.declare("q")
    stalled = stalled_consumer(running, client, "q", no_ack=False)
    held = MESSAGES - client.ready_count("q")
    assert held > 0
    stalled.socket.shutdown(1)
    running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == MESSAGES)


def test_pending_output_is_written_before_the_close(running: RunningServer, client: Client) -> None:
    client.declare("q")
    stalled = stalled_consumer(running, client, "q")
    taken = MESSAGES - client.ready_count("q")
    stalled.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    running.until(lambda server: len(server.broker.connections) == 1)
    assert [len(stalled.expect_delivery()[1]) for _ in range(taken)] == [BODY_BYTES] * taken
    stalled.expect(commands.Connection.CloseOk, channel=0)
    running.live_through(END_TIMEOUT_MS)
    assert stalled.expect_end() == b""


def test_a_peer_may_send_until_it_has_read_the_close(running: RunningServer, client: Client) -> None:
    with Client(running.port).open() as other:
        other.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
        running.until(lambda server: len(server.broker.connections) == 1)
        for tag in range(100):
            other.send(commands.Basic.Ack(tag))
        client.sync()
        other.expect(commands.Connection.CloseOk, channel=0)
        assert running.ask(lambda server: len(server.transports)) == 2
    running.until(lambda server: len(server.transports) == 1)


def test_a_socket_that_never_empties_is_closed_after_a_time(running: RunningServer, client: Client) -> None:
    stalled = stalled_consumer(running, client, "q")
    stalled.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    running.until(lambda server: len(server.broker.connections) == 1)
    running.live_through(END_TIMEOUT_MS)
    running.live_through(LINGER_MS - 1000)
    assert running.ask(lambda server: len(server.transports)) == 2
    running.live_through(1000)
    running.until(lambda server: len(server.transports) == 1)


def test_a_socket_that_empties_in_time_needs_no_timer(running: RunningServer, client: Client) -> None:
    with Client(running.port).open() as other:
        other.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
        other.expect(commands.Connection.CloseOk, channel=0)
        running.live_through(END_TIMEOUT_MS)
        assert other.expect_end() == b""
    running.until(lambda server: len(server.transports) == 1)
    running.live_through(LINGER_MS)
    client.sync()
