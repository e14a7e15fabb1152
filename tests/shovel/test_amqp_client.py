from __future__ import annotations

import pytest
from pamqp import body, commands, frame, header

from amqp_broker.amqp.message import Address, Message
from amqp_broker.shovel.amqp_client import Client, Lost, Peer, Procedure
from tests.shovel.pair import Pair


class IdlePeer:
    """A peer that does nothing."""

    def set_up(self, client: Client) -> Procedure:
        yield from ()

    def on_ready(self, client: Client) -> None:
        pass

    def on_delivery(self, client: Client, tag: int, message: Message) -> None:
        pass

    def on_settled(self, client: Client, tag: int, multiple: bool, is_taken: bool) -> None:
        pass

    def on_returned(self, client: Client, address: Address, reason: str) -> None:
        pass

    def on_blocked(self, client: Client, is_blocked: bool) -> None:
        pass

    def on_cancel(self, client: Client) -> None:
        pass


def client(peer: Peer | None = None) -> Client:
    return Client(peer or IdlePeer(), "guest", "guest", "/", 10, "test")


START = frame.marshal(commands.Connection.Start(mechanisms="PLAIN"), 0)
OPENED = b"".join(
    [START, frame.marshal(commands.Connection.Tune(0, 4096, 0), 0), frame.marshal(commands.Connection.OpenOk(), 0)]
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"AMQP\0\0\x09\x01", "does not speak AMQP"),
        (b"\x01\0\0\0\0\0\x04\0\x0a\0\x0a\x00", "a frame without its end octet"),
        (b"\x01\0\0\0\0\0\x04\xff\xff\xff\xff\xce", "invalid AMQP"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak AMQP"),
        (b"\x01\0\0\xff\xff\xff\xff\0", "a frame of 4294967295 octets; the limit is 131072"),
        (b"\x02\0\x01\0\0\0\x01x\xce", "content without a method"),
        (
            frame.marshal(commands.Connection.Start(mechanisms="EXTERNAL"), 0),
            "does not offer PLAIN; it offers EXTERNAL",
        ),
        (frame.marshal(commands.Connection.Close(320, "bye", 0, 0), 0), "320 bye"),
        (frame.marshal(commands.Connection.Tune(), 0), "sent Connection.Tune instead of Connection.Start"),
        (frame.marshal(commands.Channel.Close(404, "gone", 0, 0), 1), "sent Channel.Close instead of Connection.Start"),
        (START + frame.marshal(commands.Connection.OpenOk(), 0), "sent Connection.OpenOk instead of Connection.Tune"),
        (START + frame.marshal(commands.Connection.Tune(0, 4095, 0), 0), "takes frames of 4095 octets only"),
        (START + frame.marshal(commands.Connection.Tune(0, 8, 0), 0), "takes frames of 8 octets only"),
        (OPENED + frame.marshal(commands.Basic.QosOk(), 1), "sent Basic.QosOk instead of Channel.OpenOk"),
    ],
)
def test_invalid_octets_raise_lost_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Lost, match=reason):
        client().receive(data)


def test_frames_may_arrive_octet_by_octet() -> None:
    subject = client()
    start = frame.marshal(commands.Connection.Start(mechanisms="PLAIN", server_properties={}), 0)
    for octet in start:
        subject.receive(bytes([octet]))
    start_ok = frame.unmarshal(subject.outbox[1])[2]
    assert isinstance(start_ok, commands.Connection.StartOk)
    assert start_ok.response == "\0guest\0guest"


def test_silence_for_two_heartbeat_intervals_raises_lost() -> None:
    subject = client()
    for _ in range(5):
        subject.tick()
    with pytest.raises(Lost, match="no data for 2 heartbeat intervals of 10 s"):
        subject.tick()


def test_silence_of_a_paused_socket_is_ignored() -> None:
    subject = client()
    for _ in range(20):
        subject.tick(is_listening=False)


def test_any_frame_counts_as_a_sign_of_life() -> None:
    subject = client()
    for _ in range(20):
        subject.tick()
        subject.receive(b"\x08\0\0\0\0\0\0\xce")


def test_a_returned_message_is_reported_with_its_reason() -> None:
    returns: list[tuple[str, str, str]] = []

    class Publisher(IdlePeer):
        def on_returned(self, client: Client, address: Address, reason: str) -> None:
            returns.append((address.exchange, address.routing_key, reason))

    subject = client(Publisher())
    returned = frame.marshal(commands.Basic.Return(312, "NO_ROUTE", "e", "k"), 1)
    content = header.ContentHeader(0, 1, commands.Basic.Properties())
    subject.receive(returned + frame.marshal(content, 1) + frame.marshal(body.ContentBody(b"x"), 1))
    assert returns == [("e", "k", "312 NO_ROUTE")]


def test_a_name_that_pamqp_refuses_is_declared() -> None:
    pair = Pair()
    pair.shovel(src_queue="päper/≈:1", dest_queue="b c")
    assert "päper/≈:1" in pair.here.vhosts["/"].queues


def test_a_delivery_with_malformed_properties_is_a_reason_as_soon_as_they_are_read() -> None:
    class ReadingPeer(IdlePeer):
        def on_delivery(self, client: Client, tag: int, message: Message) -> None:
            message.properties()

    delivery = frame.marshal(commands.Basic.Deliver("c", 1, False, "", "q"), 1)
    malformed = b"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c" + bytes(10) + b"\x80\x00\x09\xce"
    with pytest.raises(Lost, match="invalid AMQP: "):
        client(ReadingPeer()).receive(delivery + malformed)
