"""A connection of the scenarios' client, at a broker."""

from __future__ import annotations

import socket
import threading

import pytest

from amqp_broker.conformance.lab import STOPPED, Lab
from amqp_broker.conformance.received import Stopped
from amqp_broker.conformance.scenario_connection import Connection
from amqp_broker.conformance.transcript import Transcript
from tests.conformance.broker_under_test import BrokerUnderTest, transcript


def test_another_protocol_header_is_answered_with_the_right_one_and_the_end(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        connection = lab.dial()
        connection.send_header(b"AMQP\x01\x01\x00\x0a")
        connection.expect_end()

    assert transcript(play, broker) == [
        r"a> (protocol header b'AMQP\x01\x01\x00\n')",
        r"a0< protocol header b'AMQP\x00\x00\t\x01'",
        "a< the broker closed the socket",
    ]


def test_a_clean_close_ends_all_channels(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        connection = lab.connect()
        channel = connection.channel()
        connection.close()
        assert not channel.is_open

    assert [line.split(" ")[1] for line in transcript(play, broker)] == ["connection.close", "connection.close-ok"]


def test_a_channel_that_is_refused_stops_the_scenario(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        connection = lab.connect()
        connection.channel(5)
        connection.channel(5)

    refusal = "a0< connection.close reply_code=504 reply_text=\"CHANNEL_ERROR - second 'channel.open' seen\""
    assert transcript(play, broker)[-1].startswith(f"{STOPPED} channel 5 cannot be opened after {refusal}")


def test_a_reset_is_the_end_of_a_connection(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.connect().abort()

    assert transcript(play, broker) == ["a> (resets the socket)"]


def test_a_silent_broker_stops_the_scenario() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Connection(silent.getsockname(), "a", Transcript("x."), silence_s=0.05)
        with pytest.raises(Stopped, match="the broker has been silent on connection a"):
            connection.send_header()
        connection.hang_up()


def test_frames_are_read_whole_from_pieces() -> None:
    heartbeat = b"\x08\x00\x00\x00\x00\x00\x00\xce"

    def send() -> None:
        client, _ = server.accept()
        with client:
            for octet in heartbeat * 2:
                client.sendall(bytes([octet]))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=send)
        thread.start()
        connection = Connection(server.getsockname(), "a", lines := Transcript("x."))
        connection.expect_end()
        thread.join()
    assert lines.lines == ["a0< heartbeat", "a0< heartbeat", "a< the broker closed the socket"]
