from __future__ import annotations

import pytest

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from tests.present import present
from tests.shovel.pair import Pair, bodies, declare, push

NUMBERS = [b"%d" % number for number in range(50)]


def test_messages_are_moved_in_order() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS
    assert (source.ready_count, source.unacked_count) == (0, 0)
    assert (shovel.state, shovel.forwarded_count) == ("running", 50)


def test_later_messages_are_moved() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    pair.shovel(src_queue="q", dest_queue="other")
    push(source, b"late")
    pair.run()
    assert bodies(pair.there.vhosts["/"].queues["other"]) == [b"late"]


def test_a_message_arrives_with_its_original_octets() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    headers = {"a": True, "b": fields.Long(1), "c": [b"\xff", {"deep": None}]}
    push(source, b"x" * 300_000, headers=headers, message_id="m", delivery_mode=2)
    (sent,) = source.messages()
    pair.shovel(src_queue="q", dest_queue="other")
    (arrived,) = pair.there.vhosts["/"].queues["other"].messages()
    assert (arrived.property_list, arrived.body) == (sent.property_list, sent.body)


def test_a_confirm_of_all_messages_by_tag_0_settles_them() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    (destination,) = (link for link in pair.links if link.session.broker is pair.there)
    destination.pause(True)
    push(source, b"1", b"2")
    pair.run()
    assert source.unacked_count == 2
    shovel.on_settled(destination.client, 0, True, True)
    pair.run()
    assert source.unacked_count == 0


def test_missing_queues_are_declared_durable() -> None:
    pair = Pair()
    pair.shovel(src_queue="q", dest_queue="other", dest_queue_args={"x-queue-type": "quorum"})
    assert pair.here.vhosts["/"].queues["q"].is_durable
    assert pair.there.vhosts["/"].queues["other"].type == "quorum"


@pytest.mark.parametrize("side", ["src", "dest"])
def test_a_queue_that_must_exist_is_not_declared(side: str) -> None:
    pair = Pair()
    shovel = pair.shovel(src_queue="q", dest_queue="other", **{f"{side}_predeclared": True})
    missing = {"src": "q", "dest": "other"}[side]
    assert (shovel.state, shovel.reason) == ("terminated", f"404 NOT_FOUND - no queue '{missing}' in vhost '/'")


def test_without_a_destination_messages_keep_exchange_and_routing_key() -> None:
    pair = Pair()
    source, there = declare(pair.here, "q"), pair.there.vhosts["/"]
    exchange = there.add_exchange(ExchangeDeclaration("source", "fanout", {}, is_durable=True))
    target = declare(pair.there, "target")
    there.bind(exchange, target, "", {})
    push(source, b"m")
    pair.shovel(src_queue="q")
    (message,) = target.messages()
    assert (message.exchange, message.routing_key) == ("source", "key")


def test_the_source_may_be_an_exchange() -> None:
    pair = Pair()
    shovel = pair.shovel(src_exchange="amq.topic", src_exchange_key="a.*", dest_queue="other")
    here = pair.here.vhosts["/"]
    (queue,) = here.queues.values()
    assert queue.owner is not None
    push(queue, b"m")
    pair.run()
    assert bodies(pair.there.vhosts["/"].queues["other"]) == [b"m"]
    shovel.stop()
    assert not here.queues


def test_a_missing_exchange_is_the_reason_of_a_failure_once_a_message_comes() -> None:
    pair = Pair()
    declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_exchange="missing")
    assert shovel.state == "running"
    push(pair.here.vhosts["/"].queues["q"], b"0")
    pair.run()
    assert (shovel.state, shovel.reason) == ("terminated", "404 NOT_FOUND - no exchange 'missing' in vhost '/'")


def test_messages_in_flight_when_the_connection_breaks_are_moved_again() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    push(source, *NUMBERS)
    for link in pair.links:
        link.move()
    pair.cut()
    assert shovel.state == "terminated"
    pair.wait(shovel, 1000)
    assert shovel.state == "running"
    arrived = bodies(pair.there.vhosts["/"].queues["other"])
    assert set(arrived) == set(NUMBERS)
    assert (source.ready_count, source.unacked_count) == (0, 0)


