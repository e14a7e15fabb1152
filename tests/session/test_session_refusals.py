"""Every refusal that a client can meet on an open channel, with RabbitMQ's reply code and exact text.

Where nothing else is said, a row was played against RabbitMQ 3.10 and got the same answer.
"""

from __future__ import annotations

import pytest
from pamqp import base, commands
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.broker.admin.access import Permission, TopicPermission
from tests.peer import Lab, Peer, blamed, show
from tests.present import present
from tests.session.refusals import ROWS, THE_EXCHANGE, THE_QUEUE, Publish, Row

SOFT = (311, 403, 404, 405, 406)
NAMES = {
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
}


def play(peer: Peer, step: base.Frame | Publish) -> None:
    if isinstance(step, Publish):
        peer.publish(step.routing_key, step.body, exchange=step.exchange, **step.properties)
    else:
        peer.send(step)


def refusal(peer: Peer, offender: base.Frame | Publish) -> tuple[int, str]:
    """How the offender is refused; whether that closes the channel or the connection must fit the code."""
    play(peer, offender)
    close, number = peer.next()
    assert isinstance(close, (commands.Channel.Close, commands.Connection.Close)), show(close)
    assert number == (1 if close.reply_code in SOFT else 0)
    index = Basic.Publish.index if isinstance(offender, Publish) else offender.index
    assert blamed(close) == index
    return present(close.reply_code), close.reply_text


def refused(code: int, text: str) -> tuple[int, str]:
    """The code and the reply text, cut to what fits."""
    full = f"{NAMES[code]} - {text}"
    return code, full if len(full) <= 255 else f"{full[:252]}..."


def title(row: Row) -> str:
    name = row.offender.name if isinstance(row.offender, base.Frame) else "Basic.Publish"
    return f"{name}-{row.text[:50]}"


@pytest.mark.parametrize("row", ROWS, ids=title)
def test_refusals_have_the_texts_of_rabbitmq(row: Row) -> None:
    lab = Lab()
    peer = lab.connect()
    if row.theirs:
        other = lab.connect()
        for their_step in row.theirs:
            other.call(their_step)
    for step in row.given:
        if isinstance(step, Publish):
            play(peer, step)
        else:
            peer.call(step)
    assert refusal(peer, row.offender) == refused(row.code, row.text)


def test_an_oversized_body_is_refused() -> None:
    peer = Lab(message_bytes_max=3).connect()
    assert refusal(peer, Publish(body=b"1234")) == refused(406, "message size 4 is larger than configured max size 3")


# Permissions


@pytest.fixture
def stranger() -> Peer:
    """A user who may do nothing in the vhost, where there is a queue `q` and exchanges `x` and `t`."""
    lab = Lab()
    owner = lab.connect()
    owner.call(THE_QUEUE)
    owner.call(THE_EXCHANGE)
    lab.broker.users.set_permission(lab.broker.users.add("anna", "secret"), "/", Permission("", "", ""))
    return lab.connect(user="anna", password="secret")


@pytest.mark.parametrize(
    ("offender", "access"),
    [
        (THE_QUEUE, "configure access to queue 'q'"),
        (Queue.Delete(queue="q"), "configure access to queue 'q'"),
        (Queue.Purge(queue="q"), "read access to queue 'q'"),
        (Queue.Bind(queue="q", exchange="x"), "write access to queue 'q'"),
        (Queue.Unbind(queue="q", exchange="x"), "write access to queue 'q'"),
        (THE_EXCHANGE, "configure access to exchange 'x'"),
        (Exchange.Delete(exchange="x"), "configure access to exchange 'x'"),
        (Exchange.Bind(destination="x", source="amq.fanout"), "write access to exchange 'x'"),
        (Exchange.Unbind(destination="x", source="amq.fanout"), "write access to exchange 'x'"),
        (Basic.Consume(queue="q"), "read access to queue 'q'"),
        (Basic.Get(queue="q"), "read access to queue 'q'"),
        (Publish("x"), "write access to exchange 'x'"),
        (Publish(""), "write access to exchange 'amq.default'"),
    ],
)
def test_a_missing_permission_is_refused(stranger: Peer, offender: base.Frame | Publish, access: str) -> None:
    assert refusal(stranger, offender) == refused(403, f"{access} in vhost '/' refused for user 'anna'")


@pytest.mark.parametrize(
    ("permission", "offender", "access"),
    [
        (Permission("", "q", ""), Queue.Bind(queue="q", exchange="x"), "read access to exchange 'x'"),
        (
            Permission("", "x", ""),
            Exchange.Bind(destination="x", source="amq.topic"),
            "read access to exchange 'amq.topic'",
        ),
        (
            Permission("new", "", ""),
            Queue.Declare(queue="new", arguments={"x-dead-letter-exchange": "x"}),
            "read access to queue 'new'",
        ),
        (
            Permission("new", "", "new"),
            Queue.Declare(queue="new", arguments={"x-dead-letter-exchange": "x"}),
            "write access to exchange 'x'",
        ),
        (
            Permission("new", "", ""),
            Exchange.Declare(exchange="new", arguments={"alternate-exchange": "x"}),
            "read access to exchange 'new'",
        ),
        (
            Permission("new", "", "new"),
            Exchange.Declare(exchange="new", arguments={"alternate-exchange": "x"}),
            "write access to exchange 'x'",
        ),
    ],
)
def test_the_first_missing_permission_is_named(
    stranger: Peer, permission: Permission, offender: base.Frame, access: str
) -> None:
    broker = stranger.lab.broker
    broker.users.set_permission(broker.users["anna"], "/", permission)
    assert refusal(stranger, offender) == refused(403, f"{access} in vhost '/' refused for user 'anna'")


@pytest.mark.parametrize(
    ("offender", "access"),
    [
        (Publish("amq.topic", "a.b"), "write access to topic 'a.b'"),
        (Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.#"), "read access to topic 'a.#'"),
    ],
)
def test_a_topic_may_be_refused(stranger: Peer, offender: base.Frame | Publish, access: str) -> None:
    broker = stranger.lab.broker
    anna = broker.users["anna"]
    broker.users.set_permission(anna, "/", Permission())
    broker.users.set_topic_permission(anna, "/", "amq.topic", TopicPermission("^x", "^x"))
    text = f"{access} in exchange 'amq.topic' in vhost '/' refused for user 'anna'"
    assert refusal(stranger, offender) == refused(403, text)
