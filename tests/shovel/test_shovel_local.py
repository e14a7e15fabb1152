"""Shovels whose ends have the protocol `local`, as RabbitMQ 4.3.6 runs them; compat/shovel asks it live."""

from __future__ import annotations

import pytest

from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.shovel.shovel import Shovel
from amqp_broker.shovel.shovel_definition import parse
from tests.shovel.pair import Pair, bodies, declare, push

LOCAL = {"src_protocol": "local", "dest_protocol": "local"}
HEADERS = {"dest_add_forward_headers": True, "dest_add_timestamp_header": True}
NUMBERS = [b"%d" % number for number in range(50)]


def test_a_local_shovel_moves_messages_in_this_broker_and_adds_headers_of_its_own() -> None:
    """Seen in RabbitMQ 4.3.6, which shows no URIs of local ends."""
    pair = Pair()
    push(declare(pair.here, "q"), b"m")
    shovel = pair.shovel(
        src_queue="q",
        dest_queue="other",
        dest_add_forward_headers=True,
        dest_add_timestamp_header=True,
        dest_uri="amqp://ignored:7",
        **LOCAL,
    )
    (message,) = pair.here.vhosts["/"].queues["other"].messages()
    assert message.properties().headers == {
        "x-opt-shovelled-by": "rabbit@here",
        "x-opt-shovel-type": "dynamic",
        "x-opt-shovel-name": "s",
        "x-opt-shovelled-timestamp": pair.time,
    }
    details = shovel.details()
    shown = [details[name] for name in ("src_protocol", "dest_protocol", "src_uri", "dest_uri")]
    assert (shovel.state, shown) == ("running", ["local", "local", "", ""])


def test_a_local_destination_has_messages_with_their_original_address_and_copies_nothing() -> None:
    pair = Pair()
    declare(pair.here, "copied")
    push(declare(pair.here, "q"), b"m", headers={"CC": ["copied"]}, user_id="somebody")
    pair.shovel(src_queue="q", dest_queue="other", **LOCAL)
    (message,) = pair.here.vhosts["/"].queues["other"].messages()
    assert (message.address.exchange, message.address.routing_key) == ("source", "key")
    assert (message.properties().headers, message.properties().user_id) == ({"CC": ["copied"]}, "somebody")
    assert bodies(pair.here.vhosts["/"].queues["copied"]) == []


def test_a_local_destination_may_be_an_exchange_that_clients_cannot_publish_to() -> None:
    pair = Pair()
    vhost = pair.here.vhosts["/"]
    exchange = vhost.declare_exchange(ExchangeDeclaration("internal", "headers", {}, is_internal=True))
    other = declare(pair.here, "other")
    vhost.bind(exchange, other, "", {"kind": "wanted"})
    push(declare(pair.here, "q"), b"0", headers={"kind": "wanted"})
    push(vhost.queues["q"], b"1", headers={"kind": "unwanted"})
    shovel = pair.shovel(src_queue="q", dest_exchange="internal", dest_exchange_key="k", **LOCAL)
    (message,) = other.messages()
    assert (message.body, message.address.exchange, message.address.routing_key) == (b"0", "internal", "k")
    assert (shovel.state, shovel.forwarded_count, vhost.queues["q"].unacked_count) == ("running", 2, 0)


def test_the_queue_of_a_local_source_exchange_outlives_its_shovel() -> None:
    pair = Pair()
    shovel = pair.shovel(src_exchange="amq.fanout", src_queue_args={"x-max-length": 5}, dest_queue="other", **LOCAL)
    queue = pair.here.vhosts["/"].queues["local.shovel.src.exchange.s"]
    assert (queue.is_durable, queue.owner, "x-max-length" in queue.arguments) == (True, None, False)
    assert {binding.routing_key for binding in queue.incoming} == {queue.name}
    assert shovel.details()["src_exchange_key"] == ""
    shovel.stop()
    pair.run()
    push(queue, b"0")
    shovel.start(pair.time)
    pair.run()
    assert bodies(pair.here.vhosts["/"].queues["other"]) == [b"0"]


def test_nothing_is_lost_when_the_queue_of_a_local_destination_is_deleted() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other", ack_mode="on-publish", **LOCAL)
    vhost = pair.here.vhosts["/"]
    vhost.remove_queue(vhost.queues["other"])
    push(source, *NUMBERS)
    pair.run()
    assert (shovel.state, shovel.reason) == ("terminated", "404 NOT_FOUND - no queue 'other' in vhost '/'")
    pair.wait(shovel, 1000)
    assert (shovel.state, bodies(vhost.queues["other"])) == ("running", NUMBERS)


def test_a_local_destination_refuses_as_its_queue_does() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    declare(pair.here, "other", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    push(source, b"0", b"1")
    shovel = pair.shovel(src_queue="q", dest_queue="other", **LOCAL)
    assert (shovel.state, bodies(source)) == ("terminated", [b"1"])


@pytest.mark.parametrize(
    ("uri", "reason"), [("amqp://guest:wrong@", "403 ACCESS_REFUSED"), ("amqp:///none", "530 NOT_ALLOWED")]
)
@pytest.mark.parametrize("side", ["src", "dest"])
def test_the_user_of_a_local_end_logs_in(side: str, uri: str, reason: str) -> None:
    pair = Pair()
    shovel = pair.shovel(src_queue="q", dest_queue="other", **LOCAL, **{f"{side}_uri": uri})
    assert (shovel.state, shovel.reason[: len(reason)]) == ("terminated", reason)


def test_a_local_end_without_a_vhost_is_in_the_default_one() -> None:
    pair = Pair()
    pair.here.add_vhost("elsewhere")
    value = {"src-uri": "amqp://", "dest-uri": "amqp://", "src-queue": "q", "dest-queue": "other"}
    protocols = {"src-protocol": "local", "dest-protocol": "local"}
    shovel = Shovel("s", "elsewhere", parse("s", {**value, **protocols}), pair, "here", pair.done.append, pair.time)
    shovel.start(pair.time)
    pair.run()
    assert set(pair.here.vhosts["/"].queues) == {"q", "other"}
