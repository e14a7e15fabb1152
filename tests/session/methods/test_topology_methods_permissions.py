"""The permission that each method needs is checked before the object itself."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import base
from pamqp.commands import Basic, Channel, Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.broker.admin.access import Permission
from tests.peer import Lab, Peer, blamed

DEAD_LETTER: FieldTable = {"x-dead-letter-exchange": "dlx"}
ALTERNATE: FieldTable = {"alternate-exchange": "ae"}

# A method, and the permissions it needs in the order they are asked for: action, kind and name.
NEEDS: list[tuple[base.Frame, list[tuple[str, str, str]]]] = [
    (Queue.Declare(queue="q"), [("configure", "queue", "q")]),
    (
        Queue.Declare(queue="q", arguments=DEAD_LETTER),
        [("configure", "queue", "q"), ("read", "queue", "q"), ("write", "exchange", "dlx")],
    ),
    (Queue.Delete(queue="q"), [("configure", "queue", "q")]),
    (Queue.Purge(queue="q"), [("read", "queue", "q")]),
    (Queue.Bind(queue="q", exchange="x"), [("write", "queue", "q"), ("read", "exchange", "x")]),
    (Queue.Unbind(queue="q", exchange="x"), [("write", "queue", "q"), ("read", "exchange", "x")]),
    (Exchange.Declare(exchange="x"), [("configure", "exchange", "x")]),
    (
        Exchange.Declare(exchange="x", arguments=ALTERNATE),
        [("configure", "exchange", "x"), ("read", "exchange", "x"), ("write", "exchange", "ae")],
    ),
    (Exchange.Delete(exchange="x"), [("configure", "exchange", "x")]),
    (Exchange.Bind(source="x", destination="y"), [("write", "exchange", "y"), ("read", "exchange", "x")]),
    (Exchange.Unbind(source="x", destination="y"), [("write", "exchange", "y"), ("read", "exchange", "x")]),
    (Basic.Get(queue="q"), [("read", "queue", "q")]),
    (Basic.Consume(queue="q"), [("read", "queue", "q")]),
]
CASES = [(method, needs, number) for method, needs in NEEDS for number in range(len(needs))]


def permit(lab: Lab, needs: list[tuple[str, str, str]]) -> None:
    """Give guest exactly these permissions."""
    patterns: dict[str, Any] = {"configure": "", "write": "", "read": ""}
    for action in patterns:
        names = [name for needed, _, name in needs if needed == action]
        patterns[action] = f"^({'|'.join(names)})$" if names else ""
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission(**patterns))


@pytest.mark.parametrize(("method", "needs", "number"), CASES, ids=lambda value: getattr(value, "name", None))
def test_permissions_of_a_method_are_checked_in_rabbitmqs_order(
    lab: Lab, peer: Peer, method: base.Frame, needs: list[tuple[str, str, str]], number: int
) -> None:
    permit(lab, needs[:number])
    action, kind, name = needs[number]
    peer.send(method)
    close = peer.expect(Channel.Close)
    assert close.reply_code == 403
    assert close.reply_text == (
        f"ACCESS_REFUSED - {action} access to {kind} '{name}' in vhost '/' refused for user 'guest'"
    )
    assert blamed(close) == method.index


@pytest.mark.parametrize(("method", "needs"), NEEDS, ids=lambda value: getattr(value, "name", None))
def test_a_method_requires_no_further_permissions(
    lab: Lab, peer: Peer, other: Peer, method: base.Frame, needs: list[tuple[str, str, str]]
) -> None:
    if not isinstance(method, (Queue.Declare, Exchange.Declare)):
        peer.declare("q")
        peer.call(Exchange.Declare(exchange="x"))
        peer.call(Exchange.Declare(exchange="y"))
    permit(lab, needs)
    other.call(method)


@pytest.mark.parametrize(
    "method", [Queue.Declare(queue="q", passive=True), Exchange.Declare(exchange="x", passive=True)]
)
def test_a_passive_declare_needs_no_permission(lab: Lab, peer: Peer, method: base.Frame) -> None:
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x"))
    permit(lab, [])
    peer.call(method)


def test_a_server_named_queue_needs_permission(lab: Lab, peer: Peer) -> None:
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission("^q$", "", ""))
    peer.send(Queue.Declare(queue=""))
    assert "configure access to queue 'amq.gen-" in peer.expect_channel_close(403)


def test_an_empty_pattern_permits_nothing_and_a_pattern_is_not_anchored(lab: Lab, peer: Peer) -> None:
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission("b", "", ""))
    peer.declare("abc")
    peer.send(Queue.Declare(queue="ac"))
    peer.expect_channel_close(403)


def test_a_name_is_checked_before_the_permission(lab: Lab, peer: Peer) -> None:
    permit(lab, [])
    peer.send(Queue.Declare(queue="amq.foo"))
    assert "reserved prefix" in peer.expect_channel_close(403)


def test_permission_is_checked_before_existence(lab: Lab, peer: Peer) -> None:
    permit(lab, [])
    peer.send(Queue.Delete(queue="missing"))
    assert "configure access to queue 'missing'" in peer.expect_channel_close(403)


def test_acking_needs_no_permission(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    peer.publish("q")
    peer.deliveries()
    permit(lab, [])
    peer.send(Basic.Ack(1))
    peer.expect_nothing()


@pytest.mark.parametrize(
    ("method", "kind", "name"),
    [
        (Queue.Declare(queue="q", passive=True), "queue", "q"),
        (Queue.Declare(queue="missing", passive=True), "queue", "missing"),
        (Exchange.Declare(exchange="amq.direct", passive=True), "exchange", "amq.direct"),
        (Exchange.Declare(exchange="missing", passive=True), "exchange", "missing"),
    ],
)
def test_without_any_permission_a_passive_declaration_lacks_that_to_configure(
    method: base.Frame, kind: str, name: str
) -> None:
    """Seen at RabbitMQ 4.3.6 (compat/configured/no_permissions.py)."""
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True)
    lab.broker.users.set_permission(lab.broker.users["guest"], "/", Permission("^$", "^$", "^$"))
    peer.send(method)
    text = f"ACCESS_REFUSED - configure access to {kind} '{name}' in vhost '/' refused for user 'guest'"
    assert peer.expect_channel_close(403) == text
