from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.amqp.fields import encode_table
from amqp_broker.amqp.frames import HEARTBEAT_FRAME, PROTOCOL_HEADER
from amqp_broker.amqp.message import FRAME, FRAME_BODY
from amqp_broker.compare.connection_pair import UNNAMED, user_of
from tests.compare.three import FRAME_MAX, Three, said


def close(text: str = "no", code: int = 504) -> bytes:
    return said(commands.Connection.Close, 0, reply_code=code, reply_text=text, class_id=20, method_id=10)


def test_a_user_and_a_vhost_that_the_upstream_accepts_are_accepted_locally() -> None:
    three = Three(user="anna").open()
    assert three.let_in_users == ["anna"]
    assert three.furnished == [("anna", "/")]


def test_a_refused_login_is_played_unchanged() -> None:
    three = Three()
    three.client(PROTOCOL_HEADER)
    three.both(said(commands.Connection.Start, 0, mechanisms="PLAIN", locales="en_US"))
    three.played()
    login = said(commands.Connection.StartOk, 0, client_properties={}, mechanism="PLAIN", response="\0anna\0wrong")
    three.client(login)
    assert three.octets() == b""
    three.upstream(close("ACCESS_REFUSED", 403))
    assert three.octets() == login
    three.local(close("ACCESS_REFUSED", 403))
    three.connection.finish(three.now)
    assert three.let_in_users == []
    assert three.found == []


def test_a_login_that_only_the_local_broker_refuses_is_a_difference() -> None:
    three = Three()
    three.client(PROTOCOL_HEADER)
    three.both(said(commands.Connection.Start, 0, mechanisms="PLAIN", locales="en_US"))
    three.client(said(commands.Connection.StartOk, 0, client_properties={}, mechanism="X", response="?"))
    three.upstream(said(commands.Connection.Tune, 0, channel_max=2047, frame_max=FRAME_MAX))
    three.local(close("COMMAND_INVALID", 503))
    three.wait()
    assert [upstream for upstream, _ in three.found] == ["nothing"]


@pytest.mark.parametrize(
    ("mechanism", "response", "user"),
    [
        ("PLAIN", b"\0anna\0secret", "anna"),
        ("AMQPLAIN", encode_table({"LOGIN": "anna", "PASSWORD": "secret"})[4:], "anna"),
        ("AMQPLAIN", b"nonsense", UNNAMED),
        ("PLAIN", b"nonsense", UNNAMED),
        ("EXTERNAL", b"", UNNAMED),
    ],
)
def test_the_name_of_a_login_is_read(mechanism: str, response: bytes, user: str) -> None:
    assert user_of(mechanism, response) == user


def test_the_clients_limits_are_capped_by_the_local_ones() -> None:
    three = Three().open()
    three = Three()
    three.client(PROTOCOL_HEADER)
    three.both(said(commands.Connection.Start, 0, mechanisms="PLAIN"))
    three.client(said(commands.Connection.StartOk, 0, client_properties={}, mechanism="PLAIN", response="\0a\0b"))
    three.upstream(said(commands.Connection.Tune, 0, channel_max=0, frame_max=1 << 20, heartbeat=60))
    three.local(said(commands.Connection.Tune, 0, channel_max=2047, frame_max=FRAME_MAX, heartbeat=60))
    three.played()
    three.client(said(commands.Connection.TuneOk, 0, channel_max=0, frame_max=1 << 20, heartbeat=60))
    three.client(said(commands.Connection.Open, 0, virtual_host="/"), said(commands.Channel.Open))
    three.upstream(said(commands.Connection.OpenOk, 0))
    tune_ok, _, _ = three.played()
    assert (tune_ok.channel_max, tune_ok.frame_max, tune_ok.heartbeat) == (2047, FRAME_MAX, 0)


def test_a_body_frame_too_large_for_the_local_broker_is_split() -> None:
    three = Three().open(frame_max=8192)
    body = bytes(range(256)) * 64
    publish = said(commands.Basic.Publish, routing_key="q", body=body)
    three.connection._client.frame_max = 1 << 20
    three.client(publish)
    octets = three.octets()
    at, pieces = 0, []
    while at < len(octets):
        kind, _, size = FRAME.unpack_from(octets, at)
        if kind == FRAME_BODY:
            pieces.append(octets[at + 7 : at + 7 + size])
        at += size + 8
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) == 8192 - 8


def test_heartbeats_are_not_played() -> None:
    three = Three().open()
    three.client(HEARTBEAT_FRAME)
    assert three.octets() == b""


def test_octets_that_are_not_amqp_are_played_unchanged() -> None:
    three = Three().open()
    three.client(b"\x2a\0\0\0\0\0\0\xce", b"more")
    assert three.octets() == b"\x2a\0\0\0\0\0\0\xcemore"


def test_equal_connection_closes_are_not_a_difference() -> None:
    three = Three().open()
    three.both(close())
    three.client(said(commands.Connection.CloseOk, 0))
    three.connection.finish(three.now)
    assert three.found == []


def test_a_connection_that_only_the_upstream_closes_is_a_difference() -> None:
    three = Three().open()
    three.client(said(commands.Channel.Open))
    three.upstream(close("second"))
    three.client(said(commands.Connection.CloseOk, 0))
    ((upstream, local),) = three.found
    assert "second" in upstream
    assert local == "nothing"
    assert three.state.report.differences[0].asked == "channel.open"


def test_a_local_channel_close_instead_of_a_connection_close_is_one_difference() -> None:
    three = Three().open()
    three.client(said(commands.Exchange.Declare, exchange="x", exchange_type="none"))
    three.local(said(commands.Channel.Close, reply_code=406, reply_text="no", class_id=40, method_id=10))
    three.upstream(close("unknown", 503))
    three.client(said(commands.Connection.CloseOk, 0))
    three.connection.finish(three.now)
    three.wait()
    ((upstream, local),) = three.found
    assert upstream.startswith("connection.close")
    assert local.startswith("channel.close")


def test_a_connection_that_only_the_local_broker_closes_is_one_difference() -> None:
    three = Three().open()
    three.local(close())
    three.client(said(commands.Queue.Declare, queue="q"))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    three.wait()
    three.wait()
    three.connection.finish(three.now)
    assert [upstream for upstream, _ in three.found] == ["nothing"]


def test_a_connection_that_the_local_broker_drops_is_a_difference() -> None:
    three = Three().open()
    three.connection.local_is_gone(three.now)
    three.wait()
    assert three.found == [("nothing", "closed the connection")]


def test_a_close_by_the_client_is_not_a_difference() -> None:
    three = Three().open()
    three.client(close("bye", 200))
    three.both(said(commands.Connection.CloseOk, 0))
    three.connection.finish(three.now)
    three.wait()
    assert three.found == []


def test_an_unmatched_upstream_answer_is_reported_when_the_client_disconnects() -> None:
    three = Three().open()
    three.client(said(commands.Queue.Declare, queue="q"))
    three.upstream(said(commands.Queue.DeclareOk, queue="q"))
    three.connection.finish(three.now)
    assert [local for _, local in three.found] == ["nothing"]


def test_a_slow_upstream_is_not_a_difference() -> None:
    three = Three().open()
    three.client(said(commands.Queue.Declare, queue="q"))
    three.local(said(commands.Queue.DeclareOk, queue="q"))
    three.wait(3_600_000)
    assert three.found == []
