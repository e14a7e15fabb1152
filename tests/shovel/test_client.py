from __future__ import annotations

import pytest
from pamqp import body, commands, frame, header

from amqp_broker.message import Address
from amqp_broker.shovel.client import Client, Lost
from tests.shovel.pair import Pair


class Nobody:
    """A peer that wants nothing."""

    def set_up(self, client: Client) -> object:
        return iter(())

    def on_ready(self, client: Client) -> None:
        pass


def client() -> Client:
    return Client(Nobody(), "guest", "guest", "/", 10, "test")  # type: ignore[arg-type] # only what is called


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"AMQP\0\0\x09\x01", "does not speak AMQP"),
        (b"\x01\0\0\0\0\0\x04\0\x0a\0\x0a\x00", "a frame without its end"),
        (b"\x01\0\0\0\0\0\x04\xff\xff\xff\xff\xce", "no AMQP"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak AMQP"),
        (b"\x01\0\0\xff\xff\xff\xff\0", "a frame of 4294967295 octets, and 131072 was agreed on"),
        (b"\x02\0\x01\0\0\0\x01x\xce", "content without a method"),
        (frame.marshal(commands.Connection.Start(mechanisms="EXTERNAL"), 0), "does not take PLAIN, but EXTERNAL"),
        (frame.marshal(commands.Connection.Close(320, "bye", 0, 0), 0), "320 bye"),
    ],
)
def test_what_a_client_cannot_go_on_with_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(Lost, match=reason):
        client().receive(data)


def test_frames_may_come_octet_by_octet() -> None:
    subject = client()
    start = frame.marshal(commands.Connection.Start(mechanisms="PLAIN", server_properties={}), 0)
    for octet in start:
        subject.receive(bytes([octet]))
    start_ok = frame.unmarshal(subject.outbox[1])[2]
    assert isinstance(start_ok, commands.Connection.StartOk)
    assert start_ok.response == "\0guest\0guest"


def test_an_end_that_says_nothing_for_two_intervals_is_gone() -> None:
    subject = client()
    for _ in range(5):
        subject.tick()
    with pytest.raises(Lost, match="nothing was heard for 2 heartbeats of 10 s"):
        subject.tick()


def test_an_end_that_is_not_listened_to_is_not_missed() -> None:
    subject = client()
    for _ in range(20):
        subject.tick(is_listening=False)


def test_an_end_that_says_something_is_there() -> None:
    subject = client()
    for _ in range(20):
        subject.tick()
        subject.receive(b"\x08\0\0\0\0\0\0\xce")


def test_what_comes_back_is_told_with_why() -> None:
    told: list[tuple[str, str, str]] = []

    class Publisher(Nobody):
        def on_returned(self, client: Client, address: Address, reason: str) -> None:
            told.append((address.exchange, address.routing_key, reason))

    subject = Client(Publisher(), "guest", "guest", "/", 10, "test")  # type: ignore[arg-type] # only what is called
    returned = frame.marshal(commands.Basic.Return(312, "NO_ROUTE", "e", "k"), 1)
    content = header.ContentHeader(0, 1, commands.Basic.Properties())
    subject.receive(returned + frame.marshal(content, 1) + frame.marshal(body.ContentBody(b"x"), 1))
    assert told == [("e", "k", "312 NO_ROUTE")]


def test_a_name_that_pamqp_would_refuse_is_declared() -> None:
    pair = Pair()
    pair.shovel(src_queue="päper/≈:1", dest_queue="b c")
    assert "päper/≈:1" in pair.here.vhosts["/"].queues
