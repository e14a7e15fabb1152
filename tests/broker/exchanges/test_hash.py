from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pamqp.commands import Exchange, Queue

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Byte, Long, Timestamp
from amqp_broker.broker.exchanges.exchange import Destination
from amqp_broker.broker.exchanges.exchange import Exchange as AnyExchange
from amqp_broker.broker.exchanges.hash import hash64
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import bind, new_exchange, new_message, new_queue, new_vhost
from tests.peer import Lab, Peer


@pytest.fixture
def vhost() -> VHost:
    vhost = new_vhost()
    for name in ("q0", "q1", "q2", "q3"):
        new_queue(vhost, name)
    return vhost


def consistent(vhost: VHost, *weights: str, **arguments: str) -> AnyExchange:
    """Return an exchange to which the queues q0, q1 ... are bound with these weights."""
    table = {name.replace("_", "-"): value for name, value in arguments.items()}
    exchange = new_exchange(vhost, "x", "x-consistent-hash", arguments=table)
    for number, weight in enumerate(weights):
        bind(exchange, vhost.queues[f"q{number}"], vhost, weight)
    return exchange


def target(exchange: AnyExchange, *keys: str, **properties: Any) -> str:
    message = new_message(**properties)
    [destination] = exchange.destinations(keys or ("",), properties.get("headers", {}), message)
    return destination.name


def refusal(vhost: VHost, **arguments: Any) -> str:
    with pytest.raises(PreconditionFailed) as caught:
        consistent(vhost, **arguments)
    return str(caught.value)


# Consistent


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("0", "The binding key must be greater than 0"),
        ("-1", "The binding key must be greater than 0"),
        ("10001", "The binding key must not exceed 10000"),
        ("9" * 255, "The binding key must not exceed 10000"),
        ("", "The binding key must be an integer: <<>>"),
        ("abc", 'The binding key must be an integer: <<"abc">>'),
        ("1.5", 'The binding key must be an integer: <<"1.5">>'),
        (" 1", 'The binding key must be an integer: <<" 1">>'),
        ("1_0", 'The binding key must be an integer: <<"1_0">>'),
        ("1\n", 'The binding key must be an integer: <<"1\\n">>'),
    ],
)
def test_an_invalid_weight_is_refused(vhost: VHost, key: str, text: str) -> None:
    exchange = consistent(vhost)
    with pytest.raises(PreconditionFailed) as caught:
        bind(exchange, vhost.queues["q0"], vhost, key)
    assert str(caught.value) == text
    assert not exchange.bindings


@pytest.mark.parametrize("key", ["1", "+5", "05", "10000"])
def test_a_weight_is_a_whole_number_from_1_to_10000(vhost: VHost, key: str) -> None:
    assert target(consistent(vhost, key), "k") == "q0"


def test_only_one_hash_argument_is_allowed(vhost: VHost) -> None:
    text = "hash-header and hash-property are mutually exclusive"
    assert refusal(vhost, hash_header="h", hash_property="message_id") == text
    assert refusal(vhost, hash_header="h", hash_property="nonsense") == text


@pytest.mark.parametrize("name", ["type", "app_id", "headers", ""])
def test_a_property_that_cannot_be_hashed_is_refused(vhost: VHost, name: str) -> None:
    assert refusal(vhost, hash_property=name) == f"Unsupported property: {name}"


def test_the_hash_argument_is_a_string(vhost: VHost) -> None:
    text = "invalid type 'signedint' for arg 'hash-header' in exchange 'x' in vhost '/'"
    assert refusal(vhost, hash_header=1) == text
    text = "invalid type 'void' for arg 'hash-property' in exchange 'x' in vhost '/'"
    assert refusal(vhost, hash_property=None) == text


def test_wrong_arguments_and_weights_close_the_channel_only() -> None:
    peer = Lab().connect()
    declare = Exchange.Declare(exchange="x", exchange_type="x-consistent-hash", arguments={"hash-property": "type"})
    peer.send(declare)
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - Unsupported property: type"
    peer.open_channel(1)
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x", exchange_type="x-consistent-hash"))
    peer.send(Queue.Bind(queue="q", exchange="x", routing_key="0"))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - The binding key must be greater than 0"


def test_without_bindings_a_message_is_unroutable(vhost: VHost) -> None:
    assert not consistent(vhost).destinations(["k"], {}, None)


def test_a_key_has_the_same_queue_in_every_process_and_order_of_bindings(vhost: VHost) -> None:
    # A change of these values would move messages to other queues after an update.
    exchange = consistent(vhost, "1", "1", "1", "1")
    expected = "q3 q1 q3 q3 q0 q0 q2 q0 q0 q3"
    assert " ".join(target(exchange, f"key{number}") for number in range(10)) == expected
    other = new_exchange(vhost, "other", "x-consistent-hash")
    for name in ("q2", "q0", "q3", "q1"):
        bind(other, vhost.queues[name], vhost, "1")
    assert " ".join(target(other, f"key{number}") for number in range(10)) == expected


def test_the_hash_is_the_same_in_each_process() -> None:
    code = "from amqp_broker.broker.exchanges.hash import hash64; print(hash64(b'key'))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8").stdout
    assert int(printed) == hash64(b"key")


def test_the_first_routing_key_decides(vhost: VHost) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1")
    for number in range(20):
        key = f"key{number}"
        assert target(exchange, key, "other", "further") == target(exchange, key)