def test_an_unreachable_broker_is_tried_again_after_the_delay() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), b"m")
    pair.is_down = True
    shovel = pair.shovel(src_queue="q", dest_queue="other", reconnect_delay=5)
    assert (shovel.state, shovel.reason, shovel.next_tick_ms) == ("terminated", "connection refused", pair.time + 5000)
    pair.wait(shovel, 4999)
    assert shovel.state == "terminated"
    pair.is_down = False
    pair.wait(shovel, 1)
    assert bodies(pair.there.vhosts["/"].queues["other"]) == [b"m"]


def test_a_reconnect_delay_of_0_means_never() -> None:
    pair = Pair()
    pair.is_down = True
    shovel = pair.shovel(src_queue="q", dest_queue="other", reconnect_delay=0)
    assert shovel.next_tick_ms is None


def test_a_message_that_the_destination_refuses_stays_with_the_source() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    declare(pair.there, "full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    push(source, b"1", b"2", b"3")
    shovel = pair.shovel(src_queue="q", dest_queue="full")
    assert bodies(pair.there.vhosts["/"].queues["full"]) == [b"1"]
    assert shovel.reason == "the destination refused a message (basic.nack)"
    assert {b"2", b"3"} <= set(bodies(source))
    pair.there.vhosts["/"].queues["full"].purge()
    pair.wait(shovel, 1000)
    assert pair.there.vhosts["/"].queues["full"].ready_count == 1


def test_a_shovel_ends_after_a_number_of_messages() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_delete_after=20)
    assert pair.done == [shovel]
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS[:20]
    shovel.stop()
    assert bodies(source) == NUMBERS[20:]


def test_a_shovel_ends_after_the_messages_that_were_ready_at_its_start() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_delete_after="queue-length")
    assert pair.done == [shovel]
    assert shovel.remaining == 0
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS


def test_a_shovel_of_an_empty_queue_ends_at_once() -> None:
    pair = Pair()
    declare(pair.here, "q")
    assert pair.done == [pair.shovel(src_queue="q", dest_queue="other", src_delete_after="queue-length")]


def test_a_shovel_that_shall_move_nothing_declares_its_queues() -> None:
    pair = Pair()
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_delete_after=0)
    assert (pair.done, shovel.forwarded_count) == ([shovel], 0)
    assert ("q" in pair.here.vhosts["/"].queues, "other" in pair.there.vhosts["/"].queues) == (True, True)


def test_the_count_continues_after_an_interruption() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_delete_after=30)
    push(source, *NUMBERS[:10])
    pair.run()
    pair.cut()
    push(source, *NUMBERS[10:])
    pair.wait(shovel, 1000)
    assert pair.done == [shovel]
    assert pair.there.vhosts["/"].queues["other"].ready_count == 30


def test_a_blocked_destination_receives_nothing_until_it_is_unblocked() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, b"0")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    pair.there.set_alarm("memory", True)
    pair.run()
    push(source, *NUMBERS)
    pair.run()
    assert shovel.is_blocked
    assert pair.there.vhosts["/"].queues["other"].ready_count == 1
    pair.there.set_alarm("memory", False)
    pair.run()
    assert pair.there.vhosts["/"].queues["other"].ready_count == 51


def test_a_full_socket_pauses_the_source() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    destination = next(link for link in pair.links if link.session.broker is pair.there)
    shovel.on_full(destination.client, True)
    push(source, *NUMBERS)
    pair.run()
    assert pair.there.vhosts["/"].queues["other"].ready_count == 0
    shovel.on_full(destination.client, False)
    pair.run()
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS


def test_the_prefetch_limits_messages_in_flight() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_prefetch_count=7)
    destination = next(link for link in pair.links if link.session.broker is pair.there)
    shovel.on_full(destination.client, True)
    push(source, *NUMBERS)
    pair.run()
    assert source.unacked_count == 7


