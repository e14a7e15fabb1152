from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Byte, Long, Short, Timestamp, UnsignedByte, UnsignedInt
from tests.broker_parts import new_exchange, new_vhost
from tests.peer import Peer


def declare(peer: Peer, **arguments: Any) -> None:
    table = {f"x-recent-history-{name}": value for name, value in arguments.items()}
    peer.call(Exchange.Declare(exchange="x", exchange_type="x-recent-history", arguments=table))


def publish(peer: Peer, *bodies: bytes, **options: Any) -> None:
    for body in bodies:
        peer.publish("k", body, exchange="x", **options)


def bind(peer: Peer, queue: str, key: str = "") -> list[bytes]:
    """Bind a queue, and return the bodies of the messages in it."""
    peer.declare(queue)
    peer.call(Queue.Bind(queue=queue, exchange="x", routing_key=key))
    return drained(peer, queue)


def drained(peer: Peer, queue: str) -> list[bytes]:
    bodies = []
    while (got := peer.get(queue)) is not None:
        bodies.append(got[1].body)
    return bodies


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-3, "-3"),
        ("5", '<<"5">>'),
        (1.5, "1.5"),
        (True, "true"),
        (None, "undefined"),
        (UnsignedInt(5), "5"),
        (UnsignedByte(5), "5"),
        (Timestamp(5), "5"),
        (["a"], '[{longstr,<<"a">>}]'),
        ({"a": 1}, '[{<<"a">>,signedint,1}]'),
    ],
)
def test_an_invalid_length_is_refused(value: Any, shown: str) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        new_exchange(new_vhost(), "x", "x-recent-history", arguments={"x-recent-history-length": value})
    assert str(caught.value) == f"Invalid argument {shown}, 'x-recent-history-length' must be a positive integer"


@pytest.mark.parametrize("value", [1, Byte(1), Short(1), Long(2**63 - 1)])
def test_a_length_is_a_positive_integer(value: int) -> None:
    new_exchange(new_vhost(), "x", "x-recent-history", arguments={"x-recent-history-length": value})


def test_a_wrong_length_closes_the_channel(peer: Peer) -> None:
    arguments: FieldTable = {"x-recent-history-length": 0}
    peer.send(Exchange.Declare(exchange="x", exchange_type="x-recent-history", arguments=arguments))
    text = "PRECONDITION_FAILED - Invalid argument 0, 'x-recent-history-length' must be a positive integer"
    assert peer.expect_channel_close(406) == text


def test_the_length_is_not_compared_when_the_exchange_is_declared_again(peer: Peer) -> None:
    declare(peer, length=1)
    declare(peer, length=0)
    publish(peer, b"1", b"2")
    assert bind(peer, "q") == [b"2"]


def test_a_new_queue_gets_the_latest_messages_in_order(peer: Peer) -> None:
    declare(peer, length=2)
    publish(peer, b"1", b"2", b"3")
    assert bind(peer, "q") == [b"2", b"3"]


def test_20_messages_are_kept_by_default(peer: Peer) -> None:
    declare(peer)
    publish(peer, *[b"%d" % number for number in range(25)])
    assert bind(peer, "q") == [b"%d" % number for number in range(5, 25)]


def test_each_new_binding_of_a_queue_repeats_the_history(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1")
    assert bind(peer, "q") == [b"1"]
    assert bind(peer, "q") == []
    assert bind(peer, "q", "other") == [b"1"]


def test_all_bound_queues_get_new_messages(peer: Peer) -> None:
    declare(peer)
    bind(peer, "one")
    bind(peer, "two", "key")
    publish(peer, b"1")
    assert (drained(peer, "one"), drained(peer, "two")) == ([b"1"], [b"1"])


@pytest.mark.parametrize(("value", "expected"), [(True, []), (False, [b"1"]), ("true", [b"1"]), (1, [b"1"])])
def test_a_message_may_opt_out_of_the_history(peer: Peer, value: Any, expected: list[bytes]) -> None:
    declare(peer)
    publish(peer, b"1", headers={"x-recent-history-no-store": value})
    assert bind(peer, "q") == expected


def test_a_message_with_several_keys_is_kept_once(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1", headers={"CC": ["a"], "BCC": ["b"]})
    assert bind(peer, "q") == [b"1"]


def test_finding_a_route_adds_nothing_to_the_history(peer: Peer) -> None:
    declare(peer)
    exchange = peer.lab.vhost.exchanges["x"]
    peer.lab.vhost.route(exchange, ["k"], {}, None)
    assert bind(peer, "q") == []


def test_repeated_messages_are_unchanged(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1", message_id="m", priority=3)
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="x", routing_key="1"))
    got = peer.get("q")
    assert got is not None
    assert (got[0].exchange, got[0].routing_key, got[0].redelivered) == ("x", "k", False)
    assert (got[1].properties.message_id, got[1].properties.priority) == ("m", 3)


def test_the_expiration_of_a_repeated_message_starts_anew(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1", expiration="10")
    peer.lab.advance(100)
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="x"))
    peer.lab.advance(9)
    assert peer.lab.vhost.queues["q"].ready_count == 1
    peer.lab.advance(1)
    assert peer.lab.vhost.queues["q"].ready_count == 0


def test_consumers_of_a_new_queue_get_the_history_at_once(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1", b"2")
    peer.declare("q")
    peer.consume("q", no_ack=True)
    peer.send(Queue.Bind(queue="q", exchange="x", nowait=True))
    assert peer.bodies() == [b"1", b"2"]


def test_a_bound_exchange_passes_the_history_on_newest_first(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1", b"2")
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    peer.call(Exchange.Bind(source="x", destination="amq.direct"))
    assert drained(peer, "q") == [b"2", b"1"]


def test_an_exchange_without_queues_may_be_bound(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1")
    peer.call(Exchange.Bind(source="x", destination="amq.fanout"))
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.fanout"))
    assert drained(peer, "q") == []
    publish(peer, b"2")
    assert drained(peer, "q") == [b"2"]


def test_an_exchange_bound_to_itself_does_not_repeat_forever(peer: Peer) -> None:
    declare(peer)
    bind(peer, "q")
    publish(peer, b"1")
    drained(peer, "q")
    peer.call(Exchange.Bind(source="x", destination="x"))
    assert drained(peer, "q") == [b"1"]


def test_the_history_is_deleted_with_the_exchange(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1")
    peer.call(Exchange.Delete(exchange="x"))
    declare(peer)
    assert bind(peer, "q") == []


def test_an_unroutable_message_is_returned_and_kept(peer: Peer) -> None:
    declare(peer)
    publish(peer, b"1", mandatory=True)
    assert peer.expect(Basic.Return).reply_code == 312
    peer.expect_content()
    assert bind(peer, "q") == [b"1"]
