from __future__ import annotations

from amqp_broker import fields
from amqp_broker.broker.exchange import FanoutExchange
from tests.shovel.pair import Pair, bodies, declare, push

NUMBERS = [b"%d" % number for number in range(50)]


def test_messages_move_to_a_queue_of_another_broker_in_their_order() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS
    assert (source.ready_count, source.unacked_count) == (0, 0)
    assert (shovel.state, shovel.forwarded_count) == ("running", 50)


def test_what_comes_later_moves_too() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    pair.shovel(src_queue="q", dest_queue="other")
    push(source, b"late")
    pair.run()
    assert bodies(pair.there.vhosts["/"].queues["other"]) == [b"late"]


def test_a_message_arrives_with_the_octets_it_left_with() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    headers = {"b": fields.Long(1), "a": True, "c": [b"\xff", {"deep": None}]}
    push(source, b"x" * 300_000, headers=headers, message_id="m", delivery_mode=2)
    (sent,) = source.messages()
    pair.shovel(src_queue="q", dest_queue="other")
    (arrived,) = pair.there.vhosts["/"].queues["other"].messages()
    assert (arrived.property_list, arrived.body) == (sent.property_list, sent.body)


def test_queues_that_are_missing_are_declared_durable() -> None:
    pair = Pair()
    pair.shovel(src_queue="q", dest_queue="other", dest_queue_args={"x-queue-type": "quorum"})
    assert pair.here.vhosts["/"].queues["q"].is_durable
    assert pair.there.vhosts["/"].queues["other"].type == "quorum"


def test_without_a_destination_messages_keep_exchange_and_routing_key() -> None:
    pair = Pair()
    source, there = declare(pair.here, "q"), pair.there.vhosts["/"]
    exchange = there.add_exchange(
        "source", FanoutExchange, is_durable=True, is_auto_delete=False, is_internal=False, arguments_={}
    )
    target = declare(pair.there, "target")
    there.bind(exchange, target, "", {})
    push(source, b"m")
    pair.shovel(src_queue="q")
    (message,) = target.messages()
    assert (message.exchange, message.routing_key) == ("source", "key")


def test_an_exchange_is_a_source_too() -> None:
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


def test_an_exchange_that_is_missing_is_told() -> None:
    pair = Pair()
    declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_exchange="missing")
    assert (shovel.state, shovel.reason) == ("terminated", "404 NOT_FOUND - no exchange 'missing' in vhost '/'")


def test_what_was_on_its_way_when_the_connection_broke_comes_again() -> None:
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


def test_a_broker_that_is_down_is_tried_again_after_the_delay() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), b"m")
    pair.is_down = True
    shovel = pair.shovel(src_queue="q", dest_queue="other", reconnect_delay=5)
    assert (shovel.state, shovel.reason, shovel.next_tick_ms) == ("terminated", "connection refused", pair.now + 5000)
    pair.wait(shovel, 4999)
    assert shovel.state == "terminated"
    pair.is_down = False
    pair.wait(shovel, 1)
    assert bodies(pair.there.vhosts["/"].queues["other"]) == [b"m"]


def test_a_delay_of_0_is_never() -> None:
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


def test_a_shovel_ends_when_it_has_moved_so_many_messages() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_delete_after=20)
    assert pair.done == [shovel]
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS[:20]
    shovel.stop()
    assert bodies(source) == NUMBERS[20:]


def test_a_shovel_ends_when_it_has_moved_what_was_there_at_its_start() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_delete_after="queue-length")
    assert pair.done == [shovel]
    assert shovel.remaining == 0
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS


def test_a_shovel_of_an_empty_queues_length_ends_at_once() -> None:
    pair = Pair()
    declare(pair.here, "q")
    assert pair.done == [pair.shovel(src_queue="q", dest_queue="other", src_delete_after="queue-length")]


def test_after_an_interruption_a_shovel_goes_on_counting() -> None:
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


def test_a_blocked_destination_gets_nothing_until_it_is_free() -> None:
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


def test_a_full_socket_holds_up_the_source() -> None:
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


def test_no_more_messages_are_on_their_way_than_the_prefetch_says() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other", src_prefetch_count=7)
    destination = next(link for link in pair.links if link.session.broker is pair.there)
    shovel.on_full(destination.client, True)
    push(source, *NUMBERS)
    pair.run()
    assert source.unacked_count == 7


def test_properties_are_overwritten_and_headers_added_as_asked() -> None:
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
    assert properties.headers["x-shovelled-timestamp"] == pair.now // 1000


def test_without_acks_messages_are_gone_when_they_were_delivered() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    push(source, *NUMBERS)
    pair.shovel(src_queue="q", dest_queue="other", ack_mode="no-ack")
    assert (source.ready_count, source.unacked_count) == (0, 0)
    assert bodies(pair.there.vhosts["/"].queues["other"]) == NUMBERS


def test_a_wrong_password_is_told() -> None:
    pair = Pair()
    shovel = pair.shovel(src_queue="q", dest_uri="amqp://guest:wrong@there", dest_queue="other")
    assert shovel.reason.startswith("403 ACCESS_REFUSED - Login was refused")


def test_one_end_after_the_other_is_tried() -> None:
    pair = Pair()
    push(declare(pair.here, "q"), b"m")
    shovel = pair.shovel(src_queue="q", dest_uri=["amqp://guest:wrong@there", "amqp://there"], dest_queue="other")
    pair.wait(shovel, 1000)
    assert shovel.state == "running"


def test_a_queue_that_is_deleted_interrupts_the_shovel() -> None:
    pair = Pair()
    source = declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_queue="other")
    pair.here.vhosts["/"].remove_queue(source)
    pair.run()
    assert (shovel.state, shovel.reason) == ("terminated", "the source has cancelled the consumer")


def test_an_end_that_the_shovel_gives_up_is_closed() -> None:
    pair = Pair()
    declare(pair.here, "q")
    shovel = pair.shovel(src_queue="q", dest_exchange="none")
    for _ in range(5):
        assert (shovel.state, len(pair.here.connections), len(pair.there.connections)) == ("terminated", 0, 0)
        pair.wait(shovel, 1000)


def test_without_acks_a_blocked_destination_holds_up_the_source() -> None:
    pair = Pair()
    declare(pair.here, "q")
    pair.shovel(src_queue="q", dest_queue="other", ack_mode="no-ack")
    push(pair.here.vhosts["/"].queues["q"], b"0")
    pair.run()
    pair.there.set_alarm("memory", True)
    pair.run()
    [source] = [link for link in pair.links if link.session.broker is pair.here]
    assert source.is_paused
    pair.there.set_alarm("memory", False)
    pair.run()
    assert not source.is_paused