def test_the_named_header_decides(vhost: VHost) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1", hash_header="h")
    found = {target(exchange, "k", headers={"h": str(number)}) for number in range(50)}
    assert found == {"q0", "q1", "q2", "q3"}
    assert len({target(exchange, key, headers={"h": "one"}) for key in "abcdefghij"}) == 1


@pytest.mark.parametrize(
    "value", ["", "text", b"octets", 5, -5, True, 1.5, None, [1, "a"], {"a": 1}, Timestamp(2**64 - 1)]
)
def test_headers_of_all_types_can_be_hashed(vhost: VHost, value: Any) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1", hash_header="h")
    assert target(exchange, "a", headers={"h": value}) == target(exchange, "b", headers={"h": value, "other": 1})


def test_the_width_of_an_integer_does_not_matter(vhost: VHost) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1", hash_header="h")
    for number in range(20):
        found = {target(exchange, headers={"h": kind(number)}) for kind in (int, Byte, Long)}
        assert len(found) == 1


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_the_named_property_decides(vhost: VHost, name: str) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1", hash_property=name)
    assert {target(exchange, "k", **{name: str(number)}) for number in range(50)} == {"q0", "q1", "q2", "q3"}
    assert len({target(exchange, key, **{name: "one"}) for key in "abcdefghij"}) == 1


def test_a_timestamp_decides_if_it_is_named(vhost: VHost) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1", hash_property="timestamp")
    assert {target(exchange, "k", timestamp=number) for number in range(50)} == {"q0", "q1", "q2", "q3"}


@pytest.mark.parametrize("arguments", [{"hash_header": "h"}, {"hash_property": "message_id"}])
def test_messages_without_the_hashed_value_go_to_one_queue(vhost: VHost, arguments: dict[str, str]) -> None:
    exchange = consistent(vhost, "1", "1", "1", "1", **arguments)
    assert len({target(exchange, str(number), headers={"g": number}) for number in range(50)}) == 1


def test_a_second_binding_of_a_queue_has_no_effect(vhost: VHost) -> None:
    exchange = consistent(vhost, "1", "1")
    keys = [str(number) for number in range(100)]
    before = [target(exchange, key) for key in keys]
    bind(exchange, vhost.queues["q0"], vhost, "10000")
    assert [target(exchange, key) for key in keys] == before
    assert len(exchange.bindings) == 3


def test_removing_any_binding_of_a_queue_removes_its_share(vhost: VHost) -> None:
    # Tried with RabbitMQ 3.10.8, which then finds no buckets of the queue.
    exchange = consistent(vhost, "1", "1")
    bind(exchange, vhost.queues["q0"], vhost, "3")
    for weight in ("3", "1"):
        binding = exchange.binding(vhost.queues["q0"], weight, {})
        assert binding is not None
        vhost.unbind(binding)
        assert {target(exchange, str(number)) for number in range(50)} == {"q1"}


def test_a_queue_and_an_exchange_of_the_same_name_differ(vhost: VHost) -> None:
    exchange = consistent(vhost, "1")
    bind(exchange, new_exchange(vhost, "q0"), vhost, "1")
    found = [next(iter(exchange.destinations([str(number)], {}, None))) for number in range(50)]
    assert set(found) == {vhost.queues["q0"], vhost.exchanges["q0"]}


def test_the_property_of_a_published_message_is_read() -> None:
    peer: Peer = Lab().connect()
    peer.call(
        Exchange.Declare(exchange="x", exchange_type="x-consistent-hash", arguments={"hash-property": "message_id"})
    )
    for name in ("q0", "q1"):
        peer.declare(name)
        peer.call(Queue.Bind(queue=name, exchange="x", routing_key="1"))
    for number in range(40):
        peer.publish("k", exchange="x", message_id=str(number))
    counts = [peer.lab.vhost.queues[name].ready_count for name in ("q0", "q1")]
    assert sum(counts) == 40
    assert min(counts) > 5


# Modulus


def test_the_modulus_exchange_uses_all_its_bindings_equally(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "x-modulus-hash")
    for key in ("a", "b", "c"):
        bind(exchange, vhost.queues["q0"], vhost, key)
    bind(exchange, vhost.queues["q1"], vhost, "whatever")
    found = [target(exchange, str(number)) for number in range(400)]
    assert 250 < found.count("q0") < 350


def test_the_modulus_exchange_hashes_all_routing_keys(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "x-modulus-hash")
    for number in range(4):
        bind(exchange, vhost.queues[f"q{number}"], vhost)
    assert {target(exchange, "k", str(number)) for number in range(50)} == {"q0", "q1", "q2", "q3"}
    assert len({target(exchange, "k", "copy", headers={"h": number}) for number in range(50)}) == 1


def test_the_modulus_exchange_ignores_the_order_of_bindings(vhost: VHost) -> None:
    one, other = (new_exchange(vhost, name, "x-modulus-hash") for name in ("one", "other"))
    destinations: list[Destination] = [*vhost.queues.values(), new_exchange(vhost, "q0"), new_exchange(vhost, "z")]
    for destination in destinations:
        bind(one, destination, vhost)
    for destination in reversed(destinations):
        bind(other, destination, vhost)
    for number in range(50):
        assert one.destinations([str(number)], {}, None) == other.destinations([str(number)], {}, None)


def test_an_empty_modulus_exchange_has_no_destinations(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "x-modulus-hash")
    assert not exchange.destinations(["k"], {}, None)
