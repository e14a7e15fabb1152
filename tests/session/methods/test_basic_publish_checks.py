"""Checks of basic.publish, in RabbitMQ's order and words; CC and BCC."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pamqp import frame
from pamqp.commands import Basic, Channel, Connection, Exchange, Queue

from amqp_broker.broker.admin.access import IMPERSONATOR, Permission
from tests.peer import Lab, Peer, publish_bytes


def refusal(peer: Peer, code: int = 406) -> str:
    """The explanation of the channel.close that a publish got; the channel is open again."""
    close = peer.expect(Channel.Close)
    assert close.reply_code == code
    assert (close.class_id, close.method_id) == (60, 40)
    peer.send(Channel.CloseOk())
    peer.open_channel(1)
    text: str = close.reply_text.partition(" - ")[2]
    return text


def bodies(peer: Peer, queue: str) -> list[bytes]:
    found = []
    while (got := peer.get(queue)) is not None:
        found.append(got[1].body)
    return found


# Size


@pytest.mark.parametrize(
    ("size", "read_size"), [(1001, 1_000_000), (1001, 1000), (300_000, 1_000_000), (300_000, 1000)]
)
def test_a_message_above_the_maximum_is_refused_when_it_is_whole(size: int, read_size: int) -> None:
    peer = Lab(message_bytes_max=1000).connect()
    peer.declare("q")
    peer.publish("q", bytes(1000))
    data = publish_bytes("q", bytes(size))
    for start in range(0, len(data), read_size):
        peer.send_bytes(data[start : start + read_size])
    assert refusal(peer) == f"message size {size} is larger than configured max size 1000"
    assert bodies(peer, "q") == [bytes(1000)]


def test_the_body_of_a_message_above_the_maximum_is_not_kept(lab: Lab) -> None:
    peer = Lab(message_bytes_max=1000).connect()
    data = publish_bytes("q", bytes(300_000), frame_size=10_000)
    peer.send_bytes(data[:-1])
    assembly = peer.session.channels[1].assembly
    assert assembly is not None
    assert not assembly._pieces


def test_the_size_is_checked_before_everything_else() -> None:
    peer = Lab(message_bytes_max=1000).connect()
    peer.publish("q", bytes(1001), exchange="missing", expiration="abc", user_id="nobody")
    assert refusal(peer) == "message size 1001 is larger than configured max size 1000"


def test_an_invalid_publish_is_reported_before_its_size() -> None:
    peer = Lab(message_bytes_max=1000).connect()
    peer.send_bytes(publish_bytes("q", bytes(2000), immediate=True))
    assert peer.expect_connection_close(540) == "NOT_IMPLEMENTED - immediate=true"


# Exchange and permission


@pytest.mark.parametrize("name", ["missing", "amq.fanout\r\n", "é"])
def test_a_missing_exchange_closes_the_channel(peer: Peer, name: str) -> None:
    data = publish_bytes("", b"x", exchange="@").replace(b"\x01@", bytes([len(name.encode())]) + name.encode())
    size = len(name.encode()) - 1
    peer.send_bytes(data[:6] + bytes([data[6] + size]) + data[7:])
    close = peer.expect(Channel.Close)
    assert close.reply_text == f"NOT_FOUND - no exchange '{name}' in vhost '/'"


def test_an_internal_exchange_takes_nothing_from_clients(peer: Peer) -> None:
    peer.call(Exchange.Declare(exchange="inner", exchange_type="fanout", internal=True))
    for _ in range(2):
        peer.publish(exchange="inner")
        assert refusal(peer, 403) == "cannot publish to internal exchange 'inner' in vhost '/'"
    peer.publish(exchange="amq.rabbitmq.trace")
    assert refusal(peer, 403) == "cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"


@pytest.mark.parametrize(("exchange", "shown"), [("", "amq.default"), ("amq.fanout", "amq.fanout"), ("x", "x")])
def test_publishing_needs_permission_to_write(lab: Lab, peer: Peer, exchange: str, shown: str) -> None:
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission(".*", "", ".*"))
    peer.publish(exchange=exchange)
    assert refusal(peer, 403) == f"write access to exchange '{shown}' in vhost '/' refused for user 'guest'"


def test_a_withdrawn_permission_applies_at_once(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"1")
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission(".*", "^x$", ".*"))
    peer.publish("q", b"2")
    refusal(peer, 403)
    assert bodies(peer, "q") == [b"1"]


def test_immediate_is_not_implemented(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q")
    peer.send_bytes(publish_bytes("q", immediate=True))
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (540, "NOT_IMPLEMENTED - immediate=true")
    assert (close.class_id, close.method_id) == (60, 40)


# Expiration


@pytest.mark.parametrize(
    ("expiration", "wrong"),
    [
        ("abc", "no_integer"),
        (" 10", "no_integer"),
        ("+-1", "no_integer"),
        ("-", "no_integer"),
        ("-1", "{value_negative,-1}"),
        ("1.5", '{leftover_string,".5"}'),
        ("10x", '{leftover_string,"x"}'),
        ("10 ", '{leftover_string," "}'),
        ("315360000001", "{value_too_large,315360000001}"),
    ],
)
def test_an_expiration_must_be_a_number_from_0(peer: Peer, expiration: str, wrong: str) -> None:
    peer.declare("q")
    for _ in range(2):
        peer.publish("q", b"x", expiration=expiration)
        assert refusal(peer) == f"invalid expiration '{expiration}': {wrong}"
    assert bodies(peer, "q") == []


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (b"\x01\x00", "invalid expiration '': no_integer"),
        (b"\x00\x10", "user_id property set to '' but authenticated user was 'guest'"),
    ],
)
def test_an_empty_expiration_or_user_id_is_invalid(peer: Peer, flags: bytes, text: str) -> None:
    # pamqp leaves empty properties out, so this header is written by hand.
    header = b"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c" + bytes(10) + flags + b"\x00\xce"
    peer.send_bytes(frame.marshal(Basic.Publish(routing_key="q"), 1) + header)
    assert refusal(peer) == text


@pytest.mark.parametrize("expiration", ["60000", "060000", "+60000", "315360000000"])
def test_an_expiration_that_is_a_number_is_passed_on(peer: Peer, expiration: str) -> None:
    """Without sign and zeros: mc_amqpl.erl 4.0.5, protocol_state."""
    peer.declare("q")
    peer.publish("q", b"x", expiration=expiration)
    got = peer.get("q")
    assert got is not None
    assert got[1].properties.expiration == expiration.lstrip("+0")


def test_an_expiration_of_minus_0_is_0(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"x", expiration="-0")
    assert peer.get("q") is None


# User id


@pytest.mark.parametrize("user_id", ["somebody", "Guest", "guest "])
def test_the_user_id_must_be_the_name_of_the_user(peer: Peer, user_id: str) -> None:
    peer.declare("q")
    peer.publish("q", b"x", user_id="guest")
    peer.publish("q", b"x", user_id=user_id)
    assert refusal(peer) == f"user_id property set to '{user_id}' but authenticated user was 'guest'"
    assert bodies(peer, "q") == [b"x"]


def test_an_impersonator_may_have_any_user_id(lab: Lab, peer: Peer) -> None:
    lab.broker.users["guest"].tags = (IMPERSONATOR,)
    peer.declare("q")
    peer.publish("q", b"x", user_id="somebody")
    assert bodies(peer, "q") == [b"x"]


def test_checks_run_in_rabbitmqs_order(lab: Lab, peer: Peer) -> None:
    everything: dict[str, Any] = {"expiration": "abc", "headers": {"CC": 70_000, "BCC": "x"}, "user_id": "nobody"}
    texts = []
    peer.publish(exchange="missing", **everything)
    texts.append(refusal(peer, 404))
    for fault in ("expiration", "headers", "user_id"):
        peer.publish(exchange="amq.fanout", **everything)
        texts.append(refusal(peer))
        del everything[fault]
    assert texts == [
        "no exchange 'missing' in vhost '/'",
        "invalid expiration 'abc': no_integer",
        'invalid message: {unacceptable_type_in_header,"CC",signedint}',
        "user_id property set to 'nobody' but authenticated user was 'guest'",
    ]
    peer.publish(exchange="amq.fanout")
    peer.expect_nothing()


def test_permission_is_checked_before_the_existence_of_the_exchange(lab: Lab, peer: Peer) -> None:
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission(".*", "^a", ".*"))
    peer.publish(exchange="missing")
    assert refusal(peer, 403).startswith("write access to exchange 'missing'")
    peer.publish(exchange="also missing")
    assert refusal(peer, 404) == "no exchange 'also missing' in vhost '/'"


def test_messages_after_a_refused_publish_are_lost(peer: Peer) -> None:
    peer.declare("q")
    peer.send_bytes(
        publish_bytes("q", b"before") + publish_bytes("q", b"wrong", expiration="abc") + publish_bytes("q", b"after")
    )
    refusal(peer)
    assert bodies(peer, "q") == [b"before"]


# CC and BCC


@pytest.fixture
def sender(peer: Peer) -> Peer:
    for queue in ("to", "cc", "bcc"):
        peer.declare(queue)
    return peer


@pytest.mark.parametrize(
    ("headers", "receivers", "seen"),
    [
        ({}, "to", {}),
        ({"CC": ["cc"]}, "to cc", {"CC": ["cc"]}),
        ({"BCC": ["bcc"]}, "to bcc", {}),
        ({"CC": ["cc"], "BCC": ["bcc"], "keep": 1}, "to cc bcc", {"CC": ["cc"], "keep": 1}),
        ({"CC": ["to", "to"], "BCC": ["to"]}, "to", {"CC": ["to", "to"]}),
        ({"CC": []}, "to", {"CC": []}),
        ({"cc": ["cc"], "Bcc": 1}, "to", {"cc": ["cc"], "Bcc": 1}),
        ({"CC": [1, "cc", None]}, "to cc", {"CC": [1, "cc", None]}),
    ],
)
def test_cc_and_bcc_are_further_routing_keys_and_bcc_is_removed(
    sender: Peer, headers: dict[str, Any], receivers: str, seen: dict[str, Any]
) -> None:
    for _ in range(2):
        sender.publish("to", b"x", headers=headers, message_id="m")
        for queue in ("to", "cc", "bcc"):
            got = sender.get(queue)
            assert (got is not None) == (queue in receivers.split()), queue
            if got is not None:
                assert (got[1].properties.headers or {}) == seen
                assert (got[1].body, got[1].properties.message_id) == (b"x", "m")
                assert got[0].routing_key == "to"


def test_bcc_alone_makes_a_message_routable(sender: Peer) -> None:
    sender.publish("missing", b"x", mandatory=True, headers={"BCC": ["bcc"]})
    sender.publish("missing", b"x", mandatory=True, headers={"CC": ["cc"]})
    sender.expect_nothing()
    assert bodies(sender, "bcc") == bodies(sender, "cc") == [b"x"]


def test_bcc_is_removed_from_returned_messages(peer: Peer) -> None:
    peer.publish("missing", b"x", mandatory=True, headers={"CC": ["missing 2"], "BCC": ["missing 3"]})
    assert peer.expect(Basic.Return).routing_key == "missing"
    assert peer.expect_content().properties.headers == {"CC": ["missing 2"]}


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize(
    ("value", "kind"),
    [("key", "longstr"), (70_000, "signedint"), (None, "void"), ({"k": 1}, "table"), (True, "bool"), (1.5, "float")],
)
def test_cc_and_bcc_must_be_arrays(peer: Peer, name: str, value: Any, kind: str) -> None:
    peer.publish("missing", headers={name: value})
    assert refusal(peer) == f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'


def test_cc_is_routed_on_every_exchange_type(sender: Peer) -> None:
    sender.call(Queue.Bind(queue="cc", exchange="amq.topic", routing_key="a.*"))
    sender.publish("b", b"x", exchange="amq.topic", headers={"CC": ["c", "a.b"]})
    assert bodies(sender, "cc") == [b"x"]


def test_a_headers_exchange_checks_the_headers_of_each_message(sender: Peer) -> None:
    sender.call(Queue.Bind(queue="to", exchange="amq.headers", arguments={"x-match": "all", "n": 1}))
    for number in (1, 2, 1):
        sender.publish("k", b"%d" % number, exchange="amq.headers", headers={"n": number})
    sender.publish("k", b"none", exchange="amq.headers")
    assert bodies(sender, "to") == [b"1", b"1"]


def test_headers_decide_at_a_headers_exchange_behind_another_exchange(sender: Peer) -> None:
    sender.call(Queue.Bind(queue="to", exchange="amq.headers", arguments={"n": 1}))
    sender.call(Exchange.Bind(destination="amq.headers", source="amq.fanout"))
    for number in (1, 2):
        sender.publish("k", b"%d" % number, exchange="amq.fanout", headers={"n": number}, mandatory=True)
    assert sender.expect(Basic.Return).exchange == "amq.fanout"
    assert sender.expect_content().body == b"2"
    assert bodies(sender, "to") == [b"1"]


def test_a_refused_publish_does_not_affect_the_next(peer: Peer) -> None:
    peer.declare("q")
    peer.send_bytes(frame.marshal(Basic.Publish(exchange="missing", routing_key="q"), 1))
    peer.send_bytes(publish_bytes("q", b"x")[len(frame.marshal(Basic.Publish(routing_key="q"), 1)) :])
    refusal(peer, 404)
    peer.publish("q", b"y")
    assert bodies(peer, "q") == [b"y"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_header_that_is_not_finite_closes_the_connection(peer: Peer, value: float) -> None:
    peer.declare("q")
    for number in (1.5, 2.5, value, 3.5):
        peer.publish("q", b"%f" % number, headers={"n": number})
    assert peer.expect_connection_close(541) == "INTERNAL_ERROR"
    assert [message.body for message in peer.lab.vhost.queues["q"].messages()] == [b"1.500000", b"2.500000"]


def test_a_missing_exchange_comes_before_a_header_that_is_not_finite(peer: Peer) -> None:
    peer.publish("q", b"x", exchange="missing", headers={"n": math.nan})
    refusal(peer, 404)
