"""Class exchange over the wire."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import base
from pamqp.commands import Basic, Channel, Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.settings.settings import Settings
from tests.peer import Lab, Peer, blamed, shown

DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"
PREDECLARED = ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"]
PREDECLARED += ["amq.rabbitmq.trace", "amq.rabbitmq.event"]


class Declare(Exchange.Declare):
    """exchange.declare with any name: pamqp refuses some that RabbitMQ takes."""

    def validate(self) -> None:
        pass


class Delete(Exchange.Delete):
    def validate(self) -> None:
        pass


def refusal(peer: Peer, method: base.Frame, code: int) -> str:
    """The text of the channel.close that a method got; the channel is open again."""
    peer.send(method)
    close = peer.expect(Channel.Close)
    assert close.reply_code == code
    assert blamed(close) == method.index
    peer.send(Channel.CloseOk())
    peer.open_channel(1)
    text: str = close.reply_text
    return text


def is_routed(peer: Peer, exchange: str, key: str = "") -> bool:
    peer.publish(key, exchange=exchange, mandatory=True)
    if not peer.session.outbox.pieces:
        return True
    peer.expect(Basic.Return)
    peer.expect_content()
    return False


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_an_exchange_of_each_type_is_declared_and_deleted(peer: Peer, kind: str) -> None:
    for _ in range(2):
        peer.call(Exchange.Declare(exchange="x", exchange_type=kind))
    peer.call(Exchange.Declare(exchange="x", passive=True))
    peer.call(Exchange.Delete(exchange="x"))
    text = refusal(peer, Exchange.Declare(exchange="x", passive=True), 404)
    assert text == "NOT_FOUND - no exchange 'x' in vhost '/'"


@pytest.mark.parametrize("name", PREDECLARED)
def test_predeclared_exchanges_are_durable_and_cannot_be_deleted(peer: Peer, name: str) -> None:
    internal = name.startswith("amq.rabbitmq.")
    kind = "topic" if internal else {"amq.match": "headers"}.get(name, name.partition(".")[2])
    peer.call(Exchange.Declare(exchange=name, exchange_type=kind, durable=True, internal=internal))
    text = refusal(peer, Exchange.Delete(exchange=name), 403)
    assert text == f"ACCESS_REFUSED - deletion of system exchange '{name}' in vhost '/' not allowed"


def test_names_with_the_reserved_prefix_are_the_brokers(peer: Peer) -> None:
    text = "ACCESS_REFUSED - exchange name 'amq.foo' contains reserved prefix 'amq.*'"
    assert refusal(peer, Exchange.Declare(exchange="amq.foo"), 403) == text
    refusal(peer, Exchange.Declare(exchange="amq.foo", passive=True), 404)


@pytest.mark.parametrize(
    ("kind", "text"), [("nonsense", "unknown exchange type 'nonsense'"), ("", "invalid exchange type ''")]
)
def test_an_unknown_type_is_refused_before_anything_else(peer: Peer, kind: str, text: str) -> None:
    peer.call(Exchange.Declare(exchange="x"))
    for name in ("x", "y", "amq.foo", ""):
        declare = Exchange.Declare(exchange=name, exchange_type=kind)
        assert refusal(peer, declare, 406) == f"PRECONDITION_FAILED - {text}"
    peer.call(Exchange.Declare(exchange="x", exchange_type=kind, passive=True, durable=True, internal=True))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"exchange_type": "fanout", "durable": True}, "'type' for {}: received 'fanout' but current is 'direct'"),
        ({"durable": True, "auto_delete": True}, "'durable' for {}: received 'true' but current is 'false'"),
        ({"auto_delete": True, "internal": True}, "'auto_delete' for {}: received 'true' but current is 'false'"),
        (
            {"internal": True, "arguments": {"alternate-exchange": "y"}},
            "'internal' for {}: received 'true' but current is 'false'",
        ),
        (
            {"arguments": {"alternate-exchange": "y"}},
            "'alternate-exchange' for {}: received the value 'y' of type 'longstr' but current is none",
        ),
    ],
)
def test_redeclaring_an_exchange_with_other_attributes_is_refused(
    peer: Peer, changed: dict[str, Any], text: str
) -> None:
    peer.call(Exchange.Declare(exchange="x"))
    expected = "PRECONDITION_FAILED - inequivalent arg " + text.format("exchange 'x' in vhost '/'")
    assert refusal(peer, Exchange.Declare(exchange="x", **changed), 406) == expected


def test_other_arguments_are_not_compared(peer: Peer) -> None:
    variants: list[FieldTable] = [{"x-unknown": 1}, {"x-unknown": "other"}, {}]
    for arguments in variants:
        peer.call(Exchange.Declare(exchange="x", arguments=arguments))


@pytest.mark.parametrize(("value", "kind"), [(True, "bool"), (70_000, "signedint"), (None, "void"), ([], "array")])
def test_the_name_of_an_alternate_exchange_must_be_a_string(peer: Peer, value: Any, kind: str) -> None:
    text = refusal(peer, Exchange.Declare(exchange="x", arguments={"alternate-exchange": value}), 406)
    assert (
        text == f"PRECONDITION_FAILED - invalid type '{kind}' for arg 'alternate-exchange' in exchange 'x' in vhost '/'"
    )


def test_unroutable_messages_go_to_the_alternate_exchange(peer: Peer) -> None:
    peer.call(Exchange.Declare(exchange="x", arguments={"alternate-exchange": "amq.fanout"}))
    peer.declare("q")
    assert not is_routed(peer, "x")
    peer.call(Queue.Bind(queue="q", exchange="amq.fanout"))
    assert is_routed(peer, "x")
    peer.publish("k", b"1", exchange="x")
    peer.send(Basic.Get(queue="q", no_ack=True))
    assert peer.expect(Basic.GetOk).exchange == "x"


@pytest.mark.parametrize("name", ["x\r\n", "\rx\n", "x"])
def test_line_ends_are_stripped_from_exchange_names(lab: Lab, peer: Peer, name: str) -> None:
    peer.send(Declare(exchange=name))
    peer.expect(Exchange.DeclareOk)
    assert "x" in lab.vhost.exchanges
    peer.send(Delete(exchange=name))
    peer.expect(Exchange.DeleteOk)
    assert "x" not in lab.vhost.exchanges


@pytest.mark.parametrize("name", ["é", "with space", "x" * 255, "q!§$%&"])
def test_an_exchange_may_have_any_name(lab: Lab, peer: Peer, name: str) -> None:
    peer.send(Declare(exchange=name))
    peer.expect(Exchange.DeclareOk)
    assert name in lab.vhost.exchanges


@pytest.mark.parametrize(
    "method",
    [
        Exchange.Declare(exchange=""),
        Exchange.Declare(exchange="", passive=True),
        Exchange.Delete(exchange=""),
        Exchange.Bind(source="", destination="amq.fanout"),
        Exchange.Bind(source="amq.fanout", destination=""),
        Exchange.Unbind(source="", destination="amq.fanout"),
        Exchange.Unbind(source="amq.fanout", destination=""),
    ],
    ids=shown,
)
def test_operations_on_the_default_exchange_are_refused(peer: Peer, method: base.Frame) -> None:
    assert refusal(peer, method, 403) == DEFAULT


def test_the_exchanges_of_a_broker_are_limited(lab: Lab, peer: Peer) -> None:
    limit = len(lab.vhost.exchanges)
    lab.broker.settings = Settings(exchange_max=limit)
    text = refusal(peer, Exchange.Declare(exchange="x"), 406)
    assert text == (
        f"PRECONDITION_FAILED - cannot declare exchange 'x' in vhost '/': exchange limit of {limit} is reached"
    )
    peer.call(Exchange.Declare(exchange="amq.direct", durable=True))


def test_deleting_a_missing_exchange_succeeds(peer: Peer) -> None:
    peer.call(Exchange.Delete(exchange="missing", if_unused=True))


def test_an_exchange_in_use_is_not_deleted_if_unused(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"))
    peer.call(Queue.Bind(queue="q", exchange="x"))
    text = refusal(peer, Exchange.Delete(exchange="x", if_unused=True), 406)
    assert text == "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"
    peer.call(Queue.Unbind(queue="q", exchange="x"))
    peer.call(Exchange.Bind(source="amq.fanout", destination="x"))
    peer.call(Exchange.Delete(exchange="x", if_unused=True))


def test_exchanges_are_bound_to_exchanges(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"))
    peer.call(Queue.Bind(queue="q", exchange="x"))
    for _ in range(2):
        peer.call(Exchange.Bind(source="amq.direct", destination="x", routing_key="k"))
    assert is_routed(peer, "amq.direct", "k")
    assert not is_routed(peer, "amq.direct", "other")
    peer.call(Exchange.Unbind(source="amq.direct", destination="x", routing_key="k"))
    assert not is_routed(peer, "amq.direct", "k")


@pytest.mark.parametrize(
    ("source", "destination", "missing"),
    [("missing", "amq.fanout", "missing"), ("amq.fanout", "missing", "missing"), ("missing", "absent", "missing")],
)
def test_binding_a_missing_object_is_refused_and_unbinding_it_succeeds(
    peer: Peer, source: str, destination: str, missing: str
) -> None:
    text = refusal(peer, Exchange.Bind(source=source, destination=destination), 404)
    assert text == f"NOT_FOUND - no exchange '{missing}' in vhost '/'"
    peer.call(Exchange.Unbind(source=source, destination=destination))


def test_an_auto_delete_exchange_is_deleted_with_its_last_binding(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x", auto_delete=True))
    for key in ("one", "two"):
        peer.call(Queue.Bind(queue="q", exchange="x", routing_key=key))
    peer.call(Queue.Unbind(queue="q", exchange="x", routing_key="one"))
    assert "x" in lab.vhost.exchanges
    peer.call(Queue.Unbind(queue="q", exchange="x", routing_key="two"))
    assert "x" not in lab.vhost.exchanges


def test_deleting_an_exclusive_queue_deletes_its_auto_delete_exchanges(lab: Lab, peer: Peer, other: Peer) -> None:
    other.call(Exchange.Declare(exchange="x", exchange_type="fanout", auto_delete=True))
    other.call(Exchange.Declare(exchange="y", exchange_type="fanout", auto_delete=True))
    other.call(Exchange.Bind(source="x", destination="y"))
    peer.declare("q", exclusive=True)
    peer.call(Queue.Bind(queue="q", exchange="y"))
    peer.disconnect()
    assert sorted(lab.vhost.exchanges) == sorted(["", *PREDECLARED])
