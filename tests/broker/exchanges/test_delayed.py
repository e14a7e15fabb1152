"""The delayed-message exchange behaves like the plugin's sources for RabbitMQ 3.13 and later.

RabbitMQ in Debian does not have the plugin, so the facts are from these modules:

rabbit_exchange_type_delayed_message.erl   arguments; delayed messages are routed to no queue
rabbit_delayed_message_utils.erl           valid values of x-delay, and its negation
rabbit_delayed_message.erl                 due messages are routed by the same exchange
mc_amqpl.erl (RabbitMQ)                    types of headers: `b` is not among those of the plugin; x-delay is long
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx
from pamqp.common import FieldTable

from amqp_broker.amqp import fields
from amqp_broker.broker.broker import PORTION_STEPS
from amqp_broker.broker.exchanges.delayed import DelayedExchange, delay_of
from tests.broker_parts import bind, new_exchange, new_queue
from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    """A broker with a delayed exchange x of type direct, to which the queue q is bound with the key k."""
    lab = Lab()
    new_exchange(lab.vhost, "x", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    bind(lab.vhost.exchanges["x"], new_queue(lab.vhost), lab.vhost, "k")
    return lab


def exchange_of(lab: Lab) -> DelayedExchange:
    exchange = lab.vhost.exchanges["x"]
    assert isinstance(exchange, DelayedExchange)
    return exchange


def delay(peer: Peer, delay_ms: Any, body: bytes = b"", key: str = "k", **options: Any) -> None:
    headers = {"x-delay": delay_ms, **options.pop("headers", {})}
    peer.publish(key, body, exchange="x", headers=headers, **options)


def bodies(lab: Lab, queue: str = "q") -> list[bytes]:
    """Return the bodies of the ready messages of a queue."""
    return [message.body for message in lab.vhost.queues[queue].messages()]


def x_delay(lab: Lab, queue: str = "q") -> Any:
    """Return the header `x-delay` of the first ready message."""
    headers = next(lab.vhost.queues[queue].messages()).properties().headers
    return headers["x-delay"]


# Declaring


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        ({"x-delayed-type": 1}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        ({"x-delayed-type": None}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        (
            {"x-delayed-type": "x-delayed-message"},
            "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
        ),
        ({"x-delayed-type": "nonsense"}, "unknown exchange type 'nonsense'"),
        (
            {"x-delayed-type": "x-consistent-hash", "hash-property": "type"},
            "Unsupported property: type",
        ),
    ],
)
def test_wrong_arguments_close_the_channel(arguments: dict[str, Any], text: str) -> None:
    peer = Lab().connect()
    peer.send(Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    assert peer.expect_channel_close(406) == f"PRECONDITION_FAILED - {text}"
    assert "x" not in peer.lab.vhost.exchanges


def test_a_type_that_a_version_lacks_cannot_be_delayed() -> None:
    peer = Lab(compat="3.13").connect()
    arguments: FieldTable = {"x-delayed-type": "x-local-random"}
    peer.send(Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - unknown exchange type 'x-local-random'"


def test_bindings_are_checked_as_by_the_inner_type() -> None:
    peer = Lab().connect()
    peer.declare("q")
    arguments: FieldTable = {"x-delayed-type": "x-consistent-hash"}
    peer.call(Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    peer.send(Queue.Bind(queue="q", exchange="x", routing_key="0"))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - The binding key must be greater than 0"


def test_a_delayed_exchange_can_be_redeclared_without_its_inner_type(peer: Peer) -> None:
    peer.call(Exchange.Declare(exchange="x", exchange_type="x-delayed-message"))
    peer.send(Exchange.Declare(exchange="x", exchange_type="direct"))
    text = (
        "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'direct' but current is ''x-delayed-message''"
    )
    assert peer.expect_channel_close(406) == f"PRECONDITION_FAILED - {text}"


# Values of x-delay


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (500, 500),
        (fields.Long(500), 500),
        (fields.Short(500), 500),
        (fields.UnsignedByte(200), 200),
        (fields.UnsignedShort(500), 500),
        (fields.UnsignedInt(500), 500),
        (fields.Byte(100), 0),
        (500.9, 500),
        (-500.9, -500),
        (fields.Float32(500.5), 500),
        (float("nan"), 0),
        (float("inf"), 0),
        ("500", 500),
        ("+500", 500),
        ("-500", -500),
        (b"500", 500),
        ("", 0),
        ("soon", 0),
        ("500 ms", 0),
        ("5_0", 0),
        ("500.5", 0),
        ("9" * 5000, 0),
        ("\udcff", 0),
        (True, 0),
        (None, 0),
        (fields.Timestamp(500), 0),
        (fields.Decimal(0, 500), 0),
        ([500], 0),
        ({"ms": 500}, 0),
    ],
)
def test_a_delay_may_have_most_types_of_numbers(value: Any, expected: int) -> None:
    assert delay_of({"x-delay": value}) == expected


def test_without_the_header_there_is_no_delay() -> None:
    assert delay_of({}) == 0


@pytest.mark.parametrize("value", [0, -1, -5000, "garbage", True, 4_294_967_296, 2**62])
def test_a_message_without_a_delay_is_routed_at_once_unchanged(lab: Lab, peer: Peer, value: Any) -> None:
    delay(peer, value, b"now", mandatory=True)
    peer.expect_nothing()
    assert bodies(lab) == [b"now"]
    assert x_delay(lab) == value


def test_a_message_without_headers_is_routed_at_once(lab: Lab, peer: Peer) -> None:
    peer.publish("k", b"now", exchange="x")
    peer.publish("k", b"then", exchange="x", priority=3)
    assert bodies(lab) == [b"now", b"then"]


def test_the_longest_delay_is_49_days(lab: Lab, peer: Peer) -> None:
    delay(peer, 4_294_967_295, b"late")
    lab.advance(4_294_967_294)
    assert bodies(lab) == []
    lab.advance(1)
    assert bodies(lab) == [b"late"]
    assert x_delay(lab) == -4_294_967_295


# Delivery


def test_a_message_is_delivered_when_it_is_due_with_its_delay_negated(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"later", headers={"other": "kept"}, message_id="m")
    lab.advance(999)
    assert bodies(lab) == []
    lab.advance(1)
    got = peer.get("q")
    assert got is not None
    assert (got[0].exchange, got[0].routing_key, got[0].redelivered) == ("x", "k", False)
    assert got[1].properties.headers == {"x-delay": -1000, "other": "kept"}
    assert (got[1].properties.message_id, got[1].body) == ("m", b"later")


@pytest.mark.parametrize("value", [1000, "1000", 1000.5, fields.UnsignedShort(1000)])
def test_the_delay_is_delivered_as_a_long_integer(lab: Lab, peer: Peer, value: Any) -> None:
    delay(peer, float(value) if isinstance(value, float) else value)
    lab.advance(1000)
    assert (type(x_delay(lab)), x_delay(lab)) == (fields.Long, -1000)


def test_messages_are_delivered_in_the_order_of_their_due_times(lab: Lab, peer: Peer) -> None:
    for number, delay_ms in enumerate((500, 200, 300, 200, 1000)):
        delay(peer, delay_ms, b"%d" % number)
    lab.advance(500)
    assert bodies(lab) == [b"1", b"3", b"2", b"0"]
    lab.advance(500)
    assert bodies(lab) == [b"1", b"3", b"2", b"0", b"4"]


def test_a_later_message_may_be_due_earlier(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"long")
    lab.advance(500)
    delay(peer, 300, b"short")
    lab.advance(299)
    assert bodies(lab) == []
    lab.advance(1)
    assert bodies(lab) == [b"short"]
    lab.advance(200)
    assert bodies(lab) == [b"short", b"long"]


def test_a_large_message_is_delayed_without_loss(lab: Lab, peer: Peer) -> None:
    body = bytes(range(256)) * 1500
    delay(peer, 1000, body, frame_size=1000)
    lab.advance(1000)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == body


def test_a_delayed_message_is_routed_by_the_bindings_at_its_due_time(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"1")
    lab.vhost.unbind(lab.vhost.exchanges["x"].binding(lab.vhost.queues["q"], "k", {}))
    bind(lab.vhost.exchanges["x"], new_queue(lab.vhost, "other"), lab.vhost, "k")
    lab.advance(1000)
    assert (bodies(lab), bodies(lab, "other")) == ([], [b"1"])


def test_a_message_that_is_unroutable_when_it_is_due_is_lost(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"1", key="nowhere")
    lab.advance(1000)
    assert (bodies(lab), exchange_of(lab).messages_delayed) == ([], 0)
    peer.expect_nothing()


def test_copies_are_delayed_with_the_message(lab: Lab, peer: Peer) -> None:
    for name in ("copy", "blind"):
        bind(lab.vhost.exchanges["x"], new_queue(lab.vhost, name), lab.vhost, name)
    delay(peer, 1000, b"1", headers={"CC": ["copy"], "BCC": ["blind"]})
    assert exchange_of(lab).messages_delayed == 1
    lab.advance(1000)
    assert [bodies(lab, name) for name in ("q", "copy", "blind")] == [[b"1"]] * 3
    got = peer.get("blind")
    assert got is not None
    assert got[1].properties.headers == {"x-delay": -1000, "CC": ["copy"]}


def test_an_expiration_counts_from_the_time_of_queueing(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"1", expiration="100")
    lab.advance(1099)
    assert bodies(lab) == [b"1"]
    lab.advance(1)
    assert bodies(lab) == []


def test_a_consumer_gets_a_message_as_soon_as_it_is_due(lab: Lab, peer: Peer) -> None:
    peer.consume("q", no_ack=True)
    delay(peer, 1000, b"1")
    peer.expect_nothing()
    lab.advance(1000)
    assert peer.bodies() == [b"1"]


def test_a_delayed_message_outlives_its_publishers_connection(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"1")
    peer.disconnect()
    lab.advance(1000)
    assert bodies(lab) == [b"1"]


def test_a_message_is_delayed_only_once_on_its_way(lab: Lab, peer: Peer) -> None:
    second = new_exchange(lab.vhost, "second", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    bind(second, new_queue(lab.vhost, "far"), lab.vhost)
    bind(lab.vhost.exchanges["x"], second, lab.vhost, "k")
    delay(peer, 1000, b"1")
    lab.advance(1000)
    assert (bodies(lab, "far"), bodies(lab)) == ([b"1"], [b"1"])


def test_a_message_is_delayed_at_an_exchange_that_is_bound_to_another(lab: Lab, peer: Peer) -> None:
    bind(lab.vhost.exchanges["amq.fanout"], lab.vhost.exchanges["x"], lab.vhost)
    bind(lab.vhost.exchanges["amq.fanout"], new_queue(lab.vhost, "near"), lab.vhost)
    peer.publish("k", b"1", exchange="amq.fanout", headers={"x-delay": 1000}, mandatory=True)
    peer.expect_nothing()
    assert (bodies(lab, "near"), bodies(lab)) == ([b"1"], [])
    lab.advance(1000)
    assert (bodies(lab, "near"), bodies(lab)) == ([b"1"], [b"1"])
    # The copy that was not delayed keeps its own header.
    assert (x_delay(lab, "near"), x_delay(lab)) == (1000, -1000)


def test_a_dead_letter_in_a_cycle_with_a_delay_circulates_forever(lab: Lab, peer: Peer) -> None:
    new_queue(lab.vhost, "retry", arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "retry"})
    bind(lab.vhost.exchanges["x"], lab.vhost.queues["retry"], lab.vhost, "retry")
    peer.publish("retry", b"1", headers={"x-delay": 1000}, expiration="5")
    lab.advance(5)
    assert (bodies(lab, "retry"), exchange_of(lab).messages_delayed) == ([], 1)
    lab.advance(1000)
    assert bodies(lab, "retry") == [b"1"]
    headers = next(lab.vhost.queues["retry"].messages()).properties().headers
    assert (headers["x-delay"], headers["x-death"][0]["reason"]) == (-1000, "expired")


# Publishers


def test_a_delayed_message_is_confirmed_at_once(peer: Peer) -> None:
    peer.call(Confirm.Select())
    delay(peer, 1000)
    assert peer.expect(Basic.Ack).delivery_tag == 1


def test_a_delayed_mandatory_message_is_returned(lab: Lab, peer: Peer) -> None:
    peer.call(Confirm.Select())
    delay(peer, 1000, b"1", mandatory=True)
    returned = peer.expect(Basic.Return)
    assert (returned.reply_code, returned.reply_text, returned.routing_key) == (312, "NO_ROUTE", "k")
    assert peer.expect_content().properties.headers == {"x-delay": 1000}
    assert peer.expect(Basic.Ack).delivery_tag == 1
    lab.advance(1000)
    assert bodies(lab) == [b"1"]


def test_the_alternate_exchange_gets_delayed_messages_at_once(peer: Peer) -> None:
    # Issue 36 of the plugin, open since 2016.
    vhost = peer.lab.vhost
    arguments: FieldTable = {"x-delayed-type": "direct", "alternate-exchange": "amq.fanout"}
    exchange = new_exchange(vhost, "a", "x-delayed-message", arguments=arguments)
    bind(exchange, vhost.queues["q"], vhost, "k")
    bind(vhost.exchanges["amq.fanout"], new_queue(vhost, "rest"), vhost)
    peer.publish("k", b"1", exchange="a", headers={"x-delay": 1000})
    assert (bodies(peer.lab, "rest"), x_delay(peer.lab, "rest")) == ([b"1"], 1000)
    peer.lab.advance(1000)
    assert (bodies(peer.lab), bodies(peer.lab, "rest")) == ([b"1"], [b"1"])


def test_a_transaction_delays_when_it_publishes(lab: Lab, peer: Peer) -> None:
    # RabbitMQ routes before the commit, so that delaying cannot be taken back.
    peer.call(Tx.Select())
    delay(peer, 1000, b"1")
    peer.call(Tx.Rollback())
    lab.advance(1000)
    assert bodies(lab) == [b"1"]


# Delayed messages


def test_delayed_messages_can_be_counted_and_listed(lab: Lab, peer: Peer) -> None:
    start = lab.now
    for delay_ms, body in ((500, b"2"), (300, b"1"), (500, b"3")):
        delay(peer, delay_ms, body)
    exchange = exchange_of(lab)
    assert exchange.messages_delayed == 3
    assert [(due_ms - start, message.body) for due_ms, message in exchange.delayed()] == [
        (300, b"1"),
        (500, b"2"),
        (500, b"3"),
    ]
    lab.advance(300)
    assert (exchange.messages_delayed, len(list(exchange.delayed()))) == (2, 2)


def test_finding_a_route_delays_no_message(lab: Lab) -> None:
    assert lab.vhost.route(exchange_of(lab), ["k"], {"x-delay": 1000}, None) == ([], True)
    assert exchange_of(lab).messages_delayed == 0


def test_delayed_messages_are_deleted_with_the_exchange(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000, b"1")
    peer.call(Exchange.Delete(exchange="x"))
    new_exchange(lab.vhost, "x", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    bind(lab.vhost.exchanges["x"], lab.vhost.queues["q"], lab.vhost, "k")
    lab.advance(2000)
    assert bodies(lab) == []


def test_a_deleted_exchange_keeps_no_timer(lab: Lab, peer: Peer) -> None:
    delay(peer, 1000)
    assert lab.broker.timers.next_deadline() == lab.now + 1000
    lab.broker.delete_vhost("/")
    assert lab.broker.timers.next_deadline() != lab.now + 1000


def test_an_exchange_with_a_million_delayed_messages_has_one_timer(lab: Lab, peer: Peer) -> None:
    exchange, timers = exchange_of(lab), lab.broker.timers
    peer.publish("k", exchange="x")
    message = next(lab.vhost.queues["q"].messages())
    before = len([timer for timer in timers._heap if timer.callback is not None])
    for number in range(20_000):
        # Each message is due before all others, the worst case for the timer.
        exchange.destinations(["k"], {"x-delay": 1_000_000 - number}, message)
    assert len([timer for timer in timers._heap if timer.callback is not None]) == before + 1
    assert len(timers._heap) < 3000
    assert exchange._timer is not None
    assert exchange._timer.deadline_ms == lab.now + 1_000_000 - 19_999


def test_many_due_messages_are_released_in_batches(lab: Lab, peer: Peer) -> None:
    count = 2 * PORTION_STEPS + 10
    for number in range(count):
        delay(peer, 1000, struct.pack(">I", number))
    lab.advance(1000)
    assert len(bodies(lab)) == PORTION_STEPS
    # A publish between two batches does not disturb.
    delay(peer, 500, b"new")
    lab.advance(500)
    assert len(bodies(lab)) == PORTION_STEPS
    lab.drain()
    assert bodies(lab) == [struct.pack(">I", number) for number in range(count)]
    lab.advance(0)
    assert bodies(lab)[-1] == b"new"
    delay(peer, 500, b"again")
    lab.advance(500)
    assert bodies(lab)[-1] == b"again"


def test_the_rest_of_a_batch_is_deleted_with_the_exchange(lab: Lab, peer: Peer) -> None:
    for _ in range(PORTION_STEPS + 1):
        delay(peer, 1000)
    lab.advance(1000)
    lab.vhost.delete_exchange("x", if_unused=False)
    lab.drain()
    assert len(bodies(lab)) == PORTION_STEPS


def test_a_delayed_message_keeps_its_number_in_a_trace(lab: Lab, peer: Peer) -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    lab.vhost.tracing.observe(lambda event, name, facts, message, body: told.append((f"{event}.{name}", facts)))
    delay(peer, 1000, b"1")
    lab.advance(1000)
    assert peer.get("q") is not None
    assert [key for key, _ in told] == ["publish.x", "route.x", "deliver.q"]
    assert (told[0][1]["routed_queues"], told[0][1]["delayed_in"]) == ([], ["x"])
    assert (told[1][1]["routed_queues"], told[1][1]["reason"]) == (["q"], "due")
    assert {facts["message_number"] for _, facts in told} == {1}