def test_configured_properties_are_set_and_headers_added() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), b"m", headers={"x-shovelled": [{"shovel-name": "first"}]}, app_id="a")
    pair.shovel(
        src_queue="q",
        dest_queue="other",
        dest_publish_properties={"delivery_mode": 2, "app_id": "b"},
        dest_add_forward_headers=True,
        dest_add_timestamp_header=True,
    )
    (message,) = pair.there.vhosts["/"].queues["other"].messages()
    properties = message.properties()
    assert (properties.delivery_mode, properties.app_id) == (2, "b")
    assert properties.headers is not None
    newest, oldest = properties.headers["x-shovelled"]
    assert oldest == {"shovel-name": "first"}
    assert (newest["shovel-name"], newest["src-queue"], newest["dest-uri"]) == ("s", "q", "amqp://there")
    assert properties.headers["x-shovelled-timestamp"] == pair.time // 1000
    pair.time += 60_000
    push(pair.here.vhosts["/"].queues["q"], b"m")
    pair.run()
    *_, late = pair.there.vhosts["/"].queues["other"].messages()
    assert present(late.properties().headers)["x-shovelled-timestamp"] == pair.time // 1000


def test_without_acks_delivered_messages_leave_the_source() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    pair.shovel(src_queue="q", dest_queue="other", ack_mode="no-ack")
    assert (source.ready_count, source.unacked_count) == (0, 0)
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS


def test_a_wrong_password_is_the_reason_of_a_failure() -> None:
    pair = Pair()
    shovel = pair.shovel(src_queue="q", dest_uri="amqp://guest:wrong@there", dest_queue="other")
    assert shovel.reason.startswith("403 ACCESS_REFUSED - Login was refused")


def test_the_uris_are_tried_in_turn() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), b"m")
    shovel = pair.shovel(src_queue="q", dest_uri=["amqp://guest:wrong@there", "amqp://there"], dest_queue="other")
    pair.wait(shovel, 1000)
    assert shovel.state == "running"


def test_a_deleted_source_queue_interrupts_the_shovel() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    pair.here.vhosts["/"].remove_queue(source)
    pair.run()
    assert (shovel.state, shovel.reason) == ("terminated", "the source has cancelled the consumer")


def test_both_connections_are_closed_after_a_failure() -> None:
    pair = Pair()
    declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="none", dest_predeclared=True)
    for _ in range(5):
        assert (shovel.state, len(pair.here.connections), len(pair.there.connections)) == ("terminated", 0, 0)
        pair.wait(shovel, 1000)


def test_without_acks_a_blocked_destination_pauses_the_source() -> None:
    pair = Pair()
    declare(pair.here, "q")
    pair.shovel(src_queue="q", dest_queue="other", ack_mode="no-ack")
    push(pair.here.vhosts["/"].queues["q"], b"0")
    pair.run()
    pair.there.set_alarm("memory", True)
    push(pair.here.vhosts["/"].queues["q"], b"1")
    pair.run()
    [source] = [link for link in pair.links if link.session.broker is pair.here]
    assert source.is_paused
    pair.there.set_alarm("memory", False)
    pair.run()
    assert not source.is_paused


def test_a_shovel_that_is_started_twice_has_one_connection_to_each_end() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    shovel.start(pair.time)
    pair.run()
    push(source, *NUMBERS)
    pair.run()
    assert (len(pair.links), source.ready_count, source.unacked_count) == (2, 0, 0)


def test_messages_are_counted_from_the_last_start_on() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    counts = [shovel.forwarded_count]
    pair.cut()
    pair.wait(shovel, 1000)
    assert [*counts, shovel.forwarded_count] == [len(NUMBERS), 0]


def test_the_time_of_a_change_has_an_hour_of_one_digit() -> None:
    pair = Pair()
    pair.time = 1_700_013_600_000
    assert pair.shovel(src_queue="q", dest_queue="other").details()["timestamp"] == "2023-11-15 2:00:00"


def test_a_forward_header_that_is_no_list_is_kept_among_the_invalid_ones() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), b"m", headers={"x-shovelled": "text"})
    pair.shovel(src_queue="q", dest_queue="other", dest_add_forward_headers=True)
    (message,) = pair.there.vhosts["/"].queues["other"].messages()
    headers = message.properties().headers
    assert headers is not None
    assert (headers["x-invalid-headers"], len(headers["x-shovelled"])) == ({"x-shovelled": ["text"]}, 1)
